"""What one training leaves behind, and in what surroundings it runs: the real supervisor, a trainer that is a fake."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_ascend_e2e import FSDP2, GRPO, Recipe, Vllm
from pytest_ascend_e2e.errors import LaunchError
from pytest_ascend_e2e.launch import UNFINISHED
from pytest_ascend_e2e.records import Ending, RunRecord
from pytest_ascend_e2e.runners import load_catalogue
from pytest_ascend_e2e.session import Case, Run, Settings, Tier
from pytest_ascend_e2e.session.commit import Commit
from pytest_ascend_e2e.session.training import Training
from tests.fakes.launching import trainer_argv

VERL_TRAINER = Path(__file__).parents[1] / "fakes" / "verl_trainer.py"
RECIPE = Recipe(
    algorithm=GRPO(),
    model="acme/tiny",
    dataset="gsm8k",
    engine=FSDP2(),
    rollout=Vllm(n=2),
    train_batch_size=8,
    max_prompt_length=8,
    max_response_length=8,
    steps=1,
)


def settings(root: Path) -> Settings:
    return Settings(
        runner=None,
        runners_file=None,
        run_root=root / "runs",
        cache_root=root / "cache",
        models_root=root,
        datasets_root=root,
        lock_dir=root / "locks",
        python=sys.executable,
        run_timeout_s=600,
        silence_timeout_s=600,
        lease_timeout_s=1,
    )


def train(root: Path, *argv: str, runner: str = "sim-2", observe: Any = None, env: dict[str, str] | None = None) -> Run:
    """Train once on devices that nobody checks; the plan and the lease are of the caller's making."""
    case = Case(name="tests::test_x", tier=Tier.NIGHTLY, runners=(runner,), recipe=RECIPE)
    plan, lease = SimpleNamespace(layout="dp 2"), SimpleNamespace(device_ids=(0, 1), fds=())
    chosen = load_catalogue().get(runner)
    commit = Commit(name="", is_dirty=False)
    with Training(case=case, recipe=RECIPE, runner=chosen, settings=settings(root), rerun="pytest x", commit=commit) as training:
        return training.run(
            plan=cast("Any", plan),
            config="",
            argv=argv,
            environment=env or {},
            environ=dict(os.environ),
            lease=cast("Any", lease),
            baselines={},
            observe=observe,
            unfinished=lambda _: None,
        )


def test_a_run_has_its_own_surroundings_and_leaves_nothing_of_them(tmp_path: Path) -> None:
    shown = tmp_path / "environment.json"

    train(tmp_path, *trainer_argv(f"show_environment={shown}", "step=1"), env={"TRITON_CACHE_DIR": "/data/triton"})

    environment = json.loads(shown.read_text())
    home = Path(environment["TMPDIR"]).parent
    private = ("VLLM_RPC_BASE_PATH", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "ASCEND_CACHE_PATH", "ASCEND_WORK_PATH")
    assert home.name.startswith("e2e-")
    assert all(Path(environment[name]).is_relative_to(home) for name in private)
    assert environment["VLLM_CACHE_ROOT"] == str(tmp_path / "cache" / "vllm")
    assert environment["TRITON_CACHE_DIR"] == "/data/triton", "the recipe's own wins"
    assert environment["VERL_USE_EXTERNAL_MODULES"] == "pytest_ascend_e2e.launch.own_job"
    assert not home.exists()


def test_the_record_is_there_before_the_end_and_has_the_host_afterwards(tmp_path: Path) -> None:
    seen: list[RunRecord] = []

    def look(_: int, __: object) -> None:
        (path,) = (tmp_path / "runs").glob("*/record.json")
        seen.append(RunRecord.from_json(path.read_text(), origin=str(path)))

    run = train(tmp_path, *trainer_argv("step=1", "talk=0.5"), observe=look)

    assert [(record.ending, record.end_reason) for record in seen] == [(Ending.INTERRUPTED, UNFINISHED)]
    assert run.record.is_completed
    assert run.record.host.peak_memory_gb > 0
    assert run.record.host.memory_total_gb >= run.record.host.peak_memory_gb


def test_a_training_that_cannot_be_started_says_so_in_its_record(tmp_path: Path) -> None:
    with pytest.raises(LaunchError):
        train(tmp_path, "/no/such/python")

    (path,) = (tmp_path / "runs").glob("*/record.json")
    assert json.loads(path.read_text())["end_reason"].startswith("could not be started: '/no/such/python'")


@pytest.mark.parametrize(("wish", "is_kept"), [("", False), ("crash@1", True)])
def test_cann_logs_are_kept_only_of_a_run_that_did_not_pass(tmp_path: Path, wish: str, *, is_kept: bool) -> None:
    argv = (sys.executable, str(VERL_TRAINER), "trainer.total_training_steps=1", "trainer.n_gpus_per_node=2")
    run = train(tmp_path, *argv, runner="a2-4", env={"FAKE_TRAINER": wish} if wish else {})
    logs = run.directory / "device-logs"
    (logs / "plog-1.log").write_text("EI0006")

    run.check_completed()
    record = run.conclude(is_body_passed=True)

    assert record.is_passed is not is_kept
    assert logs.exists() is is_kept
