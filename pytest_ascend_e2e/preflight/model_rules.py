"""Rules on a model: which parallel sizes its heads, experts and layers allow.

A fact that is absent is not judged, and `unchecked` says which rules that leaves out. Rules are those of megatron-core 0.16
(`transformer_config.py`), verl 0.9.1 and the rollout engines. Must not know: where facts come from.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..recipe import FSDP, MODEL, ROLLOUT, SFT, FSDPTurbo, Megatron, Recipe, VeOmni
from .findings import Finding, Values
from .model_facts import ModelFacts

# verl: trainer/config/rollout/rollout.yaml.
_BUCKET_MB = 2048
_FULL_PRECISION, _HALF_PRECISION = 4, 2  # bytes of a value


def model_problems(recipe: Recipe | SFT, facts: ModelFacts) -> list[str]:
    """Return one text for each rule on the model that a recipe breaks."""
    engine = recipe.engine
    training = _megatron_problems(engine, facts) if isinstance(engine, Megatron) else _fsdp_problems(engine, facts)
    rollout = () if isinstance(recipe, SFT) else _rollout_problems(recipe, facts)
    return [*training, *rollout]


def model_findings(recipe: Recipe | SFT, facts: ModelFacts, values: Values) -> Iterator[Finding]:
    """Yield what rules say of a model and of a configuration by verl's own keys."""
    if isinstance(recipe, SFT):
        return
    key = "actor_rollout_ref.actor.megatron.dynamic_context_parallel"
    if facts.has_vision and values.get(key) is True:
        yield Finding(rule="M20", text=f"{values.said(key)} is for language models only, and this one has images; leave it out")
    if recipe.rollout.name == "vllm" and recipe.trainer is None and not values.number(f"{MODEL}.lora_rank"):
        yield from _bucket(recipe, facts, values)


def _bucket(recipe: Recipe, facts: ModelFacts, values: Values) -> Iterator[Finding]:
    if facts.vocabulary is None or facts.hidden is None:
        return
    key, width = f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes", _bytes_of_a_weight(recipe)
    bucket_mb, need = values.number(key) or _BUCKET_MB, facts.vocabulary * facts.hidden * width
    if need > bucket_mb << 20:
        need_mb = -(-need >> 20)
        text = (
            f"{values.origin(key)}: {bucket_mb} MB cannot hold the embedding of the model, {facts.vocabulary} x {facts.hidden} x "
            f"{width} bytes = {need_mb} MB; without shared device memory (IPC) the first weights for the rollout end the run; set "
            f"{-(-need_mb // 1024) * 1024}"
        )
        yield Finding(rule="R13", text=text, is_error=False)


def _bytes_of_a_weight(recipe: Recipe) -> int:
    """Return the width in which a training engine hands out weights: FSDP and VeOmni keep them in full precision by default."""
    engine = recipe.engine
    is_half = isinstance(engine, Megatron) or (isinstance(engine, FSDP) and engine.model_dtype != "fp32")
    return _HALF_PRECISION if is_half else _FULL_PRECISION


def unchecked(recipe: Recipe | SFT, facts: ModelFacts | None) -> str | None:
    """Return a sentence on the rules that could not be checked because a fact is missing, None where there are none."""
    known = facts or ModelFacts()
    wanted = _wanted(recipe, known)
    missing = {rule: what for rule, (what, value) in wanted.items() if value is None}
    if not missing:
        return None
    rules = ", ".join(missing)
    if facts is None:
        return f"model: neither a config.json nor the table of known models has {recipe.model!r}; not checked: {rules}"
    absent = ", ".join(dict.fromkeys(missing.values()))
    return f"model: the configuration of {recipe.model!r} does not tell {absent}; not checked: {rules}"


def _wanted(recipe: Recipe | SFT, facts: ModelFacts) -> dict[str, tuple[str, int | None]]:
    """Return the rules that sizes of a recipe above 1 call for, each with the fact it needs."""
    engine = recipe.engine
    heads, kv_heads = ("attention heads", facts.heads), ("key-value heads", facts.kv_heads)
    wanted: dict[str, tuple[str, int | None]] = {}
    if isinstance(engine, Megatron):
        wanted |= {"M6": heads, "M7": kv_heads} if engine.tp > 1 else {}
        wanted |= {"M9": ("layers", facts.layers)} if engine.pp > 1 else {}
        # A model without experts is told by what else is known of it.
        wanted |= {"M8": ("experts", facts.experts or facts.heads)} if engine.ep > 1 else {}
    elif (engine.ulysses if isinstance(engine, FSDPTurbo) else engine.sp) > 1:
        wanted |= {"F4": heads}
    if isinstance(recipe, Recipe):
        wanted |= {"R3": heads} if recipe.rollout.tp > 1 else {}
    return wanted


