"""From what a command composes to back to the typed fields of a recipe.

The table of settings of `recipe/` is read the other way round: it says of each key which field owns it, so that there is no second
table of keys. Must not know: overrides, or how a recipe is written down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass, replace
from types import NoneType
from typing import Any

from ..errors import AuthoringError, RecipeError
from ..recipe import (
    DAPO,
    FSDP,
    FSDP2,
    GRPO,
    GSPO,
    PPO,
    SFT,
    Algorithm,
    Engine,
    FSDPTurbo,
    Inputs,
    Lora,
    Megatron,
    Profiling,
    Recipe,
    Rollout,
    SeparateAsync,
    Sglang,
    VeOmni,
    Vllm,
    settings_of,
)
from ..recipe.keys import ACTOR, MODEL, REFERENCE, ROLLOUT, TRANSFORMER
from .invocation import Invocation
from .wanted import Wanted

_ENGINES: Mapping[str, type[Engine]] = {kind.name: kind for kind in (Megatron, FSDP, FSDP2, FSDPTurbo, VeOmni)}
_ROLLOUTS: Mapping[str, type[Rollout]] = {kind.name: kind for kind in (Vllm, Sglang)}
# What the configuration has where verl wants a value and has none.
_MISSING = "???"
_OVERLONG = "reward.reward_kwargs.overlong_buffer_cfg"
_INPUTS = Inputs(model_path="model", train_files="train", val_files="val", n_gpus_per_node=1024)
_DEFAULT_STEPS = 15
# None stands for another field here, not for verl's default.
_NEVER_LEFT = ("ppo_mini_batch_size",)
# verl's deprecated keys of another unit than the field that stands for them.
_OF_ALL_DEVICES = ".ppo_micro_batch_size"
# What the reference model takes from the engine where the command is silent on it.
_FOLLOWING = ("fsdp_size",)


@dataclass(frozen=True, kw_only=True, slots=True)
class Typed:
    """A recipe of typed fields alone, and the keys within its mappings, which need no override of their own."""

    recipe: Recipe | SFT
    taken: frozenset[str]
    notes: tuple[str, ...]


def typed_fields(invocation: Invocation, wanted: Wanted, *, model: str, dataset: str, env: Mapping[str, str]) -> Typed:
    """Return the recipe that has the values of a configuration in its typed fields.

    Raises:
        AuthoringError: the configuration asks for an engine or a rollout that no recipe has.
        RecipeError: the fields contradict each other.
    """
    notes: list[str] = []
    steps = wanted.get("trainer.total_training_steps")
    if steps is None:
        steps = _DEFAULT_STEPS
        notes.append(f"trainer.total_training_steps is not given: the case trains {steps} steps; change steps as you like")
    common = {"model": model, "dataset": dataset, "steps": steps, "env": env}
    recipe: Recipe | SFT
    if invocation.is_fine_tuning:
        recipe, taken = _fine_tuning(invocation, wanted, common)
    else:
        recipe, taken = _reinforcement(wanted, common, notes)
    return Typed(recipe=recipe, taken=frozenset(taken), notes=tuple(notes))


def _fine_tuning(invocation: Invocation, wanted: Wanted, common: Mapping[str, Any]) -> tuple[SFT, set[str]]:
    kind = _ENGINES.get(str(wanted.get("engine.strategy") or "megatron"))
    if kind is None or issubclass(kind, FSDPTurbo):
        raise AuthoringError(f"engine.strategy={wanted.get('engine.strategy')!r}: expected one of fsdp, fsdp2, megatron and veomni")
    lora = Lora(rank=1) if wanted.get("model.lora_rank") and issubclass(kind, FSDP) else None
    values = _values(SFT(model="m", dataset="d", engine=kind(), steps=1, lora=lora), wanted)
    engine, taken = _engine(kind(**values.pop("engine", {})), "engine", "optim", wanted)
    if lora is not None:
        lora = replace(lora, **values.pop("lora", {}))
    launcher = "ray" if invocation.program.endswith("_ray") else "torchrun"
    return SFT(**{**values[""], **common, "engine": engine, "lora": lora, "launcher": launcher}), taken


def _reinforcement(wanted: Wanted, common: Mapping[str, Any], notes: list[str]) -> tuple[Recipe, set[str]]:
    prototype = _prototype(wanted)
    values = _values(prototype, wanted)
    kind = type(prototype.engine)
    engine, taken = _engine(
        replace(prototype.engine, **values.pop("engine", {})), f"{ACTOR}.{kind.section}", f"{ACTOR}.optim", wanted
    )
    section = f"{ROLLOUT}.engine_kwargs.{prototype.rollout.name}"
    kwargs = _mapping(section, wanted, taken)
    kwargs.pop("attention_backend", None)
    rollout = replace(prototype.rollout, **values.pop("rollout", {}), engine_kwargs=kwargs)
    algorithm = replace(prototype.algorithm, **values.pop("algorithm", {}))
    reference = _reference(engine, values.pop("reference", {}), wanted) if prototype.reference is not None else None
    parts: dict[str, Any] = {}
    for name in ("lora", "trainer"):
        if name in values:
            parts[name] = replace(getattr(prototype, name), **values.pop(name))
    own = {**values[""], **common, **parts, "algorithm": algorithm, "engine": engine, "rollout": rollout}
    if own.get("ppo_mini_batch_size") == own["train_batch_size"]:
        del own["ppo_mini_batch_size"]
    if own.get("use_dynamic_bsz") and own.get("ppo_micro_batch_size_per_gpu") is None:
        own.pop("ppo_micro_batch_size_per_gpu", None)
    try:
        return Recipe(**own, profiling=prototype.profiling, reference=reference), taken
    except RecipeError as error:
        if reference is None or not all(problem.startswith("reference") for problem in error.problems):
            raise
        notes.extend(f"{problem}; the reference follows the actor instead" for problem in error.problems)
        return Recipe(**own, profiling=prototype.profiling), taken


def _prototype(wanted: Wanted) -> Recipe:
    """Return a recipe with the parts that the configuration has, whose own values say nothing."""
    strategy, rollout = str(wanted.get(f"{ACTOR}.strategy")), str(wanted.get(f"{ROLLOUT}.name"))
    if strategy not in _ENGINES:
        raise AuthoringError(f"{ACTOR}.strategy={strategy!r}: no engine of a recipe; expected one of {', '.join(_ENGINES)}")
    if rollout == _MISSING:
        raise AuthoringError(f"{ROLLOUT}.name is not given, and verl has no default: expected {ROLLOUT}.name=vllm or =sglang")
    if rollout not in _ROLLOUTS:
        raise AuthoringError(
            f"{ROLLOUT}.name={rollout!r}: no rollout of a recipe; expected {ROLLOUT}.name=vllm or {ROLLOUT}.name=sglang"
        )
    algorithm = _algorithm(wanted)
    kind = _ENGINES[strategy]
    has_reference = algorithm.use_kl_loss or algorithm.use_kl_in_reward
    is_separate = wanted.get("trainer.v1.trainer_mode") == "separate_async"
    return Recipe(
        algorithm=algorithm,
        model="m",
        dataset="d",
        engine=kind(),
        rollout=_ROLLOUTS[rollout](),
        train_batch_size=1,
        max_prompt_length=1,
        max_response_length=1,
        steps=1,
        reference=kind() if has_reference else None,
        lora=Lora(rank=1) if wanted.get(f"{MODEL}.lora_rank") and issubclass(kind, FSDP) else None,
        profiling=_profiling(wanted),
        trainer=SeparateAsync(rollout_devices=1) if is_separate else None,
    )


def _algorithm(wanted: Wanted) -> Algorithm:
    terms: dict[str, Any] = {
        "use_kl_loss": bool(wanted.get(f"{ACTOR}.use_kl_loss")),
        "use_kl_in_reward": bool(wanted.get("algorithm.use_kl_in_reward")),
    }
    if wanted.get("algorithm.adv_estimator") == "gae":
        return PPO(**terms)
    terms["adv_estimator"] = wanted.get("algorithm.adv_estimator")
    if wanted.get(f"{ACTOR}.policy_loss.loss_mode") == "gspo":
        return GSPO(**terms)
    if wanted.get("reward.reward_manager.name") == "dapo" or wanted.get("algorithm.filter_groups.enable"):
        is_penalised = wanted.get(f"{_OVERLONG}.enable") is True
        # Its own field, which is written where it has a value only.
        return DAPO(**terms, overlong_buffer_len=1 if is_penalised else None)
    return GRPO(**terms)


def _profiling(wanted: Wanted) -> Profiling | None:
    section = f"{ACTOR}.profiler"
    steps = wanted.get("global_profiler.steps")
    if not (steps and wanted.get(f"{section}.enable") is True and wanted.get("global_profiler.tool") == "npu"):
        return None
    ranks = () if wanted.get(f"{section}.all_ranks") else tuple(wanted.get(f"{section}.ranks") or ())
    tool = f"{section}.tool_config.npu"
    given = {name: wanted.get(f"{tool}.{name}") for name in ("level", "discrete", "analysis")}
    return Profiling(steps=tuple(steps), ranks=ranks, contents=tuple(wanted.get(f"{tool}.contents") or ()), **given)


def _values(prototype: Recipe | SFT, wanted: Wanted) -> dict[str, dict[str, Any]]:
    """Return the values of fields by the part that has them ("" is the recipe).

    Of two keys of a field the one counts that is said, else the one that follows what is said.
    """
    chosen: dict[tuple[str, str], tuple[tuple[bool, bool], Any]] = {}
    for path, key in _owned_keys(prototype):
        name = path[1]
        is_silent = key not in wanted.said
        if is_silent and not wanted.has(key):
            continue
        if is_silent and _attribute(prototype, path) is None and name not in _NEVER_LEFT:
            continue
        if is_silent and path[0] == "reference" and name in _FOLLOWING:
            continue
        weight = (not is_silent, wanted.is_changed(key))
        if path not in chosen or weight > chosen[path][0]:
            chosen[path] = (weight, wanted.get(key))
    values: dict[str, dict[str, Any]] = {"": {}}
    for (part, name), (_, value) in chosen.items():
        values.setdefault(part, {})[name] = value
    return values


def _owned_keys(prototype: Recipe | SFT) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield each field that is a single value, as part and name, with a key that it owns."""
    for setting in settings_of(prototype, _INPUTS):
        part, _, name = setting.field.rpartition(".")
        owner = getattr(prototype, part, None) if part else prototype
        if part == "profiling" or setting.field in ("model", "dataset", "steps", "processes_per_node") or owner is None:
            continue
        value = getattr(owner, name, owner)
        is_switch_of_it = isinstance(setting.value, bool) and not isinstance(value, (bool, NoneType))
        if not (is_dataclass(value) or isinstance(value, Mapping) or is_switch_of_it or setting.key.endswith(_OF_ALL_DEVICES)):
            yield (part, name), setting.key


