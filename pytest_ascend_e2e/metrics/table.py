"""All metrics of a run, by name.

Owns the message for a metric that is not there. Must not know how a log is read or a metric judged.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import NoReturn

from ..errors import MetricError
from .keys import is_validation, option_for
from .series import MetricSeries, shown_steps

_NEAREST = 3


class Metrics(Mapping[str, MetricSeries]):
    """The metrics that a run printed: a mapping from verl's own key to its `MetricSeries`.

    `steps` are all step numbers of the log; `problems` says what was wrong with the log, one sentence each, and is empty for a
    log that could be read without doubt.
    """

    __slots__ = ("_series", "problems", "steps", "training_steps")

    def __init__(self, rows: Mapping[int, Mapping[str, float]], *, problems: Iterable[str] = ()) -> None:
        self.steps: tuple[int, ...] = tuple(sorted(rows))
        self.problems: tuple[str, ...] = tuple(problems)
        # A step at which verl printed more than the results of a validation.
        self.training_steps: tuple[int, ...] = tuple(step for step in self.steps if not all(map(is_validation, rows[step])))
        columns: dict[str, tuple[list[int], list[float]]] = {}
        for step in self.steps:
            for key, value in rows[step].items():
                steps, values = columns.setdefault(key, ([], []))
                steps.append(step)
                values.append(float(value))
        self._series = {
            key: MetricSeries(name=key, steps=tuple(steps), values=tuple(values)) for key, (steps, values) in columns.items()
        }

    def __getitem__(self, key: str) -> MetricSeries:
        try:
            return self._series[key]
        except KeyError:
            self._missing(key)

    def __contains__(self, key: object) -> bool:
        return key in self._series

    def __iter__(self) -> Iterator[str]:
        return iter(self._series)

    def __len__(self) -> int:
        return len(self._series)

    def __repr__(self) -> str:
        problems = f", {len(self.problems)} problems" if self.problems else ""
        return f"<{len(self)} metrics at steps {shown_steps(self.steps)}{problems}>"

    def row(self, step: int) -> dict[str, float]:
        """Return what was printed at `step`."""
        if step not in self.steps:
            raise MetricError(f"there is no step {step} in this run; it has steps {shown_steps(self.steps)}")
        return {key: series.at(step) for key, series in self._series.items() if step in series.steps}

    def why_missing(self, key: str) -> str:
        """Return the sentence for a reader who looks for `key` in vain: the nearest names, and verl's option."""
        if not self._series:
            return f"{key}: the run has no metrics; {self.problems[0] if self.problems else 'it logged no step'}"
        parts = [f"{key} is not among the {len(self)} metrics of this run (steps {shown_steps(self.steps)})"]
        nearest = self.nearest(key)
        if nearest:
            parts.append(f"nearest: {', '.join(nearest)}")
        option = option_for(key)
        if option:
            parts.append(option)
        if self.problems:
            parts.append(f"the log has {len(self.problems)} problems, the first: {self.problems[0]}")
        return "; ".join(parts)

    def nearest(self, key: str) -> tuple[str, ...]:
        """Return the names that look most like `key`, best first."""
        return tuple(difflib.get_close_matches(key, list(self._series), n=_NEAREST, cutoff=0.6))

    def _missing(self, key: object) -> NoReturn:
        raise MetricError(self.why_missing(str(key)))
