"""Rules on a model: which parallel sizes its heads, experts and layers allow.

The facts are those of a model's `config.json`, given as a mapping; a fact that is absent is not judged. Rules are those of
megatron-core 0.16 (`transformer_config.py`), verl 0.9.1 and the rollout engines. Must not know: where the file lies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..recipe import FSDP, SFT, FSDPTurbo, Megatron, Recipe, VeOmni

_EXPERT_KEYS = ("num_experts", "n_routed_experts", "num_local_experts")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFacts:
    """The numbers of a model that rules speak of; None where its configuration does not say."""

    heads: int | None = None
    kv_heads: int | None = None
    layers: int | None = None
    experts: int | None = None
    linear_key_heads: int | None = None
    linear_value_heads: int | None = None
    max_positions: int | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> ModelFacts:
        """Return the facts of a `config.json`; a model of several modalities has them in its `text_config`."""
        inner = config.get("text_config")
        text = {**config, **inner} if isinstance(inner, Mapping) else config
        heads = _number(text, "num_attention_heads")
        return cls(
            heads=heads,
            kv_heads=_number(text, "num_key_value_heads") or heads,
            layers=_number(text, "num_hidden_layers"),
            experts=next((found for key in _EXPERT_KEYS if (found := _number(text, key))), None),
            linear_key_heads=_number(text, "linear_num_key_heads"),
            linear_value_heads=_number(text, "linear_num_value_heads"),
            max_positions=_number(text, "max_position_embeddings"),
        )


def model_problems(recipe: Recipe | SFT, facts: ModelFacts) -> list[str]:
    """Return one text for each rule on the model that a recipe breaks."""
    engine = recipe.engine
    training = _megatron_problems(engine, facts) if isinstance(engine, Megatron) else _fsdp_problems(engine, facts)
    rollout = () if isinstance(recipe, SFT) else _rollout_problems(recipe, facts)
    return [*training, *rollout]


def _megatron_problems(engine: Megatron, facts: ModelFacts) -> Iterator[str]:
    yield from _divides("engine.tp", engine.tp, facts.heads, "attention heads")
    yield from _shares("engine.tp", engine.tp, facts.kv_heads)
    yield from _expert_problems(engine.ep, facts)
    yield from _layer_problems(engine, facts)
    if facts.linear_key_heads is not None:
        yield from _divides("engine.tp", engine.tp, facts.linear_key_heads, "linear key heads")
        yield from _divides("engine.tp", engine.tp, facts.linear_value_heads, "linear value heads")
        if engine.cp > 1:
            yield f"engine.cp: {engine.cp} with a gated delta net; megatron-core takes cp=1 only"


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
            "transformer={'num_layers_in_first_pipeline_stage': ..., 'num_layers_in_last_pipeline_stage': ...}, or another pp"
        )


def _fsdp_problems(engine: FSDP | VeOmni, facts: ModelFacts) -> Iterator[str]:
    name, size = ("engine.ulysses", engine.ulysses) if isinstance(engine, FSDPTurbo) else ("engine.sp", engine.sp)
    yield from _divides(name, size, facts.heads, "attention heads")
    yield from _shares(name, size, facts.kv_heads)
    if isinstance(engine, VeOmni):
        yield from _expert_problems(engine.ep, facts)


def _expert_problems(ep: int, facts: ModelFacts) -> Iterator[str]:
    if ep > 1 and facts.experts is None and facts.heads is not None:
        yield f"engine.ep: {ep} needs a model with experts, and this one has none; leave ep out"
    yield from _divides("engine.ep", ep, facts.experts, "experts")


def _rollout_problems(recipe: Recipe, facts: ModelFacts) -> Iterator[str]:
    rollout = recipe.rollout
    yield from _divides("rollout.tp", rollout.tp, facts.heads, "attention heads")
    yield from _shares("rollout.tp", rollout.tp, facts.kv_heads)
    limit = facts.max_positions
    if limit is None:
        return
    if rollout.max_model_len is not None and rollout.max_model_len > limit:
        yield f"rollout.max_model_len: {rollout.max_model_len} is more than the {limit} positions of the model"
    longest = recipe.max_prompt_length + recipe.max_response_length
    if longest > limit:
        yield (
            f"max_prompt_length: {recipe.max_prompt_length} + max_response_length {recipe.max_response_length} = {longest} tokens "
            f"are more than the {limit} positions of the model"
        )


def _divides(name: str, size: int, count: int | None, what: str) -> Iterator[str]:
    if count is not None and count % size:
        fits = max(smaller for smaller in range(1, size) if count % smaller == 0)
        yield f"{name}: {size} does not divide the {count} {what} of the model; set {fits}"


def _shares(name: str, size: int, kv_heads: int | None) -> Iterator[str]:
    if kv_heads is not None and kv_heads % size and size % kv_heads:
        fits = max(smaller for smaller in range(1, size) if kv_heads % smaller == 0 or smaller % kv_heads == 0)
        yield f"{name}: {size} neither divides the {kv_heads} key-value heads of the model nor is a multiple of them; set {fits}"


def _number(config: Mapping[str, object], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
