"""A command of verl taken apart, and commands that no recipe can say."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.authoring import invocation_of
from pytest_ascend_e2e.errors import AuthoringError


def test_overrides_alone_are_those_of_main_ppo() -> None:
    found = invocation_of(["data.train_batch_size=32", "+actor_rollout_ref.x=1"])

    assert (found.program, found.config_name) == ("verl.trainer.main_ppo", "ppo_trainer")
    assert found.arguments == ("data.train_batch_size=32", "+actor_rollout_ref.x=1")


@pytest.mark.parametrize("name", ["--config-name=ppo_megatron_trainer.yaml", "--config-name ppo_megatron_trainer"])
def test_the_configuration_may_be_named(name: str) -> None:
    found = invocation_of(["python3", "-m", "verl.trainer.main_ppo", *name.split(), "a.b=1"])

    assert found.config_name == "ppo_megatron_trainer"
    assert found.arguments == ("a.b=1",)


def test_a_fine_tuning_has_the_processes_of_its_launcher() -> None:
    found = invocation_of(
        ["torchrun", "--standalone", "--nnodes=1", "--nproc_per_node", "4", "-m", "verl.trainer.sft_trainer", "engine=fsdp"]
    )

    assert found.is_fine_tuning
    assert found.processes == 4
    assert found.arguments == ("engine=fsdp",)


def test_a_program_may_be_named_as_a_file() -> None:
    found = invocation_of(["VLLM_USE_V1=1", "python3", "verl/trainer/main_ppo.py", "a.b=1"])

    assert found.program == "verl.trainer.main_ppo"
    assert found.environment == {"VLLM_USE_V1": "1"}


def test_keys_that_moved_are_read_where_main_ppo_reads_them() -> None:
    found = invocation_of(["python3", "-m", "recipe.dapo.main_dapo", "+reward_model.reward_kwargs.max_resp_len=8"])

    assert found.arguments == ("+reward.reward_kwargs.max_resp_len=8",)
    assert found.notes == (
        "reward_model.reward_kwargs.max_resp_len: read as reward.reward_kwargs.max_resp_len, which is where main_ppo reads it",
    )


def test_what_a_recipe_cannot_say_is_told() -> None:
    found = invocation_of(["a.b=1", "hydra.run.dir=out", "~trainer.x", "--config-path=/etc/verl"])

    assert found.arguments == ("a.b=1",)
    assert [note.partition(":")[0] for note in found.notes] == ["hydra.run.dir=out", "~trainer.x", "--config-path /etc/verl"]


@pytest.mark.parametrize("directory", ["config", "./config", "/opt/verl/verl/trainer/config"])
def test_the_directory_of_verls_own_configuration_is_no_other(directory: str) -> None:
    assert invocation_of(["a.b=1", f"--config-path={directory}"]).notes == ()


def test_variables_of_a_launcher_reach_the_training() -> None:
    found = invocation_of(["timeout", "2h", "env", "A=1", "-u", "C", "B=2", "python3", "-m", "verl.trainer.main_ppo", "a.b=1"])

    assert found.environment == {"A": "1", "B": "2"}


def test_what_is_not_read_of_a_launcher_is_told() -> None:
    ray = invocation_of(["ray", "job", "submit", "--runtime-env=r.yaml", "--", "python3", "-m", "verl.trainer.main_ppo", "a.b=1"])
    torchrun = invocation_of(["torchrun", "--nproc-per-node", "gpu", "-m", "verl.trainer.sft_trainer", "a.b=1"])

    assert ray.notes == ("--runtime-env: not read; give the variables that it sets with --env NAME=VALUE",)
    assert torchrun.notes == ("--nproc_per_node=gpu: read as 1, since it is no number",)


def test_a_program_that_no_recipe_trains_with_is_refused_with_what_to_do() -> None:
    with pytest.raises(AuthoringError, match=r"fully_async_main' is no program that a recipe trains with.*separate_async"):
        invocation_of(["python3", "-m", "verl.experimental.fully_async_policy.fully_async_main", "a.b=1"])


def test_all_words_that_are_no_overrides_are_told_at_once() -> None:
    with pytest.raises(AuthoringError) as caught:
        invocation_of(["a.b=1", "oops", "--fast"])

    assert len(caught.value.problems) == 2
