"""How often does a case fail although nothing changed?

Must not know where records are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..records import RunRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class FlakeRate:
    """How many of `runs` runs failed (`failed`), and how many of these are flakes.

    A failure is a flake where another run of the same commit, versions, runner and layout passed: the inputs were the same, so the
    failure says nothing of them; of files that differ from the commit nobody knows. `infra` counts the failures of which the
    diagnosis says that the machine was at fault. A run that somebody interrupted is neither a failure nor one of `runs`: it counts
    in `interrupted` only.
    """

    runs: int
    failed: int
    flaky: int
    infra: int
    interrupted: int = 0

    @property
    def rate(self) -> float:
        """The part of all runs that are flakes, 0 where there is no run."""
        return self.flaky / self.runs if self.runs else 0.0


def flake_rate(records: Iterable[RunRecord]) -> FlakeRate:
    """Return the flake rate of these runs of one case."""
    groups: dict[tuple[object, ...], list[RunRecord]] = {}
    interrupted = 0
    for record in records:
        if record.was_interrupted:
            interrupted += 1
            continue
        tree = (record.commit, record.run_id if record.is_dirty else "")
        key = (*tree, tuple(sorted(record.versions.items())), record.runner, record.layout, record.steps)
        groups.setdefault(key, []).append(record)
    failed = [[record for record in group if not record.is_passed] for group in groups.values()]
    flaky = sum(len(bad) for group, bad in zip(groups.values(), failed, strict=True) if len(bad) < len(group))
    infra = sum(record.diagnosis is not None and record.diagnosis.infra for bad in failed for record in bad)
    runs = sum(map(len, groups.values()))
    return FlakeRate(runs=runs, failed=sum(map(len, failed)), flaky=flaky, infra=infra, interrupted=interrupted)
