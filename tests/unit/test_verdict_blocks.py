"""The blocks that judge one metric over a window, by its direction, or by its spread."""

from __future__ import annotations

import math

import pytest

from pytest_ascend_e2e.errors import CheckError
from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.records import Check
from pytest_ascend_e2e.verdict import Limit, check_monotone, check_spread, check_window

KEY = "a/b"
AT_LEAST_ONE = Limit(comparison=">=", value=1.0)


def run_of(*values: float) -> Metrics:
    return Metrics({step: {KEY: value} for step, value in enumerate(values, start=1)})


def is_failed(checks: tuple[Check, ...]) -> bool:
    (check,) = checks
    return check.is_failed


def test_a_window_is_the_mean_of_its_steps_and_of_no_other() -> None:
    metrics = run_of(0.0, 1.0, 2.0, 0.0)

    assert not is_failed(check_window(metrics, KEY, AT_LEAST_ONE, first_step=2, last_step=3))
    assert is_failed(check_window(metrics, KEY, AT_LEAST_ONE, first_step=3, last_step=4)) is False
    assert is_failed(check_window(metrics, KEY, AT_LEAST_ONE, first_step=1, last_step=2))


def test_a_window_of_which_a_step_is_missing_fails() -> None:
    (check,) = check_window(run_of(1.0, 1.0), KEY, AT_LEAST_ONE, first_step=2, last_step=3)

    assert (check.is_failed, check.step) == (True, 3)


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(CheckError, match="first_step <= last_step"):
        check_window(run_of(1.0), KEY, AT_LEAST_ONE, first_step=3, last_step=2)


def test_a_series_that_once_goes_back_is_not_monotone_and_the_step_is_named() -> None:
    assert not is_failed(check_monotone(run_of(1, 2, 2, 5), KEY, "rising"))
    assert not is_failed(check_monotone(run_of(5, 2, 2, 1), KEY, "falling"))

    (check,) = check_monotone(run_of(1, 2, 1.5, 5), KEY, "rising")

    assert (check.is_failed, check.step, check.value) == (True, 3, -0.5)


def test_one_step_has_no_direction() -> None:
    assert is_failed(check_monotone(run_of(1), KEY, "rising"))
    with pytest.raises(CheckError, match="expected rising or falling"):
        check_monotone(run_of(1, 2), KEY, "up")  # type: ignore[arg-type]  # what a user may write


def test_the_spread_is_held_to_its_limit_after_the_warm_up() -> None:
    limit = Limit(comparison="<=", value=1.0)

    assert is_failed(check_spread(run_of(90, 10, 11, 10), KEY, limit))
    assert not is_failed(check_spread(run_of(90, 10, 11, 10), KEY, limit, warmup=1))
    assert is_failed(check_spread(run_of(90, 10), KEY, limit, warmup=1))


def test_a_nan_fails_each_block() -> None:
    metrics = run_of(1.0, math.nan, 3.0)

    assert is_failed(check_window(metrics, KEY, AT_LEAST_ONE, first_step=1, last_step=3))
    assert is_failed(check_monotone(metrics, KEY, "rising"))
    assert is_failed(check_spread(metrics, KEY, AT_LEAST_ONE))
