"""A red metric is confirmed: what two repeats of a run, one with the same seed and one with another, say of its failure.

Must not know: how a run is repeated. Nothing here makes a red run green.
"""

from __future__ import annotations

import dataclasses
import enum

from ..recipe import Recipe
from ..records import RunRecord


class Finding(enum.Enum):
    """What a failure is, by its repeats."""

    REGRESSION = "regression"
    FLAKE = "flake"
    SEED = "seed"
    BROKEN = "not confirmed"


_SENTENCES = {
    Finding.REGRESSION: "it fails again with the same seed and with another: the code or its environment changed",
    Finding.FLAKE: "it passes with the same seed: the failure is noise of the machine or of the run",
    Finding.SEED: "it fails again with the same seed and passes with another: this seed is unlucky, or the limit too tight for it",
    Finding.BROKEN: "a repeat did not complete, so nothing can be said",
}


def with_another_seed(recipe: Recipe) -> Recipe:
    """Return the same recipe with another seed."""
    return dataclasses.replace(recipe, seed=(recipe.seed or 0) + 1)


def finding_of(same: RunRecord, other: RunRecord) -> Finding:
    """Return what the failure of a run is: `same` is its repeat with the same seed, `other` that with another."""
    if not (same.is_completed and other.is_completed):
        return Finding.BROKEN
    if same.is_passed:
        return Finding.FLAKE
    return Finding.SEED if other.is_passed else Finding.REGRESSION


def confirmation(failed: RunRecord, same: RunRecord, other: RunRecord) -> str:
    """Return the lines for a reader: the finding, and the three runs with the checks that failed in each."""
    finding = finding_of(same, other)
    lines = [f"confirmed as {finding.value}: {_SENTENCES[finding]}"]
    if finding is Finding.BROKEN:
        lines = [f"not confirmed: {_SENTENCES[finding]}"]
    for what, record in (("this run", failed), ("same seed", same), ("another seed", other)):
        names = [check.name for check in record.failed_checks]
        verdict = "passed" if record.is_passed else f"failed: {', '.join(names) if record.is_completed else record.end_reason}"
        lines.append(f"  {what}: {verdict} ({record.run_id})")
    return "\n".join(lines)
