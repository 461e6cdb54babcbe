"""Step by step into a table: merging, and the problems that merging brings to light.

Must not know the form of a log. Nothing is dropped without a word: what a later line replaces is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from .table import Metrics

_MOST_PROBLEMS = 100
_SHOWN = 3


def is_same(one: float, other: float) -> bool:
    """Tell whether two values are equal, a NaN being equal to a NaN."""
    return one == other or (math.isnan(one) and math.isnan(other))


class Collector:
    """Takes the lines of a log in their order and gives the table of metrics."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[str, float]] = {}
        self._problems: list[str] = []
        self._left_out = 0
        self._last_step: int | None = None

    @property
    def has_steps(self) -> bool:
        """Tell whether any step was added."""
        return bool(self._rows)

    def problem(self, text: str) -> None:
        """Add a problem; a hundred are kept word by word, the rest is counted."""
        if len(self._problems) < _MOST_PROBLEMS:
            self._problems.append(text)
        else:
            self._left_out += 1

    def add(self, step: int, values: Iterable[tuple[str, float]], *, where: str) -> None:
        """Add one line of a log; values of a step seen before are merged, and those that it replaces are named."""
        pairs = list(values)
        if self._last_step is not None and step < self._last_step:
            self.problem(
                f"{where}: step {step} comes after step {self._last_step}: the run was started again, or two logs are in one"
            )
        self._last_step = step
        row = self._rows.setdefault(step, {})
        before = dict(row)
        for key, value in pairs:
            if key in row and key not in before and not is_same(row[key], value):
                self.problem(f"{where}: step {step} has {key} twice, {row[key]:.6g} and {value:.6g}; the later one counts")
            row[key] = value
        self._name_replaced(step, before, dict(pairs), where)

    def metrics(self) -> Metrics:
        """Return the table of what was added."""
        more = [f"and {self._left_out} more problems"] if self._left_out else []
        return Metrics(self._rows, problems=[*self._problems, *more])

    def _name_replaced(self, step: int, before: Mapping[str, float], values: Mapping[str, float], where: str) -> None:
        again = [key for key in values if key in before]
        if not again:
            return
        changed = [f"{key} from {before[key]:.6g} to {values[key]:.6g}" for key in again if not is_same(before[key], values[key])]
        if not changed:
            self.problem(f"{where}: step {step} is logged again, with the same values of {len(again)} metrics")
            return
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        self.problem(f"{where}: step {step} is logged again and replaces {', '.join(changed[:_SHOWN])}{more}")
