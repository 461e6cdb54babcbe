"""Does the policy get rewards, do they differ, and do they go where they should?

Must not know the other metrics: a reward alone never proves a training right.
"""

from __future__ import annotations

import math

from ..errors import CheckError
from ..metrics import Metrics, MetricSeries, shown_steps
from ..records import Check
from .blocks import check_every_step, over, usable_series
from .limits import GIVEN, Limit, judged, not_made, undecided
from .trends import Trend, check_trend

REWARD = "critic/rewards/mean"
_COLLAPSE = "rewards.collapse"

# Five standard errors of the difference of two windows: simulated, a constant reward with noise of any size goes over it in less
# than one run of a hundred for 10 to 200 steps and windows of 2 to 10 (tests/unit/test_verdict_rewards.py).
_COLLAPSE_ERRORS = 5.0


def check_rewards(
    metrics: Metrics,
    *,
    minimum: float | None = None,
    window: int = 5,
    trend: Trend | None = "not-falling",
    confidence: float = 0.99,
    max_drop: float | None = None,
) -> tuple[Check, ...]:
    """Check the rewards of a run: there and finite at every step, different from each other, at a level, with a trend.

    `minimum` is the least mean of the last `window` steps (None: no level is asked for). `trend` is asked of the whole run with
    `confidence`, None for runs that are too short for one. `max_drop` is how far the last window may lie below the best one; by
    default as far as the noise between neighbouring steps explains, which takes two windows of steps to tell.
    """
    if window < 1:
        raise CheckError(f"window {window!r} cannot be used: expected a number of steps, 1 or more")
    checks = [
        *check_every_step(metrics, REWARD, name="rewards.every-step"),
        _spread(metrics),
        _advantage(metrics),
        *_stuck(metrics, window),
    ]
    if minimum is not None:
        checks.append(_level(metrics, minimum, window))
    if trend is not None:
        checks.extend(check_trend(metrics, REWARD, trend, confidence=confidence, name=f"rewards.{trend}"))
    if max_drop is not None or len(metrics.training_steps) >= 2 * window:
        checks.append(_collapse(metrics, window, max_drop))
    else:
        checks.append(not_made(_COLLAPSE, needed=2 * window, metric=REWARD))
    return tuple(checks)


def noise_of(series: MetricSeries) -> float:
    """Return the standard deviation of the noise of a series, from the differences of neighbours: a slow trend adds little.

    Von Neumann, "Distribution of the ratio of the mean square successive difference to the variance" (1941).
    """
    squares = [(later - earlier) ** 2 for earlier, later in zip(series.values, series.values[1:], strict=False)]
    if not squares:
        raise CheckError(f"{series.name}: the noise of {len(series)} values cannot be told: expected 2 or more")
    return math.sqrt(math.fsum(squares) / len(squares) / 2)


def _level(metrics: Metrics, minimum: float, window: int) -> Check:
    name = "rewards.level"
    limit = Limit(comparison=">=", value=minimum, origin=GIVEN)
    series = usable_series(metrics, REWARD, name=name)
    if isinstance(series, Check):
        return series
    if len(series) < window:
        message = f"{REWARD}: a window of {window} steps does not fit into {len(series)} training steps; give a smaller window"
        return undecided(name, message, metric=REWARD)
    last = series.last(window)
    error = f" (standard error {noise_of(series) / math.sqrt(window):.2g})" if len(series) > 1 else ""
    return judged(name, last.mean(), limit, what=f"{over(REWARD, 'mean', last.steps)}{error}", metric=REWARD)


def _spread(metrics: Metrics) -> Check:
    name = "rewards.spread"
    highest = usable_series(metrics, "critic/rewards/max", name=name)
    lowest = usable_series(metrics, "critic/rewards/min", name=name)
    if isinstance(highest, Check):
        return highest
    if isinstance(lowest, Check):
        return lowest
    spread = max(high - low for high, low in zip(highest, lowest, strict=True))
    limit = Limit(comparison=">", value=0.0, origin="rewards that are all equal teach nothing")
    if spread == 0:
        always = "zero" if highest.max() == highest.min() == 0 else "equal to each other"
        what = f"all rewards of every step are {always}: the largest difference within a step"
    else:
        what = "the largest difference of rewards within a step"
    return judged(name, spread, limit, what=what, metric="critic/rewards/max")


def _stuck(metrics: Metrics, window: int) -> tuple[Check, ...]:
    """Check that the last steps do not all have one and the same reward, as a reward that is clipped or broken gives."""
    name = "rewards.clipped"
    highest = usable_series(metrics, "critic/rewards/max", name=name)
    lowest = usable_series(metrics, "critic/rewards/min", name=name)
    if isinstance(highest, Check) or isinstance(lowest, Check):
        return ()  # which fails the check of the spread
    needed = max(window, 3)  # two steps can be equal by chance
    if len(highest) < needed:
        return (not_made(name, needed=needed, metric="critic/rewards/max"),)
    last = (*highest.last(needed), *lowest.last(needed))
    steps = shown_steps(highest.last(needed).steps)
    origin = "one reward for all responses teaches nothing: the policy lost the task or has solved it, or the reward is clipped"
    limit = Limit(comparison=">", value=0.0, origin=origin)
    lowest_of_all, highest_of_all = min(last), max(last)
    values = f"are all {highest_of_all:.6g}" if lowest_of_all == highest_of_all else f"reach up to {highest_of_all:.6g}"
    what = f"the rewards of steps {steps} {values}; the range of them"
    return (judged(name, max(last) - min(last), limit, what=what, metric="critic/rewards/max"),)


def _advantage(metrics: Metrics) -> Check:
    name = "rewards.advantage"
    highest = usable_series(metrics, "critic/advantages/max", name=name)
    lowest = usable_series(metrics, "critic/advantages/min", name=name)
    if isinstance(highest, Check):
        return highest
    if isinstance(lowest, Check):
        return lowest
    largest = max(*map(abs, highest), *map(abs, lowest))
    limit = Limit(comparison=">", value=0.0, origin="where every advantage is zero, all answers to each prompt got one reward")
    return judged(name, largest, limit, what="the largest advantage of the run", metric="critic/advantages/max")


def _collapse(metrics: Metrics, window: int, max_drop: float | None) -> Check:
    name = _COLLAPSE
    series = usable_series(metrics, REWARD, name=name)
    if isinstance(series, Check):
        return series
    if len(series) < 2 * window:
        message = f"{REWARD}: a drop between two windows of {window} steps cannot be seen in {len(series)} training steps"
        return undecided(name, message, metric=REWARD)
    means = [math.fsum(series.values[at : at + window]) / window for at in range(len(series) - window + 1)]
    best = max(range(len(means)), key=means.__getitem__)
    drop = means[best] - means[-1]
    if max_drop is not None:
        limit = Limit(comparison="<=", value=max_drop, origin=GIVEN)
    else:
        noise = noise_of(series)
        origin = (
            f"{_COLLAPSE_ERRORS:g} standard errors of the difference of two windows; noise between neighbouring steps {noise:.2g}"
        )
        limit = Limit(comparison="<=", value=_COLLAPSE_ERRORS * noise * math.sqrt(2 / window), origin=origin)
    windows = f"steps {shown_steps(series.steps[best : best + window])}) to the last (steps {shown_steps(series.steps[-window:])}"
    what = f"{REWARD}: the drop from the best window ({windows})"
    return judged(name, drop, limit, what=what, metric=REWARD)
