"""What two repeats say of a failure."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ascend_e2e.records import Check, RunRecord, Verdict
from pytest_ascend_e2e.session.confirming import Finding, confirmation, finding_of
from tests.fakes.run_directories import SOUND

RED = dataclasses.replace(SOUND, checks=(Check(name="rewards.level", verdict=Verdict.FAILED, message="low"),))
CRASHED = dataclasses.replace(SOUND, exit_status=1, end_reason="exit status 1")


@pytest.mark.parametrize(
    ("same", "other", "finding"),
    [
        (RED, RED, Finding.REGRESSION),
        (SOUND, SOUND, Finding.FLAKE),
        (SOUND, RED, Finding.FLAKE),
        (RED, SOUND, Finding.SEED),
        (CRASHED, SOUND, Finding.BROKEN),
        (RED, CRASHED, Finding.BROKEN),
    ],
)
def test_the_finding_follows_from_both_repeats(same: RunRecord, other: RunRecord, finding: Finding) -> None:
    assert finding_of(same, other) is finding
    assert finding.value in confirmation(RED, same, other).splitlines()[0]


def test_the_three_runs_stand_below_the_finding() -> None:
    lines = confirmation(RED, RED, CRASHED).splitlines()

    assert lines[1].startswith("  this run: failed: rewards.level")
    assert lines[3].startswith("  another seed: failed: exit status 1")
