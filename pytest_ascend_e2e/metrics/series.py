"""One metric over the steps of a run.

Owns arithmetic on steps and values, in which a NaN is never lost. Must not know where the values came from.
"""

from __future__ import annotations

import bisect
import math
import operator
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import MetricError

_SHOWN = 6


def shown_steps(steps: Iterable[int]) -> str:
    """Return step numbers as a reader wants them: `1..15`, `1..4, 6..15`, `none`."""
    ordered = sorted(set(steps))
    # Nearly always one group, of up to thousands of steps.
    if len(ordered) > 1 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}..{ordered[-1]}"
    runs: list[list[int]] = []
    for step in ordered:
        if runs and step == runs[-1][1] + 1:
            runs[-1][1] = step
        else:
            runs.append([step, step])
    texts = [str(first) if first == last else f"{first}..{last}" for first, last in runs]
    if len(texts) > _SHOWN:
        texts = [*texts[:_SHOWN], f"and {len(texts) - _SHOWN} more groups"]
    return ", ".join(texts) or "none"


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class MetricSeries:
    """The values of one metric, in the order of their steps.

    Iteration and `len` are over the values. Every statistic of a series that holds a NaN is NaN, so that no comparison with it
    holds; every question about values that are not there raises `MetricError`.
    """

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.steps) != len(self.values):
            raise MetricError(
                f"{self.name}: {len(self.steps)} steps but {len(self.values)} values; expected one value for each step"
            )
        if not all(map(operator.lt, self.steps, self.steps[1:])):
            raise MetricError(f"{self.name}: steps {self.steps!r} cannot be used: expected rising step numbers")

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)

    def __repr__(self) -> str:
        texts = [format(value, ".6g") for value in self.values]
        if len(texts) > _SHOWN:
            texts = [*texts[:3], "...", *texts[-3:]]
        return f"<{self.name} at steps {shown_steps(self.steps)}: {', '.join(texts)}>"

    def at(self, step: int) -> float:
        """Return the value at `step`; the message of the `MetricError` names the steps there are."""
        index = bisect.bisect_left(self.steps, step)
        if index == len(self.steps) or self.steps[index] != step:
            raise MetricError(f"{self.name} has no value at step {step}; it has values at steps {shown_steps(self.steps)}")
        return self.values[index]

    def first(self, count: int) -> MetricSeries:
        """Return the first `count` values."""
        self._need(count, "first")
        return MetricSeries(name=self.name, steps=self.steps[:count], values=self.values[:count])

    def last(self, count: int) -> MetricSeries:
        """Return the last `count` values."""
        self._need(count, "last")
        return MetricSeries(name=self.name, steps=self.steps[-count:], values=self.values[-count:])

    def window(self, first_step: int, last_step: int) -> MetricSeries:
        """Return the values at the steps from `first_step` to `last_step`, both included."""
        chosen = [(step, value) for step, value in self.items() if first_step <= step <= last_step]
        if not chosen:
            raise MetricError(
                f"{self.name} has no value at any of the steps {first_step}..{last_step}; "
                f"it has values at steps {shown_steps(self.steps)}"
            )
        return MetricSeries(name=self.name, steps=tuple(step for step, _ in chosen), values=tuple(value for _, value in chosen))

    def chosen(self, steps: Sequence[int]) -> MetricSeries:
        """Return the values at these rising steps, each of which must have one."""
        begin = bisect.bisect_left(self.steps, steps[0]) if steps else 0
        found = self.values[begin : begin + len(steps)]
        # Mostly the steps after a warm-up: one piece of the series.
        if self.steps[begin : begin + len(steps)] != tuple(steps):
            found = tuple(self.at(step) for step in steps)
        return MetricSeries(name=self.name, steps=tuple(steps), values=found)

    def items(self) -> tuple[tuple[int, float], ...]:
        """Return the pairs of step and value."""
        return tuple(zip(self.steps, self.values, strict=True))

    def mean(self) -> float:
        """Return the arithmetic mean."""
        self._need(1, "mean of the")
        if self.non_finite_steps:
            return sum(self.values)
        return math.fsum(self.values) / len(self.values)

    def median(self) -> float:
        """Return the median."""
        self._need(1, "median of the")
        return math.nan if any(map(math.isnan, self.values)) else statistics.median(self.values)

    def min(self) -> float:
        """Return the smallest value."""
        self._need(1, "smallest of the")
        return math.nan if any(map(math.isnan, self.values)) else min(self.values)

    def max(self) -> float:
        """Return the largest value."""
        self._need(1, "largest of the")
        return math.nan if any(map(math.isnan, self.values)) else max(self.values)

    def std(self) -> float:
        """Return the standard deviation of a sample (divided by n - 1), for which two values are needed."""
        self._need(2, "standard deviation of the")
        return math.nan if self.non_finite_steps else statistics.stdev(self.values)

    @property
    def non_finite_steps(self) -> tuple[int, ...]:
        """The steps at which the value is NaN or infinite."""
        if all(map(math.isfinite, self.values)):
            return ()
        return tuple(step for step, value in self.items() if not math.isfinite(value))

    def missing(self, steps: Iterable[int]) -> tuple[int, ...]:
        """Return those of `steps` at which there is no value."""
        wanted = tuple(steps)
        if wanted == self.steps:
            return ()
        present = set(self.steps)
        return tuple(step for step in wanted if step not in present)

    def _need(self, count: int, what: str) -> None:
        if count < 1:
            raise MetricError(f"{self.name}: {what} {count} values cannot be asked for: expected 1 or more")
        if len(self.values) < count:
            raise MetricError(
                f"{self.name}: {what} {count} values cannot be had: it has {len(self.values)}, at steps {shown_steps(self.steps)}"
            )
