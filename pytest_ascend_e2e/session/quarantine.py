"""A case that is off: why, who owns that, where it is tracked, and until when.

Must not know: pytest, or today's date.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import E2EError

ARGUMENTS = ("reason", "owner", "issue", "until")


@dataclass(frozen=True, kw_only=True, slots=True)
class Quarantine:
    """Why a case is off, who owns that, the issue that tracks it, and the last day on which it may be off."""

    reason: str
    owner: str
    issue: str
    until: dt.date

    def __str__(self) -> str:
        return f"quarantined until {self.until.isoformat()} by {self.owner}: {self.reason} ({self.issue})"

    def is_over(self, today: dt.date) -> bool:
        """Tell whether the last day has passed: the case is red from then on."""
        return today > self.until


def quarantine_from_arguments(name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> Quarantine:
    """Return the quarantine that the arguments of a marker describe.

    Raises:
        E2EError: with one text for each argument that is wrong or missing.
    """
    problems = []
    if args:
        problems.append(f"takes no positional argument, got {args[0]!r}; name it, such as reason={args[0]!r}")
    problems += [f"has no argument {key!r}; accepted are {', '.join(ARGUMENTS)}" for key in kwargs if key not in ARGUMENTS]
    for key in ARGUMENTS:
        value = kwargs.get(key)
        if key != "until" and (not isinstance(value, str) or not value.strip()):
            problems.append(f"{key}={value!r}: a case that is off says so: give a text")
    until = _date(kwargs.get("until"))
    if until is None:
        problems.append(f"until={kwargs.get('until')!r}: expected the last day on which it may be off, such as '2027-01-31'")
    if problems or until is None:
        raise E2EError(*(f"@quarantine of {name} {problem}" for problem in problems))
    reason, owner, issue = (str(kwargs[key]) for key in ARGUMENTS[:3])
    return Quarantine(reason=reason, owner=owner, issue=issue, until=until)


def _date(given: object) -> dt.date | None:
    if isinstance(given, dt.date) and not isinstance(given, dt.datetime):
        return given
    try:
        return dt.date.fromisoformat(given) if isinstance(given, str) else None
    except ValueError:
        return None
