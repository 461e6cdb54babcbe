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


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".", "is a directory: give a new file"),
        ("nowhere/test_x.py", "cannot be written: No such file or directory; expected a new file in a directory that is there"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_what_cannot_be_written_is_told_before_anything_is_composed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)

    assert reason in refused(capsys, "-o", name, "--python", "nowhere", "--", *COMMAND)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["class", "2b", "test-grpo", "grpo", ""])
def test_a_name_that_pytest_would_not_collect(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert f"--name {name!r} cannot be used: expected a name of Python that begins" in refused(
        capsys, "--name", name, "--", *COMMAND
    )


def test_a_command_in_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "--", f"python3 -m verl.trainer.main_ppo {'x' * 300}=1")

    assert "is one word: give the command after --, without quotes" in line


def test_values_that_a_program_would_have_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.sh"
    path.write_text(
        "torchrun --nproc_per_node=$(nvidia-smi -L | wc -l) --node_rank=$(cat /nowhere) -m verl.trainer.sft_trainer \\\n"
        "  model.path=$(find /models) trainer.experiment_name=$(git describe)\n"
    )

    line = refused(capsys, str(path))

    assert "'--nproc_per_node=OUTPUT.OF.wc' holds what wc would print" in line
    assert "'model.path=OUTPUT.OF.find' holds what find would print" in line
    assert "no program is run: give the variable with --env NAME=VALUE" in line
    assert "git" not in line


@pytest.mark.parametrize(
    ("script", "hint"),
    [
        ("ssh node 'cd verl && @'", "hands one to another program, which was not followed: ssh node 'cd verl && python3"),
        ("docker exec verl bash -c '@'", "hands one to another program, which was not followed: docker exec verl bash -c"),
        ("set -u\nif [[ $RANK == 0 ]]; then @; fi", "bash says: line 2: RANK: unbound variable"),
        ("if [[ $HOSTNAME == master ]]; then\n@\nfi", "line 2 names one, below a condition that is not met"),
        ("cat > train.sh <<EOF\n@\nEOF\nbash train.sh", "reads other scripts, which were not followed: bash train.sh"),
        ("bash <<EOF\n@\nEOF", "line 2 names one, below a condition that is not met (give --env or arguments) or in a text"),
    ],
)
def test_a_training_that_is_not_followed_tells_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], script: str, hint: str
) -> None:
    path = tmp_path / "run.sh"
    path.write_text(script.replace("@", " ".join(COMMAND)))

    line = refused(capsys, str(path))

    assert hint in line
    assert "give the command after --" in line


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
