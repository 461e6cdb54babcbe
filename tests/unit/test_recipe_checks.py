"""What a recipe refuses, and that it tells everything at once."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from pytest_ascend_e2e.errors import RecipeError
from pytest_ascend_e2e.recipe import DAPO, FSDP, FSDP2, GRPO, GSPO, PPO, Lora, Megatron, Recipe, Sglang, Vllm, to_environment

FIELDS: dict[str, Any] = {
    "algorithm": GRPO(),
    "model": "Qwen/Qwen3-8B",
    "dataset": "gsm8k",
    "engine": FSDP2(),
    "rollout": Vllm(n=4),
    "train_batch_size": 16,
    "max_prompt_length": 512,
    "max_response_length": 512,
    "steps": 2,
}


def recipe_with(**fields: Any) -> Recipe:
    return Recipe(**{**FIELDS, **fields})


def problems_of(**fields: Any) -> tuple[str, ...]:
    with pytest.raises(RecipeError) as caught:
        recipe_with(**fields)
    return caught.value.problems


def test_all_problems_of_a_recipe_are_told_together() -> None:
    problems = problems_of(
        algorithm=GRPO(kl_loss_type="low_var"),
        engine=Megatron(tp=0),
        rollout=Vllm(gpu_memory_utilization=1.5),
        steps=0,
        env={"A": 1},
    )

    assert [problem.split(":")[0] for problem in problems] == [
        "algorithm.kl_loss_type",
        "engine.tp",
        "rollout.gpu_memory_utilization",
        "steps",
        "env['A']",
    ]


def test_a_name_of_a_closed_set_is_told_with_the_nearest() -> None:
    (problem,) = problems_of(algorithm=GRPO(loss_agg_mode="seq-mean-token-means"))

    assert problem.startswith("algorithm.loss_agg_mode: 'seq-mean-token-means' cannot be used: expected one of 'token-mean', ")
    assert problem.endswith("did you mean 'seq-mean-token-mean'? [K4]")


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"train_batch_size": True}, "train_batch_size"),
        ({"steps": 1.5}, "steps"),
        ({"lr": 0}, "lr"),
        ({"lr": float("nan")}, "lr"),
        ({"lr": "1e-6"}, "lr"),
        ({"shuffle": 1}, "shuffle"),
        ({"seed": -1}, "seed"),
        ({"model": " "}, "model"),
        ({"overrides": {1: 2}}, "overrides"),
        ({"algorithm": GRPO(use_kl_loss=1)}, "algorithm.use_kl_loss"),  # type: ignore[arg-type]  # what is being tested
        ({"algorithm": GSPO(clip_ratio_low=0)}, "algorithm.clip_ratio_low"),
        ({"algorithm": GRPO(adv_estimator="gae")}, "algorithm.adv_estimator"),
        ({"algorithm": DAPO(overlong_buffer_len=0)}, "algorithm.overlong_buffer_len"),
        ({"algorithm": PPO(gamma=1.5)}, "algorithm.gamma"),
        ({"engine": FSDP(fsdp_size=0)}, "engine.fsdp_size"),
        ({"engine": FSDP(dtype="fp16")}, "engine.dtype"),
        ({"engine": Megatron(etp=0)}, "engine.etp"),
        ({"rollout": Vllm(top_k=0)}, "rollout.top_k"),
        ({"rollout": Sglang(attention_backend="")}, "rollout.attention_backend"),
        ({"env": {"A B": "1"}}, "env"),
        ({"env": {"A": 1}}, "env['A']"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(fields: dict[str, Any], name: str) -> None:
    (problem,) = problems_of(**fields)

    assert problem.startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"ppo_mini_batch_size": 32}, "ppo_mini_batch_size: 32 is more than train_batch_size = 16"),
        ({"ppo_micro_batch_size_per_gpu": None}, "ppo_micro_batch_size_per_gpu: None needs use_dynamic_bsz=True"),
        ({"dataset_size": 15}, "dataset_size: 15 rows are fewer than train_batch_size = 16"),
        (
            {"use_dynamic_bsz": True, "ppo_max_token_len_per_gpu": 500, "engine": FSDP2(sp=2)},
            "ppo_max_token_len_per_gpu: 500 x sp 2 = 1000 tokens cannot hold the longest sequence, 512 + 512 = 1024",
        ),
        (
            {"algorithm": DAPO(overlong_buffer_len=1024)},
            "algorithm.overlong_buffer_len: 1024 is more than max_response_length = 512",
        ),
        ({"engine": FSDP2(sp=2), "use_remove_padding": False}, "engine.sp: 2 needs use_remove_padding=True"),
        ({"engine": FSDP2(offload=True, offload_policy=True)}, "engine.offload_policy: True cannot be used"),
        ({"reference": FSDP2()}, "reference: verl builds none for this recipe"),
        ({"algorithm": GRPO(use_kl_loss=True), "reference": FSDP()}, "reference: FSDP beside engine FSDP2"),
        (
            {"algorithm": GRPO(use_kl_loss=True), "engine": Megatron(tp=2), "reference": Megatron()},
            "reference.tp: 1 beside engine.tp = 2",
        ),
    ],
)
def test_values_that_contradict_one_another_are_refused(fields: dict[str, Any], text: str) -> None:
    (problem,) = problems_of(**fields)

    assert problem.startswith(text)


def test_a_class_in_place_of_its_object_is_told() -> None:
    (problem,) = problems_of(algorithm=GRPO)

    assert problem == "algorithm: 'GRPO' cannot be used: this is the class; write GRPO()"


@pytest.mark.parametrize("name", ["ASCEND_RT_VISIBLE_DEVICES", "HCCL_NPU_SOCKET_PORT_RANGE", "VERL_FILE_LOGGER_PATH"])
def test_variables_that_the_run_owns_are_refused(name: str) -> None:
    (problem,) = problems_of(env={name: "61000-61050"})

    assert problem.startswith(f"env['{name}']: '61000-61050' cannot be used: ")


def test_the_environment_of_a_recipe_is_its_own_variables() -> None:
    recipe = recipe_with(env={"HCCL_CONNECT_TIMEOUT": "1500"})

    assert to_environment(recipe) == {"HCCL_CONNECT_TIMEOUT": "1500"}


def test_a_reference_exists_where_a_kl_term_does() -> None:
    kinds = [GRPO(), GRPO(use_kl_loss=True), GSPO(use_kl_in_reward=True), PPO(use_kl_loss=True)]

    found = [recipe_with(algorithm=kind).has_reference for kind in kinds]

    assert found == [False, True, True, True]


def test_a_mapping_changed_later_does_not_change_the_recipe() -> None:
    overrides: dict[str, Any] = {"trainer": {"save_freq": 5}}
    recipe = recipe_with(overrides=overrides)

    overrides["trainer"]["save_freq"] = 7

    assert recipe.overrides == {"trainer": {"save_freq": 5}}


def test_a_recipe_can_be_varied_by_replace() -> None:
    recipe = recipe_with(overrides={"trainer.save_freq": 1})

    other = dataclasses.replace(recipe, steps=9)

    assert (other.steps, other.overrides, recipe.steps) == (9, {"trainer.save_freq": 1}, 2)


def test_a_mini_batch_left_out_is_the_batch() -> None:
    assert recipe_with().mini_batch_size == 16


@pytest.mark.parametrize(
    ("algorithm", "engine", "rollout", "name"),
    [
        (GSPO(), Megatron(), Sglang(), "gspo-Qwen3-8B-megatron-sglang"),
        (PPO(), FSDP(), Vllm(), "ppo-Qwen3-8B-fsdp-vllm"),
        (DAPO(), FSDP2(), Vllm(), "dapo-Qwen3-8B-fsdp2-vllm"),
    ],
)
def test_the_short_name_says_what_is_trained(algorithm: Any, engine: Any, rollout: Any, name: str) -> None:
    assert recipe_with(algorithm=algorithm, engine=engine, rollout=rollout).short_name == name


MISNAMED: dict[str, tuple[Callable[..., object], dict[str, object], str]] = {
    "recipe": (recipe_with, {"stpes": 3}, "Recipe has no field 'stpes'; did you mean 'steps'?"),
    "none near": (recipe_with, {"xyz": 3}, "Recipe has no field 'xyz'; accepted are algorithm, model, dataset, "),
    "algorithm": (GRPO, {"kl_los_coef": 0.1}, "GRPO has no field 'kl_los_coef'; did you mean 'kl_loss_coef'?"),
    "engine": (Megatron, {"tpp": 2}, "Megatron has no field 'tpp'; did you mean 'tp'?"),
    "heir": (FSDP2, {"ofload_policy": True}, "FSDP2 has no field 'ofload_policy'; did you mean 'offload_policy'?"),
    "rollout": (Vllm, {"responses": 4}, "Vllm has no field 'responses'; accepted are n, tp, dp, ep, "),
    "lora": (Lora, {}, "Lora needs the field 'rank'; write rank=..."),
    "slip of what is needed": (Lora, {"rnak": 8}, "Lora has no field 'rnak'; did you mean 'rank'?"),
}


@pytest.mark.parametrize("mistake", MISNAMED)
def test_a_misnamed_field_is_told_with_those_that_there_are(mistake: str) -> None:
    kind, given, expected = MISNAMED[mistake]

    with pytest.raises(RecipeError) as raised:
        kind(**given)

    (problem,) = raised.value.problems
    assert problem.startswith(expected)


def test_all_misnamed_fields_are_told_together() -> None:
    with pytest.raises(RecipeError) as raised:
        recipe_with(stpes=3, modle="x", dataset="gsm8k")

    assert len(raised.value.problems) == 2


def test_a_field_without_its_name_is_told() -> None:
    with pytest.raises(RecipeError, match=r"GRPO takes its fields by name, got 1\.0 without one; accepted are use_kl_loss, "):
        GRPO(1.0)  # type: ignore[arg-type, call-arg]  # the mistake


def test_the_signature_of_a_recipe_is_that_of_its_fields() -> None:
    assert list(inspect.signature(Recipe).parameters) == [field.name for field in dataclasses.fields(Recipe)]
