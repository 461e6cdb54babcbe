"""Building blocks: one question about one metric, for any test.

Must not know which metrics verl has. A metric that is absent, absent at a step, or not finite fails every block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from ..errors import CheckError
from ..metrics import Metrics, MetricSeries, shown_steps
from ..records import Check
from .limits import Limit, failed, judged, passed, undecided


def usable_series(metrics: Metrics, key: str, *, name: str, steps: Iterable[int] | None = None) -> MetricSeries | Check:
    """Return the values of `key` at `steps` (default: every training step), or the failed check that says why there are none."""
    wanted = tuple(metrics.training_steps if steps is None else steps)
    if key not in metrics:
        return failed(name, metrics.why_missing(key), metric=key)
    if not wanted:
        return failed(
            name, f"{key} cannot be judged: the run has no training step (steps {shown_steps(metrics.steps)})", metric=key
        )
    series = metrics[key]
    chosen = series
    # Most series have a value at each training step and at no other.
    if series.steps != wanted:
        missing = series.missing(wanted)
        if missing:
            return failed(name, f"{key} has no value at steps {shown_steps(missing)}", metric=key, step=missing[0])
        chosen = series.chosen(wanted)
    broken = chosen.non_finite_steps
    if broken:
        return failed(name, f"{key} is {chosen.at(broken[0])} at steps {shown_steps(broken)}", metric=key, step=broken[0])
    return chosen


def check_every_step(metrics: Metrics, key: str, *, name: str = "", steps: Sequence[int] | None = None) -> tuple[Check, ...]:
    """Check that `key` has a finite value at each of `steps` (default: every training step)."""
    name = name or f"{key}.every-step"
    series = usable_series(metrics, key, name=name, steps=steps)
    if isinstance(series, Check):
        return (series,)
    return (passed(name, f"{key} has a finite value at each of the steps {shown_steps(series.steps)}", metric=key),)


def check_each_value(
    metrics: Metrics, key: str, limit: Limit, *, name: str = "", steps: Sequence[int] | None = None
) -> tuple[Check, ...]:
    """Check that the value of `key` keeps `limit` at each of `steps` (default: every training step); the worst one is shown."""
    name = name or f"{key}.each"
    series = usable_series(metrics, key, name=name, steps=steps)
    if isinstance(series, Check):
        return (series,)
    step = limit.worst(dict(series.items()))
    what = f"{key} at its worst step {step} of {shown_steps(series.steps)}"
    return (judged(name, series.at(step), limit, what=what, metric=key, step=step),)


def check_level(metrics: Metrics, key: str, limit: Limit, *, window: int, name: str = "") -> tuple[Check, ...]:
    """Check that the mean of `key` over the last `window` training steps keeps `limit`."""
    name = name or f"{key}.level"
    _need_positive("window", window)
    series = usable_series(metrics, key, name=name)
    if isinstance(series, Check):
        return (series,)
    if len(series) < window:
        return (undecided(name, f"{key}: a window of {window} steps does not fit into {len(series)} training steps", metric=key),)
    last = series.last(window)
    return (judged(name, last.mean(), limit, what=over(key, "mean", last.steps), metric=key),)


def check_median(metrics: Metrics, key: str, limit: Limit, *, warmup: int, name: str = "") -> tuple[Check, ...]:
    """Check that the median of `key` over the training steps after the first `warmup` ones keeps `limit`."""
    name = name or f"{key}.median"
    series = after_warmup(metrics, key, warmup=warmup, name=name)
    if isinstance(series, Check):
        return (series,)
    return (judged(name, series.median(), limit, what=over(key, "median", series.steps), metric=key),)


def check_window(metrics: Metrics, key: str, limit: Limit, *, first_step: int, last_step: int, name: str = "") -> tuple[Check, ...]:
    """Check that the mean of `key` over the steps `first_step` to `last_step` keeps `limit`; every one of them must be there."""
    name = name or f"{key}.window"
    if not 0 <= first_step <= last_step:
        raise CheckError(f"steps {first_step!r} to {last_step!r} cannot be used: expected 0 <= first_step <= last_step")
    series = usable_series(metrics, key, name=name, steps=range(first_step, last_step + 1))
    if isinstance(series, Check):
        return (series,)
    return (judged(name, series.mean(), limit, what=over(key, "mean", series.steps), metric=key),)


def check_monotone(metrics: Metrics, key: str, direction: Literal["rising", "falling"], *, name: str = "") -> tuple[Check, ...]:
    """Check that `key` never goes against `direction` from one training step to the next; staying is allowed."""
    if direction not in {"rising", "falling"}:
        raise CheckError(f"direction {direction!r} cannot be used: expected rising or falling")
    name = name or f"{key}.{direction}"
    series = usable_series(metrics, key, name=name)
    if isinstance(series, Check):
        return (series,)
    if len(series) == 1:
        return (undecided(name, f"{key}: whether it is {direction} cannot be decided from one step", metric=key),)
    sign = 1 if direction == "rising" else -1
    changes = {
        step: sign * (later - earlier)
        for step, earlier, later in zip(series.steps[1:], series.values, series.values[1:], strict=False)
    }
    limit = Limit(comparison=">=", value=0.0, origin=f"{direction} was asked for by the test")
    step = limit.worst(changes)
    what = f"{key}: the change to step {step}, seen in the direction {direction},"
    return (judged(name, changes[step], limit, what=what, metric=key, step=step),)


def check_spread(metrics: Metrics, key: str, limit: Limit, *, warmup: int = 0, name: str = "") -> tuple[Check, ...]:
    """Check that the standard deviation of `key` over the training steps after the first `warmup` ones keeps `limit`."""
    name = name or f"{key}.spread"
    series = after_warmup(metrics, key, warmup=warmup, name=name)
    if isinstance(series, Check):
        return (series,)
    if len(series) == 1:
        return (undecided(name, f"{key}: one step shows no spread", metric=key),)
    what = f"{key}, standard deviation over steps {shown_steps(series.steps)}"
    return (judged(name, series.std(), limit, what=what, metric=key),)


def over(key: str, statistic: str, steps: Sequence[int]) -> str:
    """Return the name of a statistic of `key` over these steps; of one step it is the value itself."""
    return f"{key} at step {steps[0]}" if len(steps) == 1 else f"{key}, {statistic} of steps {shown_steps(steps)}"


def after_warmup(metrics: Metrics, key: str, *, warmup: int, name: str) -> MetricSeries | Check:
    """Return the values of `key` at the training steps after the first `warmup` ones, or the check that is red for want of them."""
    if warmup < 0:
        raise CheckError(f"warmup {warmup!r} cannot be used: expected the number of steps to leave out, 0 or more")
    if metrics.training_steps and len(metrics.training_steps) <= warmup:
        count = len(metrics.training_steps)
        return undecided(name, f"{key}: no step is left of {count} training steps after a warm-up of {warmup}", metric=key)
    return usable_series(metrics, key, name=name, steps=metrics.training_steps[warmup:])


def _need_positive(what: str, value: int) -> None:
    if value < 1:
        raise CheckError(f"{what} {value!r} cannot be used: expected 1 or more")
