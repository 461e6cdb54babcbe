"""Each check is seen to fail on a real training made wrong on purpose: real verl, Ray and vLLM on two simulated NPUs.

About two minutes each, so they are not part of `make test`: `make faults` runs them.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import psutil
import pytest

from pytest_ascend_e2e import FSDP2, GRPO, PPO, Recipe, Run, Vllm
from pytest_ascend_e2e.launch import RUN_ID, simulation_env
from pytest_ascend_e2e.records import Ending, Kind
from pytest_ascend_e2e.runners import DEFAULT_LOCK_DIR, load_catalogue
from pytest_ascend_e2e.session import Bench, Case, Settings, Tier
from pytest_ascend_e2e.verdict import check_update_health
from tests.fakes import dying_engine

SOUND = Recipe(
    algorithm=GRPO(use_kl_loss=True, kl_loss_coef=0.001),
    model="Qwen/Qwen3-0.6B",
    dataset="gsm8k",
    engine=FSDP2(),
    rollout=Vllm(tp=1, n=4),
    train_batch_size=16,
    use_dynamic_bsz=True,
    ppo_max_token_len_per_gpu=16384,
    max_prompt_length=64,
    max_response_length=48,
    steps=3,
    lr=5e-4,
)

Observer = Callable[[int, Mapping[str, float | None]], None]


class Train(Protocol):
    def __call__(self, recipe: Recipe, observe: Observer | None = None) -> Run: ...


@pytest.fixture
def train_wrong(tmp_path: Path) -> Train:
    cache = Path(os.environ.get("ASCEND_E2E_CACHE_ROOT", "~/.cache/ascend-e2e")).expanduser()
    settings = Settings(
        runner="sim-2",
        runners_file=None,
        run_root=tmp_path / "runs",
        cache_root=cache,
        models_root=Path("~/.cache/models").expanduser(),
        datasets_root=Path("~/.cache/datasets").expanduser(),
        lock_dir=DEFAULT_LOCK_DIR,
        python=sys.executable,
        run_timeout_s=1200,
        silence_timeout_s=300,
        lease_timeout_s=600,
    )
    bench = Bench(
        settings=settings,
        runner=load_catalogue().get("sim-2"),
        environ=dict(os.environ),
        test_file=Path(__file__),
        rerun="make faults",
    )

    def train(recipe: Recipe, observe: Observer | None = None) -> Run:
        case = Case(name="tests/faults::fault", tier=Tier.PULL_REQUEST, runners=("sim-2",), recipe=recipe)
        return bench.train(case, recipe, observe=observe)

    return train


def failed(run: Run) -> set[str]:
    return {check.name for check in run.record.checks if check.is_failed}


def test_a_learning_rate_of_nearly_zero_shows_no_rise_and_a_limit_above_the_throughput_fails(train_wrong: Train) -> None:
    run = train_wrong(replace(SOUND, steps=20, lr=1e-12))

    run.check_completed()
    run.check_rewards(trend="rises")
    run.check_logprob_consistency()
    run.check_throughput(minimum=1e6, step_time_max_s=0.001, memory_max_gb=0.001)

    assert failed(run) == {"rewards.rises", "throughput.tokens", "throughput.step-time", "throughput.memory"}


def test_a_temperature_that_the_trainer_does_not_know_of_fails_the_consistency(train_wrong: Train) -> None:
    run = train_wrong(
        replace(
            SOUND, rollout=Vllm(tp=1, n=4, temperature=0.7), overrides={"actor_rollout_ref.rollout.logprobs_mode": "raw_logprobs"}
        )
    )

    run.check_completed()
    run.check_logprob_consistency()

    assert "logprob.mean-difference" in failed(run)
    assert not any(name.startswith("completed") for name in failed(run))


def test_a_reference_that_is_not_the_actor_fails_at_the_first_step(train_wrong: Train) -> None:
    # Dropout works on the actor alone, where it is updated: the same weights, another model than the reference.
    run = train_wrong(replace(SOUND, overrides={"actor_rollout_ref": {"model": {"+override_config": {"attention_dropout": 0.3}}}}))

    run.check_completed()
    run.check_logprob_consistency()

    assert failed(run) == {"logprob.reference-start"}


def test_a_critic_is_trained_and_a_learning_rate_that_is_not_its_own_fails(train_wrong: Train) -> None:
    run = train_wrong(replace(SOUND, algorithm=PPO(critic_lr=1e-3), rollout=Vllm(tp=1, n=1), train_batch_size=32))

    run.check_completed()
    run.check_logprob_consistency()
    run.check_update_health()

    assert failed(run) == set()
    checks = check_update_health(run.metrics, has_critic=True, critic_lr=1e-4)
    assert {check.name for check in checks if check.is_failed} == {"health.critic-learning-rate"}


def test_a_killed_training_is_red_and_named(train_wrong: Train) -> None:
    def kill_the_driver(step: int, _: Mapping[str, float | None]) -> None:
        for process in psutil.process_iter():
            with_tag = _environment(process).get(RUN_ID)
            if step == 2 and with_tag and "verl.trainer.main_ppo" in " ".join(process.cmdline()):
                process.send_signal(signal.SIGKILL)

    run = train_wrong(replace(SOUND, steps=20), kill_the_driver)

    record = run.conclude(is_body_passed=True)
    assert record.ending is Ending.SIGNALLED
    assert record.signal == "SIGKILL"
    assert record.diagnosis is not None
    assert {"completed.process", "completed.steps"} <= failed(run)


def test_a_run_that_stops_at_step_5_of_20_with_exit_status_0_is_red(train_wrong: Train) -> None:
    run = train_wrong(replace(SOUND, steps=20, overrides={"data.train_max_samples": 5 * 16, "trainer.total_epochs": 1}))

    run.check_completed()

    assert run.record.is_completed, "verl itself says that all is well"
    assert run.record.last_step == 5
    assert failed(run) == {"completed.steps"}


def test_numbers_that_are_not_finite_are_red(train_wrong: Train) -> None:
    run = train_wrong(replace(SOUND, lr=1e30, steps=4))

    record = run.conclude(is_body_passed=True)

    assert not record.is_passed
    assert failed(run) & {"completed.finite", "completed.process"}


def test_a_training_that_hangs_after_its_engine_died_is_ended_within_ten_seconds(train_wrong: Train) -> None:
    modules = f"{simulation_env()['VERL_USE_EXTERNAL_MODULES']},{dying_engine.__name__}"
    env = {"VERL_USE_EXTERNAL_MODULES": modules, "PYTHONPATH": str(Path(__file__).parents[2])}

    run = train_wrong(replace(SOUND, steps=20, env=env))

    verdict_at = (run.directory / "record.json").stat().st_mtime
    log = (run.directory / "train.log").read_text(errors="replace")
    logged = re.search(r"ERROR (\d\d-\d\d \d\d:\d\d:\d\d) .*EngineCore encountered a fatal error", log)
    record = run.conclude(is_body_passed=True)
    assert record.ending is Ending.FATAL_LINE
    assert record.diagnosis is not None
    assert (record.diagnosis.kind, record.diagnosis.line) == (Kind.ROLLOUT_ENGINE, f"RuntimeError: {dying_engine.MESSAGE}")
    assert logged is not None
    year = dt.datetime.fromtimestamp(verdict_at).astimezone().year
    fatal_at = dt.datetime.strptime(f"{year}-{logged[1]}", "%Y-%m-%d %H:%M:%S").astimezone().timestamp()
    assert 0 <= verdict_at - fatal_at <= 10
    assert "verl.trainer.main_ppo" in (run.directory / "stacks.txt").read_text()


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        environment: dict[str, str] = process.environ()
    except psutil.Error:
        return {}
    return environment
