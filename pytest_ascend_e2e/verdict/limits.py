"""A limit with its origin, and the `Check` that comes of holding a value against it.

Must not know which metric means what. A NaN passes no limit.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..errors import CheckError
from ..records import Check, Verdict

GIVEN = "given by the test"

_COMPARE: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt, "==": operator.eq}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """How a value must stand to a number, such as `>= 0.3`, and where the number comes from."""

    comparison: str
    value: float
    origin: str = GIVEN

    def __post_init__(self) -> None:
        problems = []
        if self.comparison not in _COMPARE:
            problems.append(f"comparison {self.comparison!r} cannot be used: expected one of {', '.join(_COMPARE)}")
        if not math.isfinite(self.value):
            problems.append(f"limit {self.value!r} cannot be used: expected a finite number, as no value can miss any other")
        if not self.origin.strip():
            problems.append("a limit needs an origin: say where the number comes from")
        if problems:
            raise CheckError(*problems)

    def __str__(self) -> str:
        return f"{self.comparison} {self.value:.6g}"

    def allows(self, value: float) -> bool:
        """Tell whether `value` keeps the limit; a value that is not finite never does."""
        return math.isfinite(value) and _COMPARE[self.comparison](value, self.value)

    def worst(self, values: Mapping[int, float]) -> int:
        """Return the step whose value stands worst to the limit: the first one that is not finite, else the farthest off."""
        if not all(map(math.isfinite, values.values())):
            return next(step for step, value in values.items() if not math.isfinite(value))
        if self.comparison == "==":
            return max(values, key=lambda step: abs(values[step] - self.value))
        return min(values, key=values.__getitem__) if self.comparison in {">=", ">"} else max(values, key=values.__getitem__)


def failed(name: str, message: str, *, metric: str = "", step: int | None = None) -> Check:
    """Return a failed check that is no comparison: something is missing or broken."""
    return Check(name=name, verdict=Verdict.FAILED, message=message, metric=metric, step=step)


def undecided(name: str, message: str, *, metric: str = "") -> Check:
    """Return a check that the test asked for, and for which the run has too few steps."""
    return Check(name=name, verdict=Verdict.UNDECIDED, message=message, metric=metric)


def not_made(name: str, *, needed: int, metric: str) -> Check:
    """Return a check that nobody asked for, and for which the run has too few steps: fewer than `needed`."""
    return Check(name=name, verdict=Verdict.NOT_MADE, message=f"{metric}: {needed} steps are needed to tell", metric=metric)


def passed(name: str, message: str, *, metric: str = "", value: float | None = None) -> Check:
    """Return a passed check that is no comparison with a number."""
    return Check(name=name, verdict=Verdict.PASSED, message=message, metric=metric, value=value)


def judged(name: str, value: float, limit: Limit, *, what: str, metric: str = "", step: int | None = None) -> Check:
    """Return the check of `value` against `limit`; `what` is the subject of its sentence."""
    keeps = limit.allows(value)
    verb = "keeps" if keeps else "breaks"
    return Check(
        name=name,
        verdict=Verdict.PASSED if keeps else Verdict.FAILED,
        message=f"{what} is {value:.6g}, which {verb} the limit {limit}",
        metric=metric,
        value=value,
        comparison=limit.comparison,
        limit=limit.value,
        origin=limit.origin,
        step=step,
    )
