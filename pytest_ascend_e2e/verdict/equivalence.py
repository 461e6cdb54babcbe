"""Are two runs the same, step by step: two layouts, before and after a resume, two engines, one replayed rollout?

Must not know what was varied, or whether it should matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import CheckError
from ..metrics import Metrics, MetricSeries, fits, shown_steps
from ..records import Check
from .blocks import usable_series
from .limits import GIVEN, Limit, failed, judged

# What no two runs share, however deterministic they are.
_MEASURED = ("timing_s/*", "timing_per_token_ms/*", "perf/*", "*/perf/*")


def check_same(
    metrics: Metrics,
    other: Metrics,
    keys: Sequence[str] = (),
    *,
    max_limit: float | None = None,
    mean_limit: float | None = None,
    is_bitwise: bool = False,
    steps: Sequence[int] | None = None,
) -> tuple[Check, ...]:
    """Check that two runs have the same values of `keys` at each of `steps` (default: all training steps, which must be the same).

    `max_limit` holds for the difference at each step, `mean_limit` for the mean of the differences; a run and its resumed half are
    compared at the `steps` of the latter. `is_bitwise` asks for equal values instead, by default of every metric but times, speed
    and memory.
    """
    _need_sense(keys, max_limit, mean_limit, is_bitwise=is_bitwise)
    if steps is None and metrics.training_steps != other.training_steps:
        both = f"{shown_steps(metrics.training_steps)} and {shown_steps(other.training_steps)}"
        return (failed("same.steps", f"the runs have different training steps, {both}: say at which to compare"),)
    chosen = keys or tuple(key for key in dict.fromkeys((*metrics, *other)) if not fits(key, _MEASURED))
    if not chosen:
        return (failed("same.metrics", "the runs have no metric that could be compared"),)
    checks: list[Check] = []
    for key in chosen:
        name = f"same.{key}"
        wanted = _steps_of(metrics, key) if steps is None else steps
        mine, theirs = usable_series(metrics, key, name=name, steps=wanted), usable_series(other, key, name=name, steps=wanted)
        if isinstance(mine, Check):
            checks.append(mine)
        elif isinstance(theirs, Check):
            checks.append(theirs)
        else:
            checks.extend(_compared(name, mine, theirs, max_limit, mean_limit, is_bitwise=is_bitwise))
    return tuple(checks)


def _steps_of(metrics: Metrics, key: str) -> Sequence[int]:
    """Return the steps at which verl printed a metric: those of a validation are few."""
    return metrics[key].steps if key in metrics else metrics.training_steps


def _compared(
    name: str, mine: MetricSeries, theirs: MetricSeries, most: float | None, mean: float | None, *, is_bitwise: bool
) -> tuple[Check, ...]:
    differences = {step: abs(value - theirs.at(step)) for step, value in mine.items()}
    worst = max(differences, key=differences.__getitem__)
    at_worst = f"({mine.at(worst):.9g} and {theirs.at(worst):.9g}) of steps {shown_steps(mine.steps)}"
    what = f"{mine.name}: the difference of the two runs at its largest step {worst} {at_worst}"
    if is_bitwise:
        limit = Limit(comparison="==", value=0.0, origin="equal values were asked for: the runs are deterministic")
        return (judged(name, differences[worst], limit, what=what, metric=mine.name, step=worst),)
    checks: list[Check] = []
    if most is not None:
        limit = Limit(comparison="<=", value=most, origin=GIVEN)
        checks.append(judged(name, differences[worst], limit, what=what, metric=mine.name, step=worst))
    if mean is not None:
        value = math.fsum(differences.values()) / len(differences)
        what = f"{mine.name}: the mean difference of the two runs over steps {shown_steps(mine.steps)}"
        checks.append(judged(f"{name}.mean", value, Limit(comparison="<=", value=mean, origin=GIVEN), what=what, metric=mine.name))
    return tuple(checks)


def _need_sense(keys: Sequence[str], most: float | None, mean: float | None, *, is_bitwise: bool) -> None:
    if is_bitwise and (most is not None or mean is not None):
        raise CheckError("equal values leave nothing for max_limit= or mean_limit= to allow: give either")
    if not is_bitwise and most is None and mean is None:
        raise CheckError("nothing limits the difference of the runs: give max_limit= or mean_limit=, or ask for equal values")
    if not is_bitwise and not keys:
        raise CheckError("one limit does not fit every metric: name the metrics that it is for")
    if any(limit is not None and not limit >= 0 for limit in (most, mean)):
        raise CheckError(f"max_limit {most!r} and mean_limit {mean!r}: expected differences of 0 or more")
