"""End-to-end tests of RL training (verl) on Huawei Ascend NPUs, as a pytest plugin.

What a test file imports stands here. Importing it loads neither pytest nor any library of the training: the markers come from the
plugin when they are asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .recipe import (
    DAPO,
    FSDP,
    FSDP2,
    GRPO,
    GSPO,
    PPO,
    SFT,
    FSDPTurbo,
    Layout,
    Lora,
    Megatron,
    Profiling,
    Recipe,
    SeparateAsync,
    Sglang,
    VeOmni,
    Vllm,
    plan_layout,
)

if TYPE_CHECKING:
    from .plugin.fixtures import Trainer
    from .plugin.markers import npu_e2e, npu_nightly, quarantine
    from .session import Run

__all__ = [
    "DAPO",
    "FSDP",
    "FSDP2",
    "GRPO",
    "GSPO",
    "PPO",
    "SFT",
    "FSDPTurbo",
    "Layout",
    "Lora",
    "Megatron",
    "Profiling",
    "Recipe",
    "Run",
    "SeparateAsync",
    "Sglang",
    "Trainer",
    "VeOmni",
    "Vllm",
    "npu_e2e",
    "npu_nightly",
    "plan_layout",
    "quarantine",
]

_ELSEWHERE = {
    "npu_nightly": "plugin.markers",
    "npu_e2e": "plugin.markers",
    "quarantine": "plugin.markers",
    "Trainer": "plugin.fixtures",
    "Run": "session",
}


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(f".{_ELSEWHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
