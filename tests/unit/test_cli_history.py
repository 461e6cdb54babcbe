"""`ascend-e2e history`: the table of a case, flakes, trend and change, and the way in and out."""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
from pathlib import Path

import pytest

from pytest_ascend_e2e.cli import history
from pytest_ascend_e2e.history import History
from pytest_ascend_e2e.records import Check, Ending, RunRecord, Verdict
from pytest_ascend_e2e.report.history import COLUMNS, FIGURES
from tests.fakes.logged_run import seeded
from tests.fakes.run_directories import SOUND, write_run

RED = Check(name="rewards.level", verdict=Verdict.FAILED, message="low")


def run(*words: object) -> tuple[int, str, str]:
    parser = argparse.ArgumentParser()
    history.add_parser(parser.add_subparsers())
    stdout, stderr = io.StringIO(), io.StringIO()
    status = history.run(parser.parse_args(["history", *map(str, words)]), stdout, stderr)
    return status, stdout.getvalue(), stderr.getvalue()


def thirty(*, slower_from: int = 99, drift: float = 0.0) -> list[RunRecord]:
    noise = seeded(4)
    return [
        dataclasses.replace(
            SOUND,
            run_id=f"test_grpo-{number:02}",
            started_at=f"2026-11-{number:02}T22:00:00+00:00",
            commit="old" if number < slower_from else "new",
            summary={
                "step_time_s": 41 * (1.1 if number >= slower_from else 1.0) * (1 + drift * number) + noise.gauss(0, 0.3),
                "tokens_per_s_per_device": 376 + noise.gauss(0, 3),
            },
        )
        for number in range(1, 31)
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "h.sqlite"


def line_of(out: str, start: str) -> str:
    return next(line for line in out.splitlines() if line.startswith(start))


def test_a_slower_commit_is_named_with_the_run_that_changed(file: Path) -> None:
    History(file).add(thirty(slower_from=16))

    status, out, _ = run("test_grpo", "--file", file)

    assert status == 0
    assert "changed with run test_grpo-16 of 2026-11-16, commit new" in line_of(out, "s/step:")
    assert float(line_of(out, "s/step:").rpartition(", ")[2].rstrip("%")) == pytest.approx(10, abs=1)
    assert "no change" in line_of(out, "tokens/s:")
    assert "the last 20 of 30 runs" in out


def test_a_slow_drift_is_a_trend(file: Path) -> None:
    History(file).add(thirty(drift=0.002))

    _, out, _ = run("test_grpo", "--file", file, "--last", 5)

    assert "rises" in line_of(out, "s/step:")
    assert "no trend" in line_of(out, "tokens/s:")


def test_flakes_and_failures_are_told_apart(file: Path) -> None:
    records = thirty()
    records[3] = dataclasses.replace(records[3], checks=(RED,))
    records[9] = dataclasses.replace(records[9], checks=(RED,), commit="broken")
    History(file).add(records)

    _, out, _ = run("test_grpo", "--file", file, "--last", 30)

    assert line_of(out, "flake rate:").startswith("flake rate: 3.3% (1 of 30 runs failed")
    assert "2 failed in all" in out
    assert out.count("failed: rewards.level") == 2


def test_of_too_few_runs_one_line_says_what_trends_need(file: Path) -> None:
    History(file).add(thirty()[:1])

    _, out, _ = run("test_grpo", "--file", file)

    assert line_of(out, "flake rate:").startswith("flake rate: 0.0% (0 of 1 run failed")
    assert out.splitlines()[-1] == "trends: they need 5 runs that passed, and 1 run did"
    assert out.count("need") == 1


def test_a_figure_that_few_runs_have_is_told_by_itself(file: Path) -> None:
    History(file).add(thirty())

    _, out, _ = run("test_grpo", "--file", file)

    assert line_of(out, "reward:") == "reward: a trend needs 5 runs that passed and have it; 0 runs of 30"


def test_every_figure_is_explained_and_files_that_differ_from_the_commit_are_told(file: Path) -> None:
    History(file).add([dataclasses.replace(SOUND, is_dirty=True)])

    _, out, _ = run("test_grpo", "--file", file)

    assert FIGURES.keys() < COLUMNS.keys()
    assert "0a1b2c3d+" in out


def test_without_a_case_all_are_listed(file: Path) -> None:
    History(file).add([*thirty(), dataclasses.replace(SOUND, run_id="other", case="t.py::test_b", checks=(RED,))])

    _, out, _ = run("--file", file)

    assert line_of(out, "tests/test_cases.py::test_grpo").split()[1:4] == ["a3-4", "30", "0"]
    assert line_of(out, "t.py::test_b").split()[2:4] == ["1", "1"]


def test_export_and_import_carry_every_run_over(file: Path, tmp_path: Path) -> None:
    History(file).add(thirty())
    lines = tmp_path / "runs.jsonl"

    assert run("--file", file, "--export", lines)[0] == 0
    status, out, _ = run("--file", tmp_path / "second.sqlite", "--import", lines, lines)

    assert (status, "60 runs added" in out) == (0, True)
    assert list(History(tmp_path / "second.sqlite").runs()) == list(History(file).runs())
    assert [json.loads(line)["run_id"] for line in run("--file", file, "--export", "-")[1].splitlines()][:2] == [
        "test_grpo-01",
        "test_grpo-02",
    ]


def test_the_directory_of_a_run_is_imported_too(file: Path, tmp_path: Path) -> None:
    run("--file", file, "--import", write_run(tmp_path, 5))

    assert [record.run_id for record in History(file).runs()] == ["test_grpo-5"]


def test_a_case_without_a_run_is_status_1(file: Path) -> None:
    History(file).add(thirty())

    status, out, err = run("test_absent", "--file", file)

    assert (status, out) == (1, "")
    assert "no run of test_absent" in err


def test_the_variable_names_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    History(file).add(thirty())
    monkeypatch.setenv("ASCEND_E2E_HISTORY", str(file))

    assert "30" in run()[1]


def test_an_interrupted_run_is_shown_with_its_reason_and_counts_as_no_failure(file: Path) -> None:
    stopped = {"ending": Ending.INTERRUPTED, "exit_status": None, "end_reason": "interrupted by KeyboardInterrupt: signal SIGTERM"}
    History(file).add([*thirty(), dataclasses.replace(SOUND, run_id="test_grpo-stopped", **stopped)])  # type: ignore[arg-type]  # any field

    _, out, _ = run("test_grpo", "--file", file, "--last", 40)

    assert "interrupted by KeyboardInterrupt: signal SIGTERM" in out
    assert "0 of 30 runs failed" in line_of(out, "flake rate:")
    assert line_of(out, "interrupted:") == "interrupted: 1 more, which count as neither"
