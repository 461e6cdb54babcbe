"""The history: what goes in comes out, at once from several processes, and what it says of flakes."""

from __future__ import annotations

import dataclasses
import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from pytest_ascend_e2e.errors import HistoryError, RecordError
from pytest_ascend_e2e.history import History, flake_rate, from_lines, to_line
from pytest_ascend_e2e.records import INTERRUPTED, Check, Diagnosis, Ending, Kind, RunRecord, Verdict
from tests.fakes.run_directories import PASSED, SOUND

RED = Check(name="rewards.level", verdict=Verdict.FAILED, message="low")


def made(number: int, **changed: object) -> RunRecord:
    fields = {"run_id": f"run-{number:03}", "started_at": f"2026-11-{1 + number % 28:02}T10:00:00+00:00", **changed}
    return dataclasses.replace(SOUND, **fields)  # type: ignore[arg-type]  # any field


def test_what_is_added_comes_out_whole_and_in_order(tmp_path: Path) -> None:
    history = History(tmp_path / "deep" / "history.sqlite")
    records = [made(number, checks=(PASSED, RED) if number % 2 else (PASSED,)) for number in range(5)]

    assert history.add(reversed(records)) == 5

    assert list(history.runs()) == records


def test_a_run_that_is_added_again_takes_its_own_place(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    history.add([made(1)])

    history.add([made(1, checks=(RED,))])

    assert [record.is_passed for record in history.runs()] == [False]


def test_a_case_is_found_by_its_id_and_by_the_name_of_its_test(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    history.add(
        [
            made(1),
            made(2, case="tests/test_cases.py::test_other"),
            made(3, case="tests/test_cases.py::testXgrpo"),
            made(4, runner="a3-8"),
        ]
    )

    assert [record.run_id for record in history.runs("tests/test_cases.py::test_grpo")] == ["run-001", "run-004"]
    assert [record.run_id for record in history.runs("test_grpo")] == ["run-001", "run-004"]
    assert [record.run_id for record in history.runs("test_grpo", runner="a3-8")] == ["run-004"]
    assert history.cases() == {
        "tests/test_cases.py::testXgrpo": 1,
        "tests/test_cases.py::test_grpo": 2,
        "tests/test_cases.py::test_other": 1,
    }


def test_the_typical_duration_is_the_median_of_the_last_green_runs(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")
    nights = [made(number, duration_s=1000.0 if number < 4 else 600.0 + number) for number in range(1, 10)]
    others = [made(10, duration_s=5.0, checks=(RED,)), made(11, duration_s=5.0, runner="a3-8")]
    history.add([*nights, *others])

    assert history.typical_duration("test_grpo", "a3-4", last=5) == 607.0
    assert history.typical_duration("tests/test_cases.py::test_grpo", "a3-4") == 608.0
    assert history.typical_duration("test_grpo", "a3-8") == 5.0


def test_without_a_green_run_there_is_no_typical_duration(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite")

    assert history.typical_duration("test_grpo", "a3-4") is None
    history.add([made(1, checks=(RED,))])
    assert history.typical_duration("test_grpo", "a3-4") is None


def _add_many(path: Path, start: int) -> None:
    for number in range(start, start + 20):
        History(path).add([made(number)])


def test_several_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_add_many, args=(path, start)) for start in (0, 20, 40)]

    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)

    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len(list(History(path).runs())) == 60


def test_a_file_of_another_kind_or_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    text, newer = tmp_path / "notes.txt", tmp_path / "newer.sqlite"
    text.write_text("no database, but a text that is long enough to be read as one" * 20)
    with sqlite3.connect(newer) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()

    with pytest.raises(HistoryError, match="expected a history of runs"):
        History(text).add([made(1)])
    with pytest.raises(HistoryError, match="schema 7; this version reads schema 1"):
        History(newer).add([made(1)])
    with pytest.raises(HistoryError, match="no such history"):
        list(History(tmp_path / "absent.sqlite").runs())
    assert text.read_text().startswith("no database")


def test_a_place_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(HistoryError, match="choose another place"):
        History(tmp_path / "file" / "h.sqlite").add([made(1)])


def test_lines_survive_the_round_trip() -> None:
    records = [made(1), made(2, summary={"reward_last": 0.25}, diagnosis=Diagnosis(kind=Kind.HCCL, line="ü", infra=True))]

    lines = [to_line(record) for record in records]

    assert all("\n" not in line for line in lines)
    assert list(from_lines([lines[0], "\n", lines[1]], origin="x")) == records


@pytest.mark.parametrize("line", ["{", "[]", '"text"', '{"schema": 1}', '{"schema": 2}'])
def test_a_line_that_is_no_record_is_named(line: str) -> None:
    with pytest.raises(RecordError, match=r"x\.jsonl, line 2"):
        list(from_lines(["", line], origin="x.jsonl"))


def test_a_failure_is_a_flake_only_where_the_same_inputs_also_passed() -> None:
    same = [made(1), made(2, checks=(RED,)), made(3), made(4)]
    broken = [made(5, commit="b", checks=(RED,)), made(6, commit="b", checks=(RED,))]
    updated = [made(7, versions={"verl": "0.9.2"}, exit_status=1, diagnosis=Diagnosis(kind=Kind.HCCL, line="", infra=True))]

    found = flake_rate([*same, *broken, *updated])

    assert (found.runs, found.failed, found.flaky, found.infra) == (7, 4, 1, 1)
    assert found.rate == pytest.approx(1 / 7)
    assert flake_rate([]).rate == 0


def test_of_changed_files_nobody_knows_whether_they_were_the_same() -> None:
    runs = [made(1), made(2, checks=(PASSED, RED))]
    changed = [dataclasses.replace(run, is_dirty=True) for run in runs]

    assert flake_rate(runs).flaky == 1
    assert flake_rate(changed).flaky == flake_rate([runs[0], changed[1]]).flaky == 0


def test_a_run_that_was_interrupted_is_neither_a_failure_nor_a_flake() -> None:
    stopped = made(2, ending=Ending.INTERRUPTED, exit_status=None, end_reason="interrupted by KeyboardInterrupt")
    body = made(3, checks=(Check(name=INTERRUPTED, verdict=Verdict.FAILED, message="the test was interrupted before its end"),))

    found = flake_rate([made(1), stopped, body])

    assert (found.runs, found.failed, found.flaky, found.interrupted) == (1, 0, 0, 2)
