"""Which architecture a model has, told by its name: what a simulation needs to know to make a tiny model of the same kind.

Must not know: where weights lie, or how a tiny model is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from ..errors import ModelError

Architecture = Literal["qwen3", "qwen3_moe", "qwen3_vl"]

# The sizes of the tiny language models, by their keys in config.json. vLLM's attention on a CPU takes no head below 32.
_TINY = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 8192,
}
_TINY_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64}

_VARIANT = r"(-Base|-Instruct|-Thinking)?(-\d{4})?"
_SIZE = r"\d+(\.\d+)?B"
_PATTERNS: tuple[tuple[Architecture, re.Pattern[str]], ...] = (
    ("qwen3", re.compile(rf"Qwen3-{_SIZE}{_VARIANT}")),
    ("qwen3_moe", re.compile(rf"Qwen3-{_SIZE}-A{_SIZE}{_VARIANT}")),
    ("qwen3_vl", re.compile(rf"Qwen3-VL-{_SIZE}{_VARIANT}")),
)
_REASONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Qwen3\.5-.*"), "the simulation cannot train its gated delta net on a CPU"),
    (re.compile(rf"Qwen3-VL-{_SIZE}-A.*"), "vision with experts has no tiny model yet"),
    (re.compile(r"Qwen3-.*(FP8|AWQ|GPTQ|Int\d|GGUF).*", re.IGNORECASE), "quantised weights are not trained"),
)
_KNOWN = (
    "Qwen/Qwen3-8B and its like (dense), Qwen/Qwen3-30B-A3B and its like (experts), Qwen/Qwen3-VL-8B-Instruct and its like (images)"
)


def architecture_of(model_id: str) -> Architecture:
    """Return the architecture of a model as Transformers' `model_type` names it; an absolute path counts by its last two parts.

    Raises:
        ModelError: there is no tiny model of this architecture; the message says which there are.
    """
    owner, _, name = "/".join(model_id.rstrip("/").split("/")[-2:]).rpartition("/")
    if owner == "Qwen":
        for architecture, pattern in _PATTERNS:
            if pattern.fullmatch(name):
                return architecture
    reason = next((f" ({text})" for pattern, text in _REASONS if owner == "Qwen" and pattern.fullmatch(name)), "")
    raise ModelError(
        f"model {model_id!r}: no tiny model of this architecture can be made{reason}. There are tiny models for {_KNOWN}; "
        "take one of these for the simulation, or run the case on an NPU runner"
    )


def tiny_sizes(architecture: Architecture) -> Mapping[str, int]:
    """Return the sizes of the tiny language model of this architecture, by their keys in `config.json`."""
    return {**_TINY, **_TINY_EXPERTS} if architecture == "qwen3_moe" else dict(_TINY)
