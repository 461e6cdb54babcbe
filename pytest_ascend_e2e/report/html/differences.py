"""What differs between a run and the last green one of the same case: configuration, versions, environment.

Must not know: where the two runs are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...records import RunRecord

ABSENT = "(not set)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One setting that differs, as text before and now."""

    name: str
    before: str
    now: str


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[Difference]:
    """Return the settings of either side that differ, by name."""
    names = sorted(before.keys() | now.keys())
    pairs = [Difference(name=name, before=before.get(name, ABSENT), now=now.get(name, ABSENT)) for name in names]
    return [pair for pair in pairs if pair.before != pair.now]


def commit_of(record: RunRecord) -> str:
    """Return the commit of a run, and that files differed from it where they did."""
    return f"{record.commit[:12]}{' with changes' if record.is_dirty else ''}" if record.commit else "not known"


def last_green(record: RunRecord, past: Iterable[RunRecord]) -> RunRecord | None:
    """Return the last run that passed before this one began: same case, same runner, as it stands in the repository."""
    earlier = [
        other
        for other in past
        if other.is_passed
        and other.checks
        and not other.changed
        and (other.case, other.runner) == (record.case, record.runner)
        and other.started_at < record.started_at
    ]
    return max(earlier, key=lambda other: other.started_at, default=None)
