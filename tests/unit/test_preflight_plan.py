"""Plans: one verdict from layout, batches, model and composition."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ascend_e2e.preflight import Composition, judge
from pytest_ascend_e2e.recipe import GRPO, Inputs, Megatron, Vllm
from tests.fakes.recipes import recipe_with


def test_a_sound_case_has_a_layout_arguments_and_no_problem() -> None:
    inputs = Inputs(model_path="/m", train_files="/t", val_files="/v", n_gpus_per_node=4)

    plan = judge(recipe_with(env={"A": "1"}), 4, inputs=inputs)

    assert plan.is_sound
    assert str(plan.layout) == "FSDP2 SP1: dp 4 on 4 devices"
    assert "actor_rollout_ref.model.path=/m" in plan.arguments
    assert plan.environment == {"A": "1"}
    assert plan.composed is None


def test_what_is_left_open_is_judged_by_name() -> None:
    plan = judge(recipe_with(), 4, nodes=2)

    assert "data.train_files=gsm8k/train.parquet" in plan.arguments
    assert "trainer.n_gpus_per_node=4" in plan.arguments
    assert "trainer.nnodes=2" in plan.arguments


POSSIBLE: dict[str, tuple[dict[str, Any], int, int, dict[str, int], str]] = {
    "devices that do": ({"rollout": Vllm(n=4, tp=4)}, 2, 1, {"num_attention_heads": 8}, "set tp=2, or use 4 devices [R1]"),
    "another rule of the model": ({"rollout": Vllm(n=4, tp=3)}, 2, 1, {"num_attention_heads": 8}, "set tp=2 [R1]"),
    "batches": ({"rollout": Vllm(n=4, tp=3)}, 2, 1, {"num_attention_heads": 9}, "set tp=2 [R1]"),
    "another rule of the layout": (
        {"engine": Megatron(tp=3), "rollout": Vllm(tp=4), "train_batch_size": 12},
        3,
        1,
        {"num_attention_heads": 12},
        "set tp=3 [R1]",
    ),
    "whole nodes": ({"rollout": Vllm(n=5, tp=5)}, 2, 2, {"num_attention_heads": 5}, "set tp=4 [R1]"),
}


@pytest.mark.parametrize("name", POSSIBLE)
def test_another_number_of_devices_is_proposed_where_every_rule_holds_on_it(name: str) -> None:
    fields, devices, nodes, model, expected = POSSIBLE[name]

    plan = judge(recipe_with(**fields), devices, nodes, model_config=model)

    (problem,) = [problem for problem in plan.problems if problem.endswith("[R1]")]
    assert problem.endswith(f"devices; {expected}")


def test_problems_of_layout_and_model_come_together() -> None:
    plan = judge(recipe_with(engine=Megatron(tp=3)), 4, model_config={"num_attention_heads": 8})

    assert plan.layout is None
    assert [problem.split(":")[0] for problem in plan.problems] == [
        "engine",
        "engine.etp is not set, so it is TP = 3",
        "engine.tp",
        "engine.tp",
    ]


def test_problems_of_batches_need_a_layout() -> None:
    plan = judge(recipe_with(train_batch_size=3), 4)

    assert plan.layout is not None
    assert plan.problems[0].startswith("ppo_mini_batch_size: 3 x rollout.n 2 = 6 responses")


def test_what_a_simulation_adds_is_among_the_arguments() -> None:
    plan = judge(recipe_with(), 2, extra={"trainer": {"device": "cpu"}})

    assert "trainer.device=cpu" in plan.arguments


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"rollout": Vllm(n=1), "train_batch_size": 16}, "rollout.n: 1 response to a prompt leaves grpo no group"),
        ({"algorithm": GRPO(use_kl_loss=True, use_kl_in_reward=True)}, "algorithm: both use_kl_loss and use_kl_in_reward"),
        ({"engine": Megatron(vanilla_mbridge=True)}, "engine.vanilla_mbridge: "),
        ({"train_batch_size": 24, "ppo_mini_batch_size": 16}, "train_batch_size: 24 is no multiple of ppo_mini_batch_size = 16"),
        (
            {"overrides": {"data": {"truncation": "left"}}},
            "overrides['data']['truncation']: verl's trainer never reads data.truncation",
        ),
        ({"overrides": {"skip.rollout.enable": True}}, "overrides['skip.rollout.enable']: verl's trainer never reads"),
    ],
)
def test_what_does_not_do_what_it_seems_is_a_warning(fields: dict[str, Any], text: str) -> None:
    plan = judge(recipe_with(**fields), 4)

    assert plan.is_sound
    assert [warning for warning in plan.warnings if warning.startswith(text)]


def test_a_composition_without_problems_is_noted() -> None:
    plan = judge(recipe_with(), 4).with_composition(Composition(is_checked=True, config={"a": 1}))

    assert (plan.composed, plan.is_sound, plan.config) == (True, True, {"a": 1})


def test_a_problem_of_the_composition_is_a_problem_of_the_plan() -> None:
    plan = judge(recipe_with(), 4).with_composition(Composition(is_checked=True, problems=("overrides['x']: unknown",)))

    assert (plan.composed, plan.problems) == (False, ("overrides['x']: unknown",))


def test_a_composition_that_could_not_be_checked_is_said_plainly() -> None:
    plan = judge(recipe_with(model="some/model"), 4).with_composition(
        Composition(is_checked=False, reason="composition was not checked: no verl")
    )

    assert (plan.composed, plan.is_sound, plan.warnings) == (None, True, ("composition was not checked: no verl",))


def test_dataclasses_that_could_not_be_asked_are_said_plainly() -> None:
    plan = judge(recipe_with(model="some/model"), 4).with_composition(
        Composition(is_checked=True, config={"a": 1}, unbuilt="verl's own dataclasses were not asked: no torch")
    )

    assert (plan.composed, plan.is_sound, plan.warnings) == (True, True, ("verl's own dataclasses were not asked: no torch",))
