"""`ascend-e2e report`: run directories in, one file out."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest

from pytest_ascend_e2e.cli import main, report
from pytest_ascend_e2e.errors import HistoryError
from pytest_ascend_e2e.history import History
from tests.fakes.reports import broken_run, green_run, red_run


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASCEND_E2E_HISTORY", raising=False)
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")


def run(*words: object) -> str:
    parser = argparse.ArgumentParser()
    report.add_parser(parser.add_subparsers())
    stdout = io.StringIO()
    assert report.run(parser.parse_args(["report", *map(str, words)]), stdout, io.StringIO()) == 0
    return stdout.getvalue()


def test_a_directory_of_runs_becomes_one_file(tmp_path: Path) -> None:
    green_run(tmp_path / "runs")
    broken_run(tmp_path / "runs")

    out = run(tmp_path / "runs", "-o", tmp_path / "r.html")

    assert out == f"{tmp_path / 'r.html'}: 2 runs, 1 failed\n"
    text = (tmp_path / "r.html").read_text()
    assert text.index('id="run-test_grpo-1"') < text.index('id="run-test_grpo-3"')


def test_the_directory_that_a_session_uploads_is_read(tmp_path: Path) -> None:
    green_run(tmp_path / "report" / "runs")

    assert run(tmp_path / "report", tmp_path / "report" / "runs", "-o", tmp_path / "r.html").endswith("r.html: 1 run, 0 failed\n")


def test_a_run_that_cannot_be_read_is_named_and_the_others_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    green_run(tmp_path / "runs")
    (tmp_path / "runs" / "cut-off").mkdir()
    (tmp_path / "runs" / "cut-off" / "record.json").write_text("{")

    assert main(["report", str(tmp_path / "runs")]) == 1
    assert main(["report", str(tmp_path / "runs" / "cut-off")]) == 2

    told = capsys.readouterr()
    assert told.out == "report.html: 1 run, 0 failed\n"
    assert told.err.startswith(f"not in it: {tmp_path / 'runs' / 'cut-off' / 'record.json'}: ")


def test_a_run_is_read_where_it_lies_now(tmp_path: Path) -> None:
    moved = Path(green_run(tmp_path / "runs").run_dir).rename(tmp_path / "artifact")

    run(moved)

    text = Path("report.html").read_text()
    assert str(moved) in text
    assert "Not shown here" not in text


def test_what_a_terminal_cannot_show_is_written_as_an_escape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", green_run(tmp_path).run_dir, "-o", "r\udcff.html"]) == 0

    assert capsys.readouterr().out == "r\\udcff.html: 1 run, 0 failed\n"
    assert Path("r\udcff.html").is_file()


def test_the_history_tells_the_last_green_run(tmp_path: Path) -> None:
    red = red_run(tmp_path)
    History(tmp_path / "h.sqlite").add([green_run(tmp_path / "earlier")])

    run(red.run_dir, "--history", tmp_path / "h.sqlite")

    assert "Compared with the last run that passed, test_grpo-1" in Path("report.html").read_text()


def test_a_history_that_was_asked_for_and_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="no such history"):
        run(green_run(tmp_path).run_dir, "--history", tmp_path / "absent.sqlite")


def test_a_directory_without_a_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["report", str(tmp_path)])

    assert status == 2
    assert capsys.readouterr().err.startswith(f"ascend-e2e report: {tmp_path}: holds no run: expected a directory with record.json")
