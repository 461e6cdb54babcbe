"""Did a figure step up or down somewhere in a row of runs? The test of Pettitt.

Pettitt, "A non-parametric approach to the change-point problem", Applied Statistics 28 (1979). It needs no assumption on the noise,
and finds a slow drift too, which a baseline that moves along would hide. Must not know what the runs are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import CheckError


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangePoint:
    """Where a row of values changed most: `index` is the first value after the change, `before` and `after` are the medians.

    `doubt` is the probability of so large a difference without a change, an approximation that is too large rather than too small.
    """

    index: int
    before: float
    after: float
    doubt: float


def change_point(values: Sequence[float]) -> ChangePoint:
    """Return the most likely change of a row of finite values, two or more."""
    count = len(values)
    if count < 2 or not all(map(math.isfinite, values)):  # noqa: PLR2004  # one before and one after
        raise CheckError(f"a change needs two or more finite values; came {list(values)!r}")
    score, scores = 0, []
    for value in values[:-1]:
        # The score of a split is that of the split before, with one value moved to the left.
        score += sum((other > value) - (other < value) for other in values)
        scores.append(abs(score))
    split = max(range(count - 1), key=scores.__getitem__) + 1
    doubt = min(1.0, 2 * math.exp(-6 * scores[split - 1] ** 2 / (count**3 + count**2)))
    return ChangePoint(index=split, before=statistics.median(values[:split]), after=statistics.median(values[split:]), doubt=doubt)


def runs_needed(doubt: float) -> int:
    """Return how many values a change in their middle needs to be seen with `doubt` or less."""
    count = 2
    while 2 * math.exp(-6 * ((count // 2) * ((count + 1) // 2)) ** 2 / (count**3 + count**2)) > doubt:
        count += 1
    return count
