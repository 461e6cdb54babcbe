"""Recipes: what to train, how it becomes verl's overrides, and how its parallel sizes fill devices. Pure: values in, values out."""

from __future__ import annotations

from .algorithms import DAPO, GRPO, GSPO, PPO, Algorithm
from .engines import FSDP, FSDP2, Engine, Megatron
from .environment import to_environment
from .layout import Layout, plan_layout
from .overrides import Override, to_overrides
from .recipe import Recipe
from .rollouts import Rollout, Sglang, Vllm
from .settings import Inputs

__all__ = [
    "DAPO",
    "FSDP",
    "FSDP2",
    "GRPO",
    "GSPO",
    "PPO",
    "Algorithm",
    "Engine",
    "Inputs",
    "Layout",
    "Megatron",
    "Override",
    "Recipe",
    "Rollout",
    "Sglang",
    "Vllm",
    "plan_layout",
    "to_environment",
    "to_overrides",
]
