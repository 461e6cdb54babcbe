"""`ascend-e2e diagnose`: its two outputs, its exit status, and logs that cannot be read."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ascend_e2e.cli import diagnose
from pytest_ascend_e2e.launch import UNFINISHED
from pytest_ascend_e2e.records import Check, Ending, Verdict
from tests.fakes.run_directories import PASSED, write_run


def call(*words: str) -> tuple[int, str, str]:
    parser = argparse.ArgumentParser()
    diagnose.add_parser(parser.add_subparsers())
    stdout, stderr = io.StringIO(), io.StringIO()
    status = diagnose.run(parser.parse_args(["diagnose", *words]), stdout, stderr)
    return status, stdout.getvalue(), stderr.getvalue()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.txt"
    path.write_bytes("(WorkerDict pid=3) OSError: [Errno 28] No space left on device: '/srv/é\xff'\n".encode("latin-1"))
    return path


def test_json_is_one_object_with_the_diagnosis(log: Path) -> None:
    status, out, err = call(str(log), "--json")

    assert (status, err) == (0, "")
    assert json.loads(out) == {
        "kind": "disk-full",
        "line": "OSError: [Errno 28] No space left on device: '/srv/��'",
        "infra": True,
        "advice": "Free space on the disk of checkpoints, logs and temporary files.",
    }


def test_text_names_kind_line_turn_and_advice(log: Path) -> None:
    status, out, _ = call(str(log))

    assert status == 0
    assert [line.split(":")[0] for line in out.splitlines()] == ["kind", "line", "whose turn", "advice"]
    assert "infrastructure" in out


def test_text_is_printable_on_a_terminal_without_unicode(log: Path) -> None:
    parser = argparse.ArgumentParser()
    diagnose.add_parser(parser.add_subparsers())
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")

    status = diagnose.run(parser.parse_args(["diagnose", str(log)]), stdout, io.StringIO())

    assert status == 0


def test_the_exit_status_of_the_run_counts(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("working\n", encoding="utf-8")

    _, out, _ = call(str(path), "--json", "--exit-status", "-11")

    assert json.loads(out)["kind"] == "worker-crash"


def test_an_unknown_cause_is_nobody_s_turn(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("", encoding="utf-8")

    _, out, _ = call(str(path))

    assert "not visible in the log" in out


WHOLE = "Total training steps: 1\nstep:1 - actor/loss:0.1\nnanobind: leaked 3 types!\n"
FAILED = Check(name="rewards.rises", verdict=Verdict.FAILED, message="the reward does not rise")


def test_of_a_training_that_ended_well_the_failed_checks_are_told(tmp_path: Path) -> None:
    unmade = Check(name="rewards.collapse", verdict=Verdict.NOT_MADE, message="5 steps are needed to tell")
    directory = write_run(tmp_path, 1, checks=(PASSED, FAILED, unmade))
    (directory / "train.log").write_text(WHOLE)

    outputs = [call(str(path))[1] for path in (directory, directory / "train.log")]

    assert outputs[0] == outputs[1]
    assert outputs[0].startswith("kind:       none: the training ended well\n")
    assert f"Of its 2 checks 1 failed; `ascend-e2e judge {directory}` makes them again." in outputs[0]
    assert outputs[0].endswith("\nfailed:     rewards.rises: the reward does not rise\n")


def test_of_a_whole_log_without_a_record_the_way_to_the_checks_is_told(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(WHOLE)

    _, out, _ = call(str(log))

    assert out.startswith("kind:       none: the training ended well\n")
    assert "If its run is red, a check failed: `ascend-e2e judge RUN_DIR` says which." in out


@pytest.mark.parametrize("changed", [{"exit_status": 1}, {"ending": Ending.DEADLINE, "exit_status": None}])
def test_a_training_that_reached_its_end_and_failed_did_not_end_well(tmp_path: Path, changed: dict[str, Any]) -> None:
    directory = write_run(tmp_path, 1, **changed)
    (directory / "train.log").write_text(WHOLE)

    assert "ended well" not in call(str(directory))[1]
    assert "ended well" not in call(str(directory / "train.log"), "--exit-status", "1")[1]


def test_a_record_that_is_broken_leaves_the_diagnosis_of_the_log(tmp_path: Path, log: Path) -> None:
    (tmp_path / "record.json").write_text("{")

    status, out, err = call(str(log.rename(tmp_path / "train.log")))

    assert (status, err) == (0, "")
    assert out.startswith("kind:       disk-full\n")


def test_a_run_that_is_not_over_was_not_stopped(tmp_path: Path) -> None:
    directory = write_run(tmp_path, 1, ending=Ending.INTERRUPTED, end_reason=UNFINISHED, exit_status=None)
    (directory / "train.log").write_text("step:1 - actor/loss:0.1\n")

    status, out, _ = call(str(directory))

    assert status == 0
    assert "stopped from outside" not in out
    assert "advice:     Not ended yet, or ended together with its session" in out


@pytest.mark.parametrize("text", ['<?xml version="1.0"?>\n<testsuites/>', "\ufeff\n<testsuite>"])
def test_a_junit_file_is_no_log_that_shows_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "junit.xml").write_text(text, encoding="utf-8")

    status, out, err = call(str(tmp_path / "junit.xml"))

    assert (status, out) == (2, "")
    assert "is the JUnit file of a session; expected the directory of a run, or a log" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["missing.txt", "."])
def test_a_log_that_cannot_be_read_is_one_clear_line(tmp_path: Path, name: str) -> None:
    status, out, err = call(str(tmp_path / name))

    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "cannot be read" in err
    assert "Traceback" not in err
