"""Do the roles compute alike? Settings that change numbers, compared between actor and reference, and training and rollout.

The log-probs of one token by actor, reference and rollout are compared with one another at every step: a KL that is not zero at
the first one is often no algorithm but a setting that one role has and another has not. Must not know: recipes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..recipe import ACTOR, REFERENCE, ROLLOUT
from .findings import FSDP_STRATEGIES, Finding, Values

# The part of an engine's section that decides what it computes; the rest is layout, memory, checkpoints and seeds. A router's
# replay is not among them: verl never replays in the reference.
_COMPUTING = (
    "dtype",
    "model_dtype",
    "mixed_precision",
    "override_transformer_config",
    "override_mcore_model_config",
    "use_remove_padding",
    "pad_bshd_to_minibatch_max",
    "pad_to_length",
    "pad_to_length_bucket",
    "force_use_huggingface",
    "turbo_config.distributed.fsdp_plan",
)
_COMPUTING_ENDS = ("_implementation",)
# Keys of a transformer that change memory, speed or the place of a layer, and no number.
_NEUTRAL = (
    "recompute_", "num_layers_in_", "account_for_", "overlap_", "deallocate_", "pipeline_model_parallel_layout", "swap_",
    "cpu_offload", "offload_", "moe_shared_expert_overlap", "gradient_accumulation_fusion", "microbatch_group_size_per_vp_stage",
)  # fmt: skip
_SECTIONS = {"megatron": "megatron", "veomni": "veomni", "torchtitan": "torchtitan"}
_SAME_DTYPE = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}


def role_findings(values: Values, meant: Mapping[str, str], *, is_whole: bool) -> list[Finding]:
    """Return every difference between roles that `meant` (its name, and why) does not name.

    `is_whole` tells that the configuration holds all of verl's keys; of overrides alone, only what both roles say is compared.
    """
    found = {**_reference_differences(values, is_whole=is_whole), **_rollout_differences(values)}
    findings = [finding for name, finding in found.items() if name not in meant]
    if is_whole:
        findings += [
            Finding(rule="A3", text=f"meant_differences[{name!r}]: the roles do not differ in this; leave it out")
            for name in meant
            if name not in found
        ]
    return findings


def _reference_differences(values: Values, *, is_whole: bool) -> dict[str, Finding]:
    if not values.has_reference:
        return {}
    section = _SECTIONS.get(str(values.strategy), "fsdp_config")
    actor, reference = (dict(_settings(values, f"{role}.{section}")) for role in (ACTOR, REFERENCE))
    differing: dict[str, Finding] = {}
    for name in {**actor, **reference}:
        mine, other = actor.get(name), reference.get(name)
        is_given = is_whole or (name in actor and name in reference) or _has_own_transformer(values, section, name)
        if not is_given or mine == other or not _changes_numbers(name):
            continue
        key = f"{ACTOR}.{section}.{name}"
        text = (
            f"{values.origin(key)}: {mine!r} for the actor and {other!r} for the reference ({_who(values, section, name)}), so "
            f"they compute other log-probs of one token; set both alike, or say why not: meant_differences={{{name!r}: '...'}}"
        )
        differing[name] = Finding(rule="A1", text=text)
    return differing


def _settings(values: Values, section: str) -> Iterator[tuple[str, object]]:
    """Yield the settings below a section, dotted; of an override that is a mapping, its leaves."""
    for key, value in values.flat.items():
        if key.startswith(f"{section}."):
            yield from _leaves(key.removeprefix(f"{section}."), value)


def _leaves(name: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}", inner)
    elif not (isinstance(value, str) and value.startswith("${")):  # what verl takes from the actor is as the actor's
        yield name, value


def _has_own_transformer(values: Values, section: str, name: str) -> bool:
    """Tell whether a setting is of a transformer configuration that the reference has whole, so that what is not there is unset."""
    whole = "override_transformer_config"
    return name.startswith(f"{whole}.") and isinstance(values.get(f"{REFERENCE}.{section}.{whole}"), Mapping)


def _changes_numbers(name: str) -> bool:
    leaf = name.rpartition(".")[2]
    is_computing = any(name == start or name.startswith(f"{start}.") for start in _COMPUTING) or leaf.endswith(_COMPUTING_ENDS)
    return is_computing and not leaf.startswith(_NEUTRAL)


def _who(values: Values, section: str, name: str) -> str:
    """Return who asked for a setting of the reference, which may stand within a mapping."""
    key = f"{REFERENCE}.{section}.{name}"
    while key and not values.is_asked(key):
        key = key.rpartition(".")[0]
    return values.origin(key) if key else f"{REFERENCE}.{section}.{name}"


def _rollout_differences(values: Values) -> dict[str, Finding]:
    key, training = f"{ROLLOUT}.dtype", _training_dtype(values)
    given = values.get(key)
    if given is None or training is None or _dtype(given) == _dtype(training[1]):
        return {}
    origin, dtype = training
    text = (
        f"{values.said(key)} beside {origin} = {dtype!r} of the training, so they compute other log-probs of one token; set both "
        "alike, or say why not: meant_differences={'rollout.dtype': '...'}"
    )
    return {"rollout.dtype": Finding(rule="A2", text=text)}


def _training_dtype(values: Values) -> tuple[str, object] | None:
    """Return the dtype of the training's forward pass and who says so; FSDP reads no other key than that of mixed precision."""
    if values.strategy == "megatron":
        key = f"{ACTOR}.megatron.dtype"
        return None if values.get(key) is None else (values.origin(key), values.get(key))
    if values.strategy not in FSDP_STRATEGIES:
        return ("VeOmni's mixed precision", "bfloat16") if values.strategy == "veomni" else None
    name = "turbo_config.distributed.fsdp_plan" if values.strategy == "fsdp_turbo" else "mixed_precision"
    key = f"{ACTOR}.fsdp_config.{name}.param_dtype"
    given = values.get(key)
    return ("FSDP's mixed_precision.param_dtype", "bfloat16") if given is None else (values.origin(key), given)


def _dtype(name: object) -> str:
    return _SAME_DTYPE.get(str(name), str(name))
