"""Rewards: level, trend, spread and collapse, with simulated rates of false alarms."""

from __future__ import annotations

import math

import pytest

from pytest_ascend_e2e.errors import CheckError
from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.records import Check, Verdict
from pytest_ascend_e2e.verdict import check_rewards
from pytest_ascend_e2e.verdict.rewards import REWARD, _collapse
from tests.fakes.logged_run import Rows, logged_run, seeded


def failures(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks if check.is_failed}


def with_rewards(values: list[float]) -> Metrics:
    rows = logged_run(len(values))
    for row, value in zip(rows.values(), values, strict=True):
        row[REWARD] = value
    return Metrics(rows)


def test_rewards_that_rise_to_their_level_pass() -> None:
    checks = check_rewards(Metrics(logged_run(20)), minimum=0.4, trend="rises")

    assert {check.name for check in checks} == {
        "rewards.every-step",
        "rewards.spread",
        "rewards.advantage",
        "rewards.clipped",
        "rewards.level",
        "rewards.rises",
        "rewards.collapse",
    }
    assert not failures(checks)


def test_a_level_below_the_minimum_fails() -> None:
    failed = failures(check_rewards(Metrics(logged_run(20)), minimum=0.6))["rewards.level"]

    assert failed.limit == 0.6
    assert "mean of steps 16..20" in failed.message


def test_a_window_longer_than_the_run_fails() -> None:
    assert "rewards.level" in failures(check_rewards(Metrics(logged_run(3)), minimum=0.1, trend=None))


def test_a_reward_that_stays_does_not_rise() -> None:
    metrics = Metrics(logged_run(20, last_reward=0.2))

    assert set(failures(check_rewards(metrics, trend="rises"))) == {"rewards.rises"}
    assert not failures(check_rewards(metrics, trend="not-falling"))


def test_a_reward_that_falls_fails() -> None:
    assert "rewards.not-falling" in failures(check_rewards(Metrics(logged_run(20, first_reward=0.5, last_reward=0.2))))


def test_a_run_too_short_for_a_trend_fails_unless_none_is_asked_for() -> None:
    metrics = Metrics(logged_run(3))

    assert failures(check_rewards(metrics))["rewards.not-falling"].verdict is Verdict.UNDECIDED
    assert not failures(check_rewards(metrics, trend=None))
    assert [check.name for check in check_rewards(metrics, trend=None) if check.verdict is Verdict.NOT_MADE] == [
        "rewards.clipped",
        "rewards.collapse",
    ]


def test_rewards_that_are_all_zero_fail_and_are_called_so() -> None:
    rows: Rows = {step: {**row, "critic/rewards/max": 0.0, REWARD: 0.0} for step, row in logged_run(15).items()}

    assert "all rewards of every step are zero" in failures(check_rewards(Metrics(rows)))["rewards.spread"].message


def test_rewards_that_are_all_equal_fail() -> None:
    rows: Rows = {step: {**row, "critic/rewards/min": 1.0} for step, row in logged_run(15).items()}

    assert "equal to each other" in failures(check_rewards(Metrics(rows)))["rewards.spread"].message


def test_rewards_that_end_clipped_to_one_value_fail_although_they_rose() -> None:
    rows = logged_run(15)
    for step in range(11, 16):
        rows[step] |= {"critic/rewards/max": 1.0, "critic/rewards/min": 1.0, REWARD: 1.0}

    failed = failures(check_rewards(Metrics(rows), trend="rises"))["rewards.clipped"]

    assert failed.message.startswith("the rewards of steps 11..15 are all 1; ")


def test_one_step_without_a_difference_of_rewards_is_sound() -> None:
    rows = logged_run(15)
    rows[15] |= {"critic/rewards/max": 1.0, "critic/rewards/min": 1.0, REWARD: 1.0}

    assert "rewards.clipped" not in failures(check_rewards(Metrics(rows), trend=None))


def test_advantages_that_are_all_zero_fail() -> None:
    rows: Rows = {step: {**row, "critic/advantages/max": 0.0, "critic/advantages/min": 0.0} for step, row in logged_run(15).items()}

    assert "rewards.advantage" in failures(check_rewards(Metrics(rows)))


@pytest.mark.parametrize("key", [REWARD, "critic/rewards/max", "critic/advantages/min"])
def test_a_missing_metric_fails_the_check(key: str) -> None:
    rows = {step: {name: value for name, value in row.items() if name != key} for step, row in logged_run(15).items()}

    assert any(check.metric == key for check in failures(check_rewards(Metrics(rows), minimum=0.1)).values())


def test_a_late_collapse_fails_although_the_reward_rose() -> None:
    rise = [0.2 + 0.05 * step for step in range(12)]
    noise = seeded(3)

    metrics = with_rewards([value + noise.gauss(0, 0.02) for value in [*rise, 0.62, 0.5, 0.45, 0.4, 0.4, 0.38, 0.4, 0.36]])

    assert set(failures(check_rewards(metrics, minimum=0.3))) == {"rewards.collapse"}


def test_a_given_drop_is_the_limit() -> None:
    metrics = Metrics(logged_run(20, first_reward=0.5, last_reward=0.4))

    assert failures(check_rewards(metrics, trend=None, max_drop=0.02))["rewards.collapse"].origin == "given by the test"
    assert not failures(check_rewards(metrics, trend=None, max_drop=0.2))


def test_a_given_drop_that_a_short_run_cannot_show_fails() -> None:
    assert "rewards.collapse" in failures(check_rewards(Metrics(logged_run(6)), trend=None, max_drop=0.5))


@pytest.mark.parametrize(("steps", "window"), [(10, 5), (20, 2), (20, 5), (20, 10), (100, 5), (200, 10)])
def test_a_constant_with_noise_rarely_collapses(steps: int, window: int) -> None:
    noise = seeded(steps * window)
    runs = 400

    alarms = sum(
        _collapse(Metrics({step: {REWARD: noise.gauss(0.5, 0.1)} for step in range(1, steps + 1)}), window, None).is_failed
        for _ in range(runs)
    )

    # One percent, and two standard errors of the simulation.
    assert alarms <= runs * (0.01 + 2 * math.sqrt(0.01 * 0.99 / runs))


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(CheckError, match="window 0"):
        check_rewards(Metrics(logged_run(5)), window=0)


@pytest.mark.parametrize("minimum", [math.nan, -math.inf])
def test_a_limit_that_cannot_fail_or_pass_is_refused(minimum: float) -> None:
    with pytest.raises(CheckError, match="finite"):
        check_rewards(Metrics(logged_run(5)), minimum=minimum)
