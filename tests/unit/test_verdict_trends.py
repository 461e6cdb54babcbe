"""The test for trend: exact probabilities, and simulated rates of false alarms and misses."""

from __future__ import annotations

import itertools
import math
import statistics

import pytest

from pytest_ascend_e2e.errors import CheckError
from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.verdict import Trend, check_trend, mann_kendall, steps_needed
from pytest_ascend_e2e.verdict.trends import _tails
from tests.fakes.logged_run import seeded

KEY = "critic/rewards/mean"


def metrics_of(values: list[float]) -> Metrics:
    return Metrics({step: {KEY: value} for step, value in enumerate(values, start=1)})


def is_passed(values: list[float], trend: Trend) -> bool:
    return not any(check.is_failed for check in check_trend(metrics_of(values), KEY, trend))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_the_probability_is_that_of_all_orders(count: int) -> None:
    scores = [mann_kendall(range(count), order).score for order in itertools.permutations(range(count))]

    for score in set(scores):
        higher, lower = (sum(compared) / len(scores) for compared in zip(*((s >= score, s <= score) for s in scores), strict=True))
        assert _tails(count, score) == pytest.approx((higher, lower), rel=1e-12)


def test_the_normal_distribution_takes_over_where_it_is_close() -> None:
    deviation = math.sqrt(60 * 59 * 125 / 18)

    for score in range(0, 1771, 60):
        assert _tails(60, score)[0] == pytest.approx(0.5 * math.erfc((score - 1) / deviation / math.sqrt(2)), abs=1e-3)


def test_a_long_run_is_tested_too() -> None:
    noise = seeded(5)

    test = mann_kendall(range(100), [0.3 + 0.002 * step + noise.gauss(0, 0.04) for step in range(100)])

    assert test.p_rise < 1e-6
    assert test.p_fall > 1 - 1e-6
    assert test.slope == pytest.approx(0.002, abs=0.0005)


def test_the_slope_is_the_median_of_all_pairs() -> None:
    test = mann_kendall([1, 2, 4, 5], [0.1, 0.2, 0.4, 9.0])

    assert test.slope == pytest.approx(statistics.median([0.1, 0.1, 0.1, 8.6, 8.8 / 3, 8.9 / 4]))


def test_opposite_values_have_opposite_probabilities() -> None:
    values = [0.3, 0.1, 0.5, 0.4, 0.7, 0.2]

    up, down = mann_kendall(range(6), values), mann_kendall(range(6), [-value for value in values])

    assert (up.score, up.p_rise, up.p_fall) == (-down.score, down.p_fall, down.p_rise)


def test_values_that_never_change_have_no_trend() -> None:
    test = mann_kendall(range(9), [0.5] * 9)

    assert (test.score, test.slope) == (0, 0.0)
    assert min(test.p_rise, test.p_fall) >= 0.5


@pytest.mark.parametrize(("confidence", "steps"), [(0.9, 4), (0.99, 5), (0.999, 7)])
def test_the_steps_needed_follow_from_the_number_of_orders(confidence: float, steps: int) -> None:
    assert steps_needed(confidence) == steps


@pytest.mark.parametrize("levels", [0, 8], ids=["continuous", "many-ties"])
def test_a_constant_with_noise_rarely_rises_or_falls(levels: int) -> None:
    """1000 runs of 20 steps at a constant reward (learning rate 0): a rise is claimed in 1 % of them or fewer, and so is a fall."""
    noise = seeded(20261130)
    runs = 1000
    rises = falls = 0
    for _ in range(runs):
        values = [noise.gauss(0.4, 0.04) for _ in range(20)]
        if levels:
            values = [round(value * levels * 2) / levels / 2 for value in values]
        rises += is_passed(values, "rises")
        falls += not is_passed(values, "not-falling")

    # One percent and two standard errors of the simulation itself.
    limit = runs * (0.01 + 2 * math.sqrt(0.01 * 0.99 / runs))
    assert rises <= limit
    assert falls <= limit


def test_a_real_rise_is_seen() -> None:
    """2000 runs of 20 steps from 0.2 to 0.5 with a noise of 0.04: not one is missed."""
    noise = seeded(42)

    seen = sum(is_passed([0.2 + 0.3 * step / 19 + noise.gauss(0, 0.04) for step in range(20)], "rises") for _ in range(2000))

    assert seen == 2000


def test_a_real_fall_is_seen() -> None:
    noise = seeded(43)

    missed = sum(is_passed([0.5 - 0.3 * step / 19 + noise.gauss(0, 0.04) for step in range(20)], "not-falling") for _ in range(500))

    assert missed == 0


@pytest.mark.parametrize("trend", ["rises", "falls", "not-rising", "not-falling"])
def test_what_cannot_be_decided_fails(trend: Trend) -> None:
    (check,) = check_trend(metrics_of([0.1, 0.2, 0.3, 0.4]), KEY, trend)

    assert check.is_failed
    assert "cannot be decided from 4 steps: 5 are needed" in check.message


@pytest.mark.parametrize(
    ("trend", "values", "passes"),
    [
        ("rises", [1, 2, 3, 4, 5], True),
        ("rises", [5, 4, 3, 2, 1], False),
        ("falls", [5, 4, 3, 2, 1], True),
        ("falls", [1, 2, 3, 4, 5], False),
        ("not-rising", [3, 1, 2, 1, 3], True),
        ("not-rising", [1, 2, 3, 4, 5], False),
        ("not-falling", [3, 1, 2, 1, 3], True),
        ("not-falling", [5, 4, 3, 2, 1], False),
    ],
)
def test_a_trend_is_judged_on_its_side(trend: Trend, values: list[float], passes: bool) -> None:
    assert is_passed(values, trend) is passes


def test_an_unknown_trend_is_refused() -> None:
    with pytest.raises(CheckError, match="expected one of rises"):
        check_trend(metrics_of([1, 2]), KEY, "up")  # type: ignore[arg-type]  # what a user may write


@pytest.mark.parametrize("confidence", [0.2, 1.0, math.nan])
def test_a_confidence_that_is_none_is_refused(confidence: float) -> None:
    with pytest.raises(CheckError, match="confidence"):
        check_trend(metrics_of([1, 2, 3, 4, 5]), KEY, "rises", confidence=confidence)
