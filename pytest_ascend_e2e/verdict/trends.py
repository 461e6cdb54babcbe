"""Does a metric rise or fall, and how sure is that? The test of Mann and Kendall.

Mann, "Nonparametric tests against trend", Econometrica 13 (1945); Kendall, "Rank Correlation Methods" (1948). The test needs no
assumption on the noise but that, without a trend, every order of the values is equally likely. Must not know which metric it is.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import CheckError
from ..metrics import Metrics, MetricSeries
from ..records import Check, Verdict
from .blocks import usable_series
from .limits import undecided

Trend = Literal["rises", "falls", "not-rising", "not-falling"]

TRENDS: tuple[Trend, ...] = ("rises", "falls", "not-rising", "not-falling")

# Up to here the distribution is counted out; beyond, the normal one is less than 1e-3 off.
_EXACT_UP_TO = 60
# Up to here the slope is that of all pairs, of which there are 20,000.
_ALL_PAIRS_UP_TO = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class TrendTest:
    """The result of a test for trend.

    `score` counts the pairs of values that rise minus those that fall; `p_rise` is the probability of a score this high or higher
    without a trend, `p_fall` of one this low or lower; `slope` is the median slope of all pairs, in units of the metric per step.
    """

    score: int
    p_rise: float
    p_fall: float
    slope: float


def mann_kendall(steps: Sequence[int], values: Sequence[float]) -> TrendTest:
    """Return the test for trend of finite values, two or more.

    Equal values count neither as rise nor as fall, and the distribution is the one without ties, which has the wider tails: with
    ties the probabilities are too large rather than too small.
    """
    if len(values) < 2 or len(steps) != len(values) or not all(map(math.isfinite, values)):  # noqa: PLR2004  # a pair
        raise CheckError(f"a trend needs two or more finite values, each with its step; came {list(values)!r} at {list(steps)!r}")
    score = _score(values)
    p_rise, p_fall = _tails(len(values), score)
    return TrendTest(score=score, p_rise=p_rise, p_fall=p_fall, slope=_slope(steps, values))


def _score(values: Sequence[float]) -> int:
    """Return the number of pairs that rise minus those that fall."""
    score, sorted_before = 0, list[float]()
    for count, value in enumerate(values):
        lower, not_higher = bisect.bisect_left(sorted_before, value), bisect.bisect_right(sorted_before, value)
        score += lower - (count - not_higher)
        sorted_before.insert(not_higher, value)
    return score


def _slope(steps: Sequence[int], values: Sequence[float]) -> float:
    """Return the median slope of all pairs (Theil and Sen), of long series of those half a series apart (Theil's own short cut)."""
    count = len(values)
    pairs = [(at, at + count // 2) for at in range(count - count // 2)]
    if count <= _ALL_PAIRS_UP_TO:
        pairs = [(i, j) for j in range(count) for i in range(j)]
    return statistics.median((values[j] - values[i]) / (steps[j] - steps[i]) for i, j in pairs)


def steps_needed(confidence: float) -> int:
    """Return how many values a trend must have to be seen at `confidence`: n with 1/n! below the rest."""
    _need_confidence(confidence)
    count = 2
    while 1 / math.factorial(count) > 1 - confidence:
        count += 1
    return count


def check_trend(metrics: Metrics, key: str, trend: Trend, *, confidence: float = 0.99, name: str = "") -> tuple[Check, ...]:
    """Check the trend of `key` over all training steps.

    `rises` and `falls` pass only where the run proves it: a metric without a trend fails with probability `confidence`.
    `not-falling` and `not-rising` fail only where the run proves the contrary: a metric without a trend passes with probability
    `confidence`. Too few steps to prove anything fail both.
    """
    if trend not in TRENDS:
        raise CheckError(f"trend {trend!r} cannot be used: expected one of {', '.join(TRENDS)}")
    name = name or f"{key}.{trend}"
    needed = steps_needed(confidence)
    series = usable_series(metrics, key, name=name)
    if isinstance(series, Check):
        return (series,)
    if len(series) < needed:
        claim = trend if trend in {"rises", "falls"} else f"is {trend}"
        message = (
            f"{key}: whether it {claim} cannot be decided from {len(series)} steps: {needed} are needed for a confidence of "
            f"{confidence:g}; train longer, or ask for no trend"
        )
        return (undecided(name, message, metric=key),)
    return (_judged(name, series, trend, confidence),)


def _judged(name: str, series: MetricSeries, trend: Trend, confidence: float) -> Check:
    test = mann_kendall(series.steps, series.values)
    doubt = 1 - confidence
    is_claim = trend in {"rises", "falls"}
    is_upwards = trend in {"rises", "not-rising"}
    probability = test.p_rise if is_upwards else test.p_fall
    is_passed = probability <= doubt if is_claim else probability > doubt
    direction = "rise" if is_upwards else "fall"
    proof = "proves" if probability <= doubt else "does not prove"
    message = (
        f"{series.name} over {len(series)} steps: slope {test.slope:+.3g} a step; a {direction} as clear as this comes by chance "
        f"with p = {probability:.2g}, which {proof} one (limit {doubt:.2g})"
    )
    return Check(
        name=name,
        verdict=Verdict.PASSED if is_passed else Verdict.FAILED,
        message=message,
        metric=series.name,
        value=probability,
        comparison="<=" if is_claim else ">",
        limit=doubt,
        origin=f"1 - confidence {confidence:g}; one-sided test of Mann and Kendall, value is its p",
    )


def _tails(count: int, score: int) -> tuple[float, float]:
    """Return the probabilities of this score or a higher one, and of this or a lower one, if every order is equally likely."""
    pairs = count * (count - 1) // 2
    if count > _EXACT_UP_TO:
        deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
        higher, lower = ((side - 1) / deviation / math.sqrt(2) for side in (score, -score))
        return 0.5 * math.erfc(higher), 0.5 * math.erfc(lower)
    orders = [1]
    for size in range(2, count + 1):
        orders = _with_one_more(orders, size)
    # A score of s or higher is a number of falling pairs of (pairs - s) / 2 or fewer; half a pair, from ties, counts as one.
    higher, lower = (sum(orders[: (pairs - side + 1) // 2 + 1]) / math.factorial(count) for side in (score, -score))
    return higher, lower


def _with_one_more(orders: Sequence[int], size: int) -> list[int]:
    """Return the number of orders of `size` values by falling pairs, from that of one value less."""
    result: list[int] = []
    window = 0
    for falls in range(len(orders) + size - 1):
        window += orders[falls] if falls < len(orders) else 0
        window -= orders[falls - size] if falls >= size else 0
        result.append(window)
    return result


def _need_confidence(confidence: float) -> None:
    if not 0.5 <= confidence <= 1 - 1e-9:  # noqa: PLR2004  # below one half the claim would be its opposite
        raise CheckError(f"confidence {confidence!r} cannot be used: expected a number from 0.5 to below 1, such as 0.99")