def _attribute(prototype: Recipe | SFT, path: tuple[str, str]) -> object:
    part, name = path
    return getattr(getattr(prototype, part) if part else prototype, name)


def _engine(engine: Engine, section: str, optimizer_section: str, wanted: Wanted) -> tuple[Engine, set[str]]:
    """Return the engine with its mappings, and the keys that they took."""
    taken: set[str] = set()
    given: dict[str, Any] = {"optimizer": _mapping(f"{optimizer_section}.override_optimizer_config", wanted, taken)}
    if isinstance(engine, Megatron):
        given["transformer"] = _mapping(f"{section}.{TRANSFORMER}", wanted, taken)
        given["ddp"] = _mapping(f"{section}.override_ddp_config", wanted, taken)
    if isinstance(engine, FSDPTurbo):
        typed = {"distributed.fully_shard_parallel_size", "distributed.ulysses_parallel_size"}
        keys = [key for key in wanted.said_below(f"{section}.turbo_config") if key not in typed]
        given["turbo"] = {key: wanted.get(f"{section}.turbo_config.{key}") for key in keys}
        taken |= {f"{section}.turbo_config.{key}" for key in keys}
    return _gathered(replace(engine, **given)), taken


def _mapping(section: str, wanted: Wanted, taken: set[str]) -> dict[str, Any]:
    """Return what the command sets within a dictionary of free keys, by first names."""
    keys = wanted.said_below(section)
    taken |= {f"{section}.{key}" for key in keys}
    names = list(dict.fromkeys(key.partition(".")[0] for key in keys))
    return {name: wanted.get(f"{section}.{name}") for name in names}


