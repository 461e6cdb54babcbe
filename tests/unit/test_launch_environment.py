"""Which variables a training gets."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.errors import LaunchError
from pytest_ascend_e2e.launch import build_environment, own_modules
from pytest_ascend_e2e.launch.environment import OWN_JOB

_MODULES = "VERL_USE_EXTERNAL_MODULES"


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "HCCL_CONNECT_TIMEOUT"),
        *("VLLM_USE_V1", "HF_HOME", "HF_TOKEN", "ATB_HOME_PATH", "TASK_QUEUE_ENABLE", "PYTORCH_NPU_ALLOC_CONF", "https_proxy"),
    ],
)
def test_what_belongs_to_the_machine_is_passed_on(name: str) -> None:
    environment = build_environment({name: "x"})

    assert environment[name] == "x"


@pytest.mark.parametrize(
    "name",
    [
        *("RAY_ADDRESS", "RAY_TMPDIR", "CUDA_VISIBLE_DEVICES", "MASTER_PORT", "RANK", "WORLD_SIZE", "PYTEST_CURRENT_TEST"),
        *("PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONWARNINGS", "WANDB_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY"),
        *("ASCEND_E2E_RUNNER", "ASCEND_E2E_RUN_ID", "ASCEND_RT_VISIBLE_DEVICES", "VERL_FILE_LOGGER_PATH"),
        *("HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_NPU_SOCKET_PORT_RANGE", "HCCL_IF_BASE_PORT"),
    ],
)
def test_what_belongs_to_another_run_is_dropped(name: str) -> None:
    environment = build_environment({name: "x"})

    assert name not in environment


def test_a_function_that_bash_exports_is_dropped() -> None:
    environment = build_environment({"ASCEND_BASH_FUNC_x%%": "() { :; }"})

    assert "ASCEND_BASH_FUNC_x%%" not in environment


def test_what_is_allowed_by_name_or_pattern_is_passed_on() -> None:
    base = {"WANDB_MODE": "offline", "RAY_ADDRESS": "auto", "RAY_TMPDIR": "/x", "HCCL_IF_BASE_PORT": "5"}

    environment = build_environment(base, allow=("WANDB_*", "RAY_ADDRESS", "HCCL_IF_BASE_PORT"))

    assert base.items() - environment.items() == {("RAY_TMPDIR", "/x")}


def test_extra_wins_over_the_callers_and_over_our_own() -> None:
    environment = build_environment({"HF_HOME": "/a"}, extra={"HF_HOME": "/b", "PYTHONFAULTHANDLER": "0", "RAY_ADDRESS": "local"})

    assert (environment["HF_HOME"], environment["PYTHONFAULTHANDLER"], environment["RAY_ADDRESS"]) == ("/b", "0", "local")


def test_a_crash_in_native_code_shows_its_python_stack() -> None:
    environment = build_environment({})

    assert environment["PYTHONFAULTHANDLER"] == "1"


def test_a_proxy_never_stands_between_the_processes_of_a_run() -> None:
    environment = build_environment({"http_proxy": "http://proxy:3128", "no_proxy": "example.org,localhost"})

    assert environment["no_proxy"] == environment["NO_PROXY"] == "example.org,localhost,127.0.0.1,::1"


def test_without_a_proxy_nothing_is_said_about_one() -> None:
    environment = build_environment({"PATH": "/bin"})

    assert not [name for name in environment if name.lower().endswith("_proxy")]


def test_all_impossible_variables_are_named_at_once() -> None:
    with pytest.raises(LaunchError) as caught:
        build_environment({}, extra={"a b": "1", "GOOD": "1", "ZERO": "x\0y"})

    assert len(caught.value.problems) == 2
    assert "'a b' cannot be the name of a variable" in str(caught.value)
    assert "ZERO='x\\x00y' cannot be used" in str(caught.value)


@pytest.mark.parametrize(
    ("of_run", "of_caller", "expected"),
    [
        ({}, {}, OWN_JOB),
        ({_MODULES: "sim"}, {_MODULES: "theirs"}, f"sim,{OWN_JOB}"),
        ({}, {_MODULES: "theirs"}, f"theirs,{OWN_JOB}"),
        ({_MODULES: f"sim,{OWN_JOB}"}, {}, f"sim,{OWN_JOB}"),
    ],
)
def test_a_run_loads_what_it_or_its_caller_asks_for_and_then_its_own(
    of_run: dict[str, str], of_caller: dict[str, str], expected: str
) -> None:
    assert own_modules(of_run, of_caller) == {_MODULES: expected}
