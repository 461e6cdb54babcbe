"""Engines, features and the supervised recipe that came after the first ones: what they write, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ascend_e2e.errors import LayoutError, RecipeError
from pytest_ascend_e2e.recipe import (
    FSDP,
    GRPO,
    SFT,
    FSDPTurbo,
    Inputs,
    Lora,
    Megatron,
    Profiling,
    Recipe,
    SeparateAsync,
    VeOmni,
    plan_layout,
    to_overrides,
)
from tests.fakes import recipes

INPUTS = Inputs(model_path="/m", train_files="/t", val_files="/v", n_gpus_per_node=8)
ACTOR, REFERENCE, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.ref", "actor_rollout_ref.rollout"


def recipe_with(**given: Any) -> Recipe:
    return recipes.recipe_with(**{"algorithm": GRPO(use_kl_loss=True), **given})


def sft_with(**given: Any) -> SFT:
    return SFT(**{"model": "Qwen/Qwen3-8B", "dataset": "gsm8k_sft", "engine": FSDP(), "steps": 2, **given})


def written(recipe: Recipe | SFT) -> dict[str, object]:
    return {override.key: override.value for override in to_overrides(recipe, INPUTS)}


def refusal(make: Any, **given: Any) -> tuple[str, ...]:
    with pytest.raises(RecipeError) as caught:
        make(**given)
    return caught.value.problems


def test_veomni_writes_its_own_section_for_actor_and_reference() -> None:
    keys = written(recipe_with(engine=VeOmni(sp=2, ep=4, fsdp_size=4, offload=True)))

    assert keys["model_engine"] == "veomni"
    for role in (ACTOR, REFERENCE):
        assert keys[f"{role}.veomni.ulysses_parallel_size"] == 2
        assert keys[f"{role}.veomni.expert_parallel_size"] == 4
        assert keys[f"{role}.veomni.param_offload"] is True
    assert f"{ACTOR}.veomni.dtype" not in keys


def test_fsdp_turbo_writes_its_plan_for_actor_and_reference() -> None:
    keys = written(recipe_with(engine=FSDPTurbo(fully_shard=4, ulysses=2, turbo={"memory.recompute_plan": ["a.{*}"]})))

    for role in (ACTOR, REFERENCE):
        assert keys[f"{role}.strategy"] == "fsdp_turbo"
        assert keys[f"{role}.fsdp_config.turbo_config.distributed.fully_shard_parallel_size"] == 4
        assert keys[f"{role}.fsdp_config.turbo_config.memory.recompute_plan"] == ["a.{*}"]


def test_profiling_reaches_every_role_that_verl_builds() -> None:
    with_reference = written(recipe_with(profiling=Profiling(steps=[1], ranks=[0, 1])))
    without = written(recipe_with(algorithm=GRPO(), profiling=Profiling(steps=[1])))

    assert with_reference[f"{REFERENCE}.profiler.ranks"] == (0, 1)
    assert with_reference[f"{ROLLOUT}.profiler.enable"] is True
    assert without[f"{ACTOR}.profiler.all_ranks"] is True
    assert f"{REFERENCE}.profiler.enable" not in without


def test_the_asynchronous_trainer_splits_the_devices_of_a_node() -> None:
    recipe = recipe_with(trainer=SeparateAsync(rollout_devices=6, parameter_sync_step=4), ppo_mini_batch_size=4)

    keys, layout = written(recipe), plan_layout(recipe, 8)

    assert (keys["trainer.n_gpus_per_node"], keys[f"{ROLLOUT}.n_gpus_per_node"]) == (2, 6)
    assert (layout.devices, layout.dp, layout.pool, layout.replicas) == (2, 2, 6, 6)
    assert str(layout) == "FSDP2 SP1: dp 2 on 2 devices, 6 roll out"


def test_the_asynchronous_trainer_needs_devices_to_train_on() -> None:
    recipe = recipe_with(trainer=SeparateAsync(rollout_devices=8), ppo_mini_batch_size=16)

    with pytest.raises(LayoutError, match=r"trainer.rollout_devices: 8 of 8 devices leave none to train on; set at most 7"):
        plan_layout(recipe, 8)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"engine": Megatron(), "lora": Lora(rank=8)}, "lora: Megatron does not read these fields"),
        ({"lora": Lora(rank=0)}, "lora.rank: 0 cannot be used"),
        ({"lora": 8}, "lora: 8 cannot be used: expected Lora(...)"),
        ({"profiling": Profiling(steps=[])}, "profiling.steps: [] cannot be used"),
        ({"profiling": Profiling(steps=[1], level="level3")}, "profiling.level: 'level3' cannot be used"),
        (
            {"trainer": SeparateAsync(rollout_devices=4, parameter_sync_step=3), "ppo_mini_batch_size": 4},
            "train_batch_size: 16 must be trainer.parameter_sync_step 3 x ppo_mini_batch_size 4 = 12",
        ),
        (
            {"trainer": SeparateAsync(rollout_devices=4, checkpoint_backend="naive")},
            "trainer.checkpoint_backend: 'naive' cannot be used",
        ),
        (
            {"trainer": SeparateAsync(rollout_devices=4, max_off_policy_strategy="keep")},
            "trainer.max_off_policy_strategy: 'keep' cannot be used",
        ),
        ({"engine": FSDPTurbo(sp=2)}, "engine.sp: 2 cannot be used: FSDP-turbo splits sequences itself"),
        ({"engine": VeOmni(dtype="float16")}, "engine.dtype: 'float16' cannot be used"),
        ({"engine": VeOmni(sp=2), "use_remove_padding": False}, "engine.sp: 2 needs use_remove_padding=True"),
    ],
)
def test_a_feature_that_cannot_work_is_refused(given: dict[str, Any], text: str) -> None:
    problems = refusal(recipe_with, **given)

    assert any(problem.startswith(text) for problem in problems), problems


def test_a_supervised_recipe_chooses_verls_groups_and_engine() -> None:
    keys = written(sft_with(engine=Megatron(tp=2, transformer={"use_flash_attn": True})))

    assert (keys["engine"], keys["optim"], keys["engine.tensor_model_parallel_size"]) == ("megatron", "megatron", 2)
    assert keys["engine.override_transformer_config.use_flash_attn"] is True
    assert "actor_rollout_ref.model.path" not in keys
    assert keys["model.path"] == "/m"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"engine": FSDP(sp=2), "use_remove_padding": False}, "engine.sp: 2 needs use_remove_padding=True"),
        ({"max_token_len_per_gpu": 512}, "max_token_len_per_gpu: 512 x 1 = 512 tokens cannot hold a sequence of max_length = 1024"),
        ({"engine": VeOmni(), "lora": Lora(rank=8)}, "lora: VeOmni does not read these fields"),
        ({"launcher": "mpirun"}, "launcher: 'mpirun' cannot be used"),
        ({"engine": "fsdp"}, "engine: 'fsdp' cannot be used: expected Megatron(...)"),
        ({"overrides": {"optim.lr": 1}}, "overrides['optim.lr']: optim.lr is what the field lr sets"),
    ],
)
def test_a_supervised_recipe_that_cannot_work_is_refused(given: dict[str, Any], text: str) -> None:
    problems = refusal(sft_with, **given)

    assert any(problem.startswith(text) for problem in problems), problems


@pytest.mark.parametrize(
    ("recipe", "nodes", "text"),
    [
        (sft_with(engine=FSDP(sp=3)), 1, "engine: sp = 3 does not divide 8 devices"),
        (sft_with(processes_per_node=9), 1, "processes_per_node: 9 is more than the 8 devices of a node"),
        (sft_with(), 2, "launcher: 'torchrun' starts the processes of one node, and the case has 2; set launcher='ray'"),
        (recipe_with(engine=VeOmni(sp=2, fsdp_size=3)), 1, "engine.fsdp_size: 3 does not divide dp 4 = 8 devices / sp 2"),
        (
            recipe_with(engine=FSDPTurbo(fully_shard=4, ulysses=3)),
            1,
            "engine: fully_shard x ulysses = 4 x 3 = 12 does not",
        ),
    ],
)
def test_sizes_that_do_not_fill_the_devices_are_told(recipe: Recipe | SFT, nodes: int, text: str) -> None:
    with pytest.raises(LayoutError) as caught:
        plan_layout(recipe, 8, nodes)

    assert any(problem.startswith(text) for problem in caught.value.problems), caught.value.problems


def test_a_supervised_layout_counts_processes_not_devices() -> None:
    assert plan_layout(sft_with(processes_per_node=1), 8).devices == 1
    assert plan_layout(sft_with(engine=FSDP(sp=2)), 8).dp == 4