def _gathered(engine: Engine) -> Engine:
    """Say `offload` where it speaks for both kinds, and nothing of what is not offloaded."""
    # verl switches both off beside FSDP2's own offload.
    is_own = isinstance(engine, FSDP2) and engine.offload_policy
    param, optimizer = bool(engine.param_offload) and not is_own, bool(engine.optimizer_offload) and not is_own
    if param == optimizer:
        return replace(engine, offload=param, param_offload=None, optimizer_offload=None)
    return replace(engine, param_offload=param or None, optimizer_offload=optimizer or None)


def _reference(engine: Engine, values: Mapping[str, Any], wanted: Wanted) -> Engine | None:
    """Return the engine of the reference model, None where it is the actor's."""
    own = dict(values)
    # Nothing of a reference is optimized.
    param = bool(own.pop("param_offload", False)) and not (isinstance(engine, FSDP2) and own.get("offload_policy"))
    if isinstance(engine, Megatron):
        transformer = wanted.get(f"{REFERENCE}.{engine.section}.{TRANSFORMER}")
        if transformer != wanted.get(f"{ACTOR}.{engine.section}.{TRANSFORMER}"):
            own["transformer"] = dict(transformer or {})
    # A size that the command leaves to verl is the actor's (etp, vpp).
    reference = replace(engine, **own)
    if param != engine.is_param_offloaded:
        reference = replace(
            reference, offload=False, param_offload=param or None, optimizer_offload=engine.is_optimizer_offloaded or None
        )
    return None if reference == engine else reference
