"""What is known of a model without loading it: from its `config.json`, else from a table of the models that verl's jobs train.

Must not know: rules, or where the file lies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml

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
    hidden: int | None = None
    vocabulary: int | None = None
    max_positions: int | None = None
    has_vision: bool = False

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
            hidden=_number(text, "hidden_size"),
            vocabulary=_number(text, "vocab_size"),
            max_positions=_number(text, "max_position_embeddings"),
            has_vision=bool(config.get("vision_config") or config.get("vision")),
        )


@cache
def known_models() -> Mapping[str, Mapping[str, object]]:
    """Return the configurations of the shipped table by the name of the model, each with its `source`."""
    text = resources.files(__package__).joinpath("models.yaml").read_text(encoding="utf-8")
    loaded: Mapping[str, Mapping[str, object]] = yaml.safe_load(text)
    return loaded


def facts_of(model: str, config: Mapping[str, object] | None) -> ModelFacts | None:
    """Return the facts of a model: of its own configuration where that is at hand, else of the table, None where it has none."""
    found = config if config is not None else known_models().get(model)
    return None if found is None else ModelFacts.from_config(found)


def _number(config: Mapping[str, object], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
