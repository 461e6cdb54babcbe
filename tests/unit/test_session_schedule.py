"""Which case starts when, and how long it is expected to take."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_ascend_e2e.history import History
from pytest_ascend_e2e.records import Ending
from pytest_ascend_e2e.session import Job, expected_duration_s, lower_bound_s, starts
from tests.fakes.run_directories import SOUND

LARGE = Job(name="large", devices=16, duration_s=10.0)
HALF = Job(name="half", devices=8, duration_s=10.0)
MOST = Job(name="most", devices=9, duration_s=10.0)
LONG = Job(name="long", devices=1, duration_s=60.0)
SHORT = Job(name="short", devices=1, duration_s=1.0)


def names(*jobs: Job, running: tuple[Job, ...] = (), devices: int = 16, workers: int = 8) -> list[str]:
    return [job.name for job in starts(jobs, running, devices=devices, workers=workers)]


def test_a_long_case_starts_before_large_ones_that_fit_beside_it_no_less() -> None:
    assert "long" in names(SHORT, HALF, LONG)


def test_what_fits_beside_a_running_case_starts_and_what_does_not_waits() -> None:
    assert names(LARGE, SHORT, running=(HALF,)) == ["short"]


def test_nothing_starts_without_a_worker_or_a_device() -> None:
    assert names(SHORT, running=(LARGE,)) == []
    assert names(SHORT, running=(HALF,), workers=1) == []


def test_a_case_that_is_larger_than_the_host_starts_when_the_host_is_free() -> None:
    huge = Job(name="huge", devices=64, duration_s=1.0)

    assert names(huge) == ["huge"]
    assert names(huge, running=(SHORT,)) == []


@pytest.mark.parametrize(
    ("jobs", "workers", "bound_s"),
    [([LARGE, MOST], 8, 20.0), ([LONG, LARGE], 8, 60.0), ([SHORT, SHORT, SHORT], 1, 3.0), ([HALF, HALF, SHORT], 8, 10.0625)],
    ids=["too large for each other", "the longest", "one worker", "device-seconds"],
)
def test_the_bound_is_the_largest_of_four(jobs: list[Job], workers: int, bound_s: float) -> None:
    assert lower_bound_s(jobs, devices=16, workers=workers) == bound_s


def expected(history: Path | None, *, estimate_s: float | None = 77.0) -> float:
    opened = None if history is None else History(history)
    return expected_duration_s(SOUND.case, estimate_s, runner=SOUND.runner, history=opened)


def test_measured_durations_come_before_the_estimate_and_that_before_a_guess(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    assert expected(None) == expected(path) == 77.0
    assert expected(path, estimate_s=None) == 1800.0

    History(path).add(dataclasses.replace(SOUND, run_id=f"run-{number}", duration_s=100.0 + number) for number in range(3))

    assert expected(path) == 101.0


def test_only_the_latest_green_runs_on_this_runner_count(tmp_path: Path) -> None:
    def run(number: int, **changed: object) -> object:
        fields = {"run_id": f"run-{number:02}", "started_at": f"2026-11-{number:02}T10:00:00+00:00", **changed}
        return dataclasses.replace(SOUND, **fields)  # type: ignore[arg-type]  # any field

    old = [run(number, duration_s=9000.0) for number in range(1, 12)]
    new = [run(number, duration_s=100.0) for number in range(12, 22)]
    broken = run(22, duration_s=1.0, ending=Ending.SIGNALLED, exit_status=None, signal=9)
    elsewhere = run(23, duration_s=2.0, runner="a3-8")
    History(tmp_path / "h.sqlite").add([*old, *new, broken, elsewhere])  # type: ignore[list-item]  # as above

    assert expected(tmp_path / "h.sqlite") == 100.0


def test_a_history_that_cannot_be_read_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "h.sqlite").write_text("no database", encoding="utf-8")

    assert expected(tmp_path / "h.sqlite") == 77.0