def _megatron_problems(engine: Megatron, facts: ModelFacts) -> Iterator[str]:
    yield from _divides("engine.tp", engine.tp, facts.heads, "attention heads", "M6")
    yield from _shares("engine.tp", engine.tp, facts.kv_heads, "M7")
    yield from _expert_problems(engine.ep, facts)
    yield from _layer_problems(engine, facts)
    if facts.linear_key_heads is not None:
        yield from _divides("engine.tp", engine.tp, facts.linear_key_heads, "linear key heads", "M10")
        yield from _divides("engine.tp", engine.tp, facts.linear_value_heads, "linear value heads", "M10")
        if engine.cp > 1:
            yield f"engine.cp: {engine.cp} with a gated delta net; megatron-core takes cp=1 only [M10]"


def _layer_problems(engine: Megatron, facts: ModelFacts) -> Iterator[str]:
    layers = facts.layers
    if layers is None or engine.pp == 1 or "pipeline_model_parallel_layout" in engine.transformer:
        return
    stages, left, said = engine.pp, layers, [f"{layers} layers"]
    for place in ("first", "last"):
        given = engine.transformer.get(f"num_layers_in_{place}_pipeline_stage")
        if isinstance(given, int):
            stages, left = stages - 1, left - given
            said.append(f"{given} in the {place} stage")
    parts = stages * (engine.vpp or 1)
    if parts and (left < 0 or left % parts):
        vpp = "" if engine.vpp is None else f" x vpp {engine.vpp}"
        yield (
            f"engine.pp: {engine.pp}{vpp} does not fit {', '.join(said)}: {left} do not divide over {parts}; set "
            "transformer={'num_layers_in_first_pipeline_stage': ..., 'num_layers_in_last_pipeline_stage': ...}, or another pp [M9]"
        )


def _fsdp_problems(engine: FSDP | VeOmni, facts: ModelFacts) -> Iterator[str]:
    name, size = ("engine.ulysses", engine.ulysses) if isinstance(engine, FSDPTurbo) else ("engine.sp", engine.sp)
    yield from _divides(name, size, facts.heads, "attention heads", "F4")
    yield from _shares(name, size, facts.kv_heads, "F4")
    if isinstance(engine, VeOmni):
        yield from _expert_problems(engine.ep, facts)


def _expert_problems(ep: int, facts: ModelFacts) -> Iterator[str]:
    if ep > 1 and facts.experts is None and facts.heads is not None:
        yield f"engine.ep: {ep} needs a model with experts, and this one has none; leave ep out [M8]"
    yield from _divides("engine.ep", ep, facts.experts, "experts", "M8")


def _rollout_problems(recipe: Recipe, facts: ModelFacts) -> Iterator[str]:
    rollout = recipe.rollout
    yield from _divides("rollout.tp", rollout.tp, facts.heads, "attention heads", "R3")
    yield from _shares("rollout.tp", rollout.tp, facts.kv_heads, "R3")
    limit = facts.max_positions
    if limit is None:
        return
    if rollout.max_model_len is not None and rollout.max_model_len > limit:
        yield f"rollout.max_model_len: {rollout.max_model_len} is more than the {limit} positions of the model [R7]"
    longest = recipe.max_prompt_length + recipe.max_response_length
    if longest > limit:
        yield (
            f"max_prompt_length: {recipe.max_prompt_length} + max_response_length {recipe.max_response_length} = {longest} tokens "
            f"are more than the {limit} positions of the model [R7]"
        )


def _divides(name: str, size: int, count: int | None, what: str, rule: str) -> Iterator[str]:
    if count is not None and count % size:
        fits = max(smaller for smaller in range(1, size) if count % smaller == 0)
        yield f"{name}: {size} does not divide the {count} {what} of the model; set {fits} [{rule}]"


def _shares(name: str, size: int, kv_heads: int | None, rule: str) -> Iterator[str]:
    if kv_heads is not None and kv_heads % size and size % kv_heads:
        fits = max(smaller for smaller in range(1, size) if kv_heads % smaller == 0 or smaller % kv_heads == 0)
        yield (
            f"{name}: {size} neither divides the {kv_heads} key-value heads of the model nor is a multiple of them; "
            f"set {fits} [{rule}]"
        )
