"""The eight holes of the five-number check that the nightly jobs used: each one stays shut.

That check took the mean of the steps 5 to 14 of a console log, and compared five figures with one earlier run, each in percent.
"""

from __future__ import annotations

import math

import pytest

from pytest_ascend_e2e.metrics import Metrics, read_console
from pytest_ascend_e2e.records import Check
from pytest_ascend_e2e.verdict import (
    Baseline,
    Direction,
    check_baseline,
    check_completed,
    check_logprob_consistency,
    check_rewards,
    check_throughput,
)
from tests.fakes.logged_run import DEVICES, Rows, logged_run

REWARD = "critic/rewards/mean"


def log_of(rows: Rows) -> list[bytes]:
    """Return the console log that verl would print of these rows."""
    return [
        f"(TaskRunnerV1 pid=7) step:{step} - {' - '.join(f'{key}:{value!r}' for key, value in row.items())}\n".encode()
        for step, row in rows.items()
    ]


def failures(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks if check.is_failed}


def baseline(metric: str, *, value: float, spread: float, direction: Direction) -> dict[str, Baseline]:
    origin = {"date": "2026-11-20", "commit": "0a1b2c", "device": "A3", "versions": {"verl": "0.9.1"}}
    return {metric: Baseline(metric=metric, value=value, spread=spread, runs=5, direction=direction, **origin)}  # type: ignore[arg-type]  # the fields of the origin


def test_hole_1_a_nan_is_not_dropped_from_the_mean() -> None:
    rows = logged_run(15)
    rows[6][REWARD] = math.nan

    metrics = read_console(log_of(rows))

    assert math.isnan(metrics[REWARD].mean())
    assert failures(check_completed(metrics, steps=15))["completed.finite"].step == 6
    assert failures(check_rewards(metrics, trend=None))["rewards.every-step"].step == 6


@pytest.mark.parametrize(
    "text",
    [
        "Saving checkpoint step:15 critic/rewards/mean:9.0",
        "global_step:15 - critic/rewards/mean:9.0",
        "INFO resumed at step:15 - see critic/rewards/mean:9.0",
    ],
)
def test_hole_2_a_step_number_in_any_other_text_is_no_step(text: str) -> None:
    rows = logged_run(15)

    metrics = read_console([*log_of(rows), f"{text}\n".encode()])

    assert metrics[REWARD].at(15) == rows[15][REWARD]
    assert not failures(check_completed(metrics, steps=15))


@pytest.mark.parametrize("key", ["val-core/openai/gsm8k/acc/mean@4", "timing_s/agent-loop/tool-calls", "val-aux/a-b/std@8"])
def test_hole_3_a_key_with_a_dash_or_an_at_sign_is_read_whole(key: str) -> None:
    rows = {step: {**row, key: 0.25 + step} for step, row in logged_run(15).items()}

    metrics = read_console(log_of(rows))

    assert metrics[key].values == tuple(0.25 + step for step in range(1, 16))
    assert metrics.problems == ()


def test_hole_4_memory_is_judged_at_every_step_not_at_the_last() -> None:
    rows = logged_run(15)
    rows[8]["actor/perf/max_memory_allocated_gb"] = 60.0

    failed = failures(check_throughput(read_console(log_of(rows)), devices=DEVICES, memory_max_gb=25))

    assert failed["throughput.memory"].step == 8


def test_hole_5_records_that_are_glued_together_are_taken_apart() -> None:
    rows = logged_run(15)
    lines = log_of(rows)
    glued = [*lines[:5], lines[5].rstrip(b"\n") + lines[6], *lines[7:]]

    metrics = read_console(glued)

    assert metrics[REWARD].at(6) == rows[6][REWARD]
    assert metrics[REWARD].at(7) == rows[7][REWARD]
    assert not failures(check_completed(metrics, steps=15))


@pytest.mark.parametrize(
    ("metric", "value", "direction"),
    [
        ("perf/throughput", 300.0, Direction.HIGHER_IS_BETTER),
        ("timing_s/step", 60.0, Direction.LOWER_IS_BETTER),
        ("training/rollout_probs_diff_mean", 0.02, Direction.LOWER_IS_BETTER),
        ("actor/perf/max_memory_allocated_gb", 45.43, Direction.LOWER_IS_BETTER),
    ],
)
def test_hole_6_a_number_that_got_better_never_fails_however_far(metric: str, value: float, direction: Direction) -> None:
    (check,) = check_baseline(Metrics(logged_run(15)), baseline(metric, value=value, spread=0.001, direction=direction))

    assert not check.is_failed
    assert "the baseline is stale" in check.message


@pytest.mark.parametrize("step", [15, 18])
def test_hole_7_what_happens_after_step_14_is_judged(step: int) -> None:
    rows = logged_run(20)
    rows[step]["training/rollout_probs_diff_mean"] = 0.4
    cut = {number: row for number, row in logged_run(20).items() if number <= 5}

    drifted = check_logprob_consistency(read_console(log_of(rows)), has_reference=True)
    crashed = check_completed(read_console(log_of(cut)), steps=20)

    assert failures(drifted)["logprob.mean-difference"].step == step
    assert failures(crashed)["completed.steps"].step == 6


@pytest.mark.parametrize("value", [0.004, -0.004])
def test_hole_8_a_value_near_zero_is_held_to_its_spread_not_to_percent_of_itself(value: float) -> None:
    key = "critic/advantages/mean"
    healthy = Metrics({step: {key: value + 0.001} for step in range(1, 16)})
    wrong = Metrics({step: {key: value + 0.2} for step in range(1, 16)})
    held = baseline(key, value=value, spread=0.002, direction=Direction.TWO_SIDED)

    assert abs(0.001 / value) > 0.05
    assert not failures(check_baseline(healthy, held))
    assert failures(check_baseline(wrong, held))
