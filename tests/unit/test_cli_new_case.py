"""`ascend-e2e new-case`: what cannot become a case is one line that says what to do. What can: tests/docs and tests/system."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ascend_e2e.cli import main

COMMAND = ("python3", "-m", "verl.trainer.main_ppo", "trainer.nnodes=1")


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the one line that refuses these words."""
    status = main(["new-case", *words])

    shown = capsys.readouterr()
    assert (status, shown.out) == (2, "")
    assert shown.err.count("\n") == 1
    return shown.err


def test_nothing_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing to read: give a bash script, or a command of verl after --" in refused(capsys)


def test_a_script_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert "'nowhere.sh' is no file: expected a bash script" in refused(capsys, "nowhere.sh")


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "test_mine.py"
    path.write_text("mine")

    line = refused(capsys, "-o", str(path), "--", *COMMAND)

    assert "is there already: give another --output" in line
    assert path.read_text() == "mine"


def test_a_script_without_a_training_names_what_it_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.sh"
    path.write_text("source common.sh\nbash inner.sh 8\n")

    line = refused(capsys, str(path))

    assert "starts no training of verl" in line
    assert "source common.sh; bash inner.sh 8" in line


def test_a_variable_without_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--env 'NPUS' cannot be used: expected NAME=VALUE" in refused(capsys, "--env", "NPUS", "--", *COMMAND)


def test_an_interpreter_without_verl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncat > /dev/null\necho \'{"missing": "verl", "python": "/opt/bare/python"}\'\n')
    python.chmod(0o755)

    line = refused(capsys, "--python", str(python), "--", *COMMAND)

    assert "verl is not there for /opt/bare/python" in line
    assert "--python names an interpreter that has verl" in line
