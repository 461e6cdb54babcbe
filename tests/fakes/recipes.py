"""A recipe of GRPO that every rule is content with, and what a test changes of it."""

from __future__ import annotations

from typing import Any

from pytest_ascend_e2e.recipe import FSDP2, GRPO, Recipe, Vllm


def recipe_with(**given: Any) -> Recipe:
    fields: dict[str, Any] = {
        "algorithm": GRPO(),
        "model": "Qwen/Qwen3-8B",
        "dataset": "gsm8k",
        "engine": FSDP2(),
        "rollout": Vllm(n=2),
        "train_batch_size": 16,
        "max_prompt_length": 64,
        "max_response_length": 64,
        "steps": 1,
        **given,
    }
    return Recipe(**fields)
