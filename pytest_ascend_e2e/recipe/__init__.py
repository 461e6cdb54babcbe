"""Recipes: what to train, how it becomes verl's overrides, and how its parallel sizes fill devices. Pure: values in, values out."""

from __future__ import annotations

from .algorithms import DAPO, GROUPING, GRPO, GSPO, PPO, Algorithm
from .engines import FSDP, FSDP2, Engine, FSDPTurbo, Megatron, VeOmni
from .environment import to_environment
from .features import Lora, Profiling, SeparateAsync
from .keys import ACTOR, MODEL, REFERENCE, ROLLOUT, Inputs
from .layout import Layout, plan_layout
from .overrides import Override, flatten, to_overrides
from .recipe import Recipe
from .rollouts import Rollout, Sglang, Vllm
from .settings import settings_of
from .sft import SFT

__all__ = [
    "ACTOR",
    "DAPO",
    "FSDP",
    "FSDP2",
    "GROUPING",
    "GRPO",
    "GSPO",
    "MODEL",
    "PPO",
    "REFERENCE",
    "ROLLOUT",
    "SFT",
    "Algorithm",
    "Engine",
    "FSDPTurbo",
    "Inputs",
    "Layout",
    "Lora",
    "Megatron",
    "Override",
    "Profiling",
    "Recipe",
    "Rollout",
    "SeparateAsync",
    "Sglang",
    "VeOmni",
    "Vllm",
    "flatten",
    "plan_layout",
    "settings_of",
    "to_environment",
    "to_overrides",
]
