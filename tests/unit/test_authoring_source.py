"""A case as text: it is Python that builds the same recipe, in the format of ruff."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ascend_e2e import FSDP2, GRPO, SFT, Megatron, Recipe, Vllm
from pytest_ascend_e2e.authoring import CaseText, distinct_names, module_text

ROOT = Path(__file__).parent.parent.parent
LONG = Recipe(
    algorithm=GRPO(use_kl_loss=True, kl_loss_coef=1e-05),
    model="Qwen/Qwen3-8B",
    dataset="gsm8k",
    engine=Megatron(
        tp=2,
        transformer={"recompute_method": "uniform", "recompute_granularity": "full", "recompute_num_layers": 1, "a": [1, 2]},
        optimizer={"optimizer_cpu_offload": True, "overlap_cpu_optimizer_d2h_h2d": True, "use_precision_aware_optimizer": False},
    ),
    rollout=Vllm(n=5, tp=2, gpu_memory_utilization=0.6, engine_kwargs={"compilation_config": {"sizes": list(range(100, 140))}}),
    train_batch_size=32,
    max_prompt_length=512,
    max_response_length=1024,
    steps=15,
    overrides={"data.x": 'it\'s "quoted" \\n', "data.y": "a 'single' one", "data.z": None},
    env={"HCCL_CONNECT_TIMEOUT": "1500"},
)
SHORT = SFT(model="m/x", dataset="gsm8k_sft", engine=FSDP2(), steps=2)


def text_of(*recipes: Recipe | SFT) -> str:
    cases = [
        CaseText(name=f"test_{place}", marker="npu_nightly", runner="a3-16", nodes=place + 1, recipe=recipe)
        for place, recipe in enumerate(recipes)
    ]
    return module_text(cases, "Cases.")


def test_the_text_builds_the_same_recipe() -> None:
    module: dict[str, Any] = {}

    exec(compile(text_of(LONG, SHORT), "cases", "exec"), module)  # noqa: S102  # what is tested is that it is Python

    (first,), (second,) = (module[name].pytestmark for name in ("test_0", "test_1"))
    assert first.kwargs == {"runner": "a3-16", "recipe": LONG}
    assert second.kwargs == {"runner": "a3-16", "nodes": 2, "recipe": SHORT}


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="needs ruff to hold the format against")
def test_ruff_would_change_nothing() -> None:
    text = text_of(LONG, SHORT)

    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", "test_cases.py", "-"],
        input=text, capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip

    assert done.stdout == text


def test_defaults_are_left_out() -> None:
    text = text_of(SHORT)

    assert 'recipe=SFT(model="m/x", dataset="gsm8k_sft", engine=FSDP2(), steps=2)' in text
    assert "check_rewards" not in text


def test_log_probs_are_judged_where_they_are_printed_only() -> None:
    silent = Recipe(
        algorithm=GRPO(), model="m", dataset="d", engine=FSDP2(), rollout=Vllm(n=2, calculate_log_probs=False),
        train_batch_size=8, max_prompt_length=8, max_response_length=8, steps=1,
    )  # fmt: skip

    assert "check_logprob_consistency" in text_of(LONG)
    assert "check_logprob_consistency" not in text_of(silent)


def test_numbers_that_are_not_finite_are_python() -> None:
    recipe = replace(LONG, overrides={"data.+x": [float("inf"), -float("inf")], "data.+y": float("nan")})
    module: dict[str, Any] = {}

    exec(compile(text_of(recipe), "cases", "exec"), module)  # noqa: S102  # what is tested is that it is Python

    (mark,) = module["test_0"].pytestmark
    assert str(mark.kwargs["recipe"].overrides) == str(recipe.overrides)


def test_a_number_behind_a_name_is_not_there_already() -> None:
    assert distinct_names(["test_a", "test_a_2", "test_a", "test_a_2"]) == ["test_a", "test_a_2", "test_a_3", "test_a_2_2"]


def test_a_name_that_is_there_already_gets_a_number() -> None:
    assert distinct_names(["test_a", "test_b", "test_a"]) == ["test_a", "test_b", "test_a_2"]
