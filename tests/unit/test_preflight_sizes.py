"""Rules on batches, each with a recipe that keeps it and one that breaks it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ascend_e2e.preflight import batch_problems
from pytest_ascend_e2e.recipe import FSDP2, Megatron, Vllm, plan_layout
from tests.fakes.recipes import recipe_with


def problems_of(devices: int, **fields: Any) -> list[str]:
    recipe = recipe_with(**fields)
    return batch_problems(recipe, plan_layout(recipe, devices))


@pytest.mark.parametrize(
    ("devices", "fields"),
    [
        (8, {}),
        (8, {"ppo_mini_batch_size": 8, "ppo_micro_batch_size_per_gpu": 2}),
        (8, {"engine": Megatron(tp=2), "ppo_micro_batch_size_per_gpu": 4}),
        (8, {"engine": Megatron(pp=2, vpp=2), "ppo_micro_batch_size_per_gpu": 4}),
        (6, {"engine": FSDP2(sp=3), "use_dynamic_bsz": True}),
    ],
)
def test_batches_that_divide_are_no_problem(devices: int, fields: dict[str, Any]) -> None:
    assert problems_of(devices, **fields) == []


@pytest.mark.parametrize(
    ("devices", "fields", "problems"),
    [
        (
            8,
            {"ppo_mini_batch_size": 6},
            ["ppo_mini_batch_size: 6 x rollout.n 2 = 12 responses do not divide over dp 8; set a multiple of 4, such as 8 [B3]"],
        ),
        (
            8,
            {"ppo_micro_batch_size_per_gpu": 3},
            [
                (
                    "ppo_micro_batch_size_per_gpu: 3 does not divide the 16 x 2 / dp 8 = 4 responses of a device; "
                    "set 2, or use_dynamic_bsz=True [B4]"
                ),
            ],
        ),
        (
            4,
            {"engine": FSDP2(sp=2), "train_batch_size": 3, "rollout": Vllm(n=2)},
            [
                (
                    "train_batch_size: 3 x rollout.n 2 = 6 responses do not divide over the 4 devices; "
                    "set a multiple of 2, such as 4 [B1]"
                ),
            ],
        ),
        (
            8,
            {"engine": Megatron(pp=2, vpp=2), "train_batch_size": 6, "ppo_mini_batch_size": 2, "ppo_micro_batch_size_per_gpu": 1},
            [
                (
                    "engine.vpp: 2 takes micro-batches in groups of pp = 2, and a mini-batch has 1; "
                    "change ppo_mini_batch_size or ppo_micro_batch_size_per_gpu, or leave vpp out [M16]"
                ),
            ],
        ),
    ],
)  # fmt: skip
def test_batches_that_do_not_divide_are_told(devices: int, fields: dict[str, Any], problems: list[str]) -> None:
    assert problems_of(devices, **fields) == problems


def test_packing_by_tokens_lifts_the_rules_on_micro_batches() -> None:
    assert problems_of(8, train_batch_size=20, use_dynamic_bsz=True) == []


@given(
    devices=st.integers(min_value=1, max_value=32),
    batch=st.integers(min_value=1, max_value=64),
    mini=st.integers(min_value=1, max_value=64),
    n=st.integers(min_value=1, max_value=8),
    micro=st.integers(min_value=1, max_value=8),
)
def test_no_problem_means_that_every_division_is_whole(*, devices: int, batch: int, mini: int, n: int, micro: int) -> None:
    fields = {
        "train_batch_size": batch,
        "ppo_mini_batch_size": min(mini, batch),
        "rollout": Vllm(n=n),
        "ppo_micro_batch_size_per_gpu": micro,
    }

    problems = problems_of(devices, **fields)

    responses = min(mini, batch) * n
    whole = responses % devices == 0 and responses // devices % micro == 0 and batch * n % devices == 0
    assert (problems == []) == whole
