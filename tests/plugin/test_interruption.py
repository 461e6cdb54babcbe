"""A session that is ended from outside ends its training, gives the devices back and keeps the record."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.history import History
from pytest_ascend_e2e.launch import OWNER, RUN_ID
from tests.plugin.conftest import Host

SLOW = """
@npu_nightly(runner='toy-2', recipe=recipe(steps=60, env={'FAKE_TRAINER': 'slow'}))
def test_case(run): run.check_completed()
"""


def wait_for(what: str, root: Path, pattern: str) -> Path:
    deadline = Deadline.after(180, name=what)
    while not deadline.is_over():
        found = [path for path in root.glob(pattern) if path.stat().st_size]
        if found:
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen within {deadline.limit_s} s")


def start_session(host: Host, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "--runner", "toy-2", "-p", "no:cacheprovider", *arguments],
        cwd=host.pytester.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # Whoever runs the tests in the background has SIGINT ignored, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509  # one thread
    )


def tagged_processes(run_id: str) -> list[str]:
    """Return the processes that carry the tag of a run."""
    found = []
    for directory in Path("/proc").iterdir():
        try:
            environment = (directory / "environ").read_bytes()
        except OSError:
            continue
        if f"{RUN_ID}={run_id}".encode() in environment:
            found.append(directory.name)
    return found


def await_the_end_of(run_id: str) -> None:
    """Wait until no process of a run is left; fail if some live on."""
    deadline = Deadline.after(60, name="the end of the training")
    while tagged_processes(run_id) and not deadline.is_over():
        time.sleep(0.05)
    assert tagged_processes(run_id) == []


def owner_of(run_id: str) -> str:
    """Return the number of the process that supervises a run, as the run's own processes name it."""
    environment = Path("/proc", tagged_processes(run_id)[0], "environ").read_bytes()
    entries = dict(entry.partition(b"=")[::2] for entry in environment.split(b"\0"))
    return entries[OWNER.encode()].partition(b":")[0].decode()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda sent: signal.Signals(sent).name)
def test_nothing_is_left_of_a_training_whose_session_is_ended(host: Host, sent: signal.Signals) -> None:
    host.cases(SLOW)
    session = start_session(host)
    metrics = wait_for("the first step", host.pytester.path, "runs/*/metrics.jsonl")

    os.kill(session.pid, sent)
    session.communicate(timeout=180)

    await_the_end_of(metrics.parent.name)
    assert session.returncode != 0
    (kept,) = History(host.pytester.path / "e2e-runs" / "history.sqlite").runs()
    assert (kept.run_id, kept.was_interrupted) == (metrics.parent.name, True)
    again = host.run("--runner", "toy-2", "--e2e-lease-timeout", "5s", "--e2e-run-timeout", "2s")
    assert "deadline" in again.stdout.str(), "the devices were free again, and the run met its own deadline"


def test_an_interrupted_run_leaves_a_record_that_says_so(host: Host) -> None:
    host.cases(SLOW)
    session = start_session(host)
    metrics = wait_for("the first step", host.pytester.path, "runs/*/metrics.jsonl")

    os.kill(session.pid, signal.SIGTERM)
    session.communicate(timeout=180)

    record = json.loads((metrics.parent / "record.json").read_text())
    assert record["ending"] == "interrupted"
    assert record["last_step"] >= 1
    (kept,) = History(host.pytester.path / "e2e-runs" / "history.sqlite").runs()
    assert kept.run_id == record["run_id"]
    assert kept.end_reason.startswith("interrupted by KeyboardInterrupt: signal SIGTERM; ")
    assert not kept.is_passed


def test_the_death_of_an_xdist_worker_ends_its_training_and_frees_the_devices(host: Host) -> None:
    host.cases(SLOW)
    session = start_session(host, "-n1")
    metrics = wait_for("the first step", host.pytester.path, "runs/*/metrics.jsonl")
    run_id = metrics.parent.name
    worker = int(owner_of(run_id))

    os.kill(worker, signal.SIGKILL)

    wait_for("the note of the ending", host.pytester.path, f"runs/{run_id}/ending.json")
    await_the_end_of(run_id)
    assert worker != session.pid
    session.kill()
    session.communicate(timeout=180)
    again = host.run("--runner", "toy-2", "--e2e-lease-timeout", "30s", "--e2e-run-timeout", "2s")
    assert "deadline" in again.stdout.str(), "the devices were free again, and the run met its own deadline"


def test_sigterm_to_an_xdist_session_ends_the_trainings_of_its_workers(host: Host) -> None:
    host.cases(SLOW)
    session = start_session(host, "-n1")
    metrics = wait_for("the first step", host.pytester.path, "runs/*/metrics.jsonl")

    session.terminate()
    session.communicate(timeout=180)

    await_the_end_of(metrics.parent.name)


def test_a_silent_training_is_ended_by_its_deadline_and_diagnosed_as_a_hang(host: Host) -> None:
    host.cases(
        "@npu_nightly(runner='toy-2', silence='2s', recipe=recipe(steps=60, env={'FAKE_TRAINER': 'silent'}))\n"
        "def test_case(run): run.check_completed()\n"
    )

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(failed=1)
    assert "training failed: hang" in result.stdout.str()
    assert "silence deadline" in result.stdout.str()
    assert "step 1 of 60" in result.stdout.str()


def test_a_training_that_hangs_after_its_engine_died_is_ended_and_names_the_engines_error(host: Host) -> None:
    host.cases(
        "@npu_nightly(runner='toy-2', recipe=recipe(steps=60, env={'FAKE_TRAINER': 'engine-dead@2'}))\n"
        "def test_case(run): run.check_completed()\n"
    )

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(failed=1)
    assert "training failed: rollout-engine" in result.stdout.str()
    (path,) = (host.pytester.path / "runs").glob("*/record.json")
    record = json.loads(path.read_text())
    assert record["ending"] == "fatal-line"
    assert record["diagnosis"]["kind"] == "rollout-engine"
    assert record["diagnosis"]["line"] == "RuntimeError: the kernel lost its workspace"
    assert "last progress: step 2 of 60" in record["end_reason"]
    assert (path.parent / "stacks.txt").exists()
    assert "910B" in (path.parent / "npu-smi.txt").read_text()


def test_a_missed_deadline_is_told_with_where_it_came_from(host: Host) -> None:
    host.cases(
        "@npu_nightly(runner='toy-2', step='2s', recipe=recipe(steps=60, env={'FAKE_TRAINER': 'silent'}))\n"
        "def test_case(run): run.check_completed()\n"
    )

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(failed=1)
    expected = "step deadline: no metrics for 2.0s after the last step's (limit: step= of the marker); last progress: step 1 of 60"
    assert expected in result.stdout.str()


def test_a_session_without_a_terminal_shows_quiet_lines(host: Host) -> None:
    host.cases("@npu_nightly(runner='toy-2', recipe=recipe(steps=3))\ndef test_case(run): run.check_completed()\n")
    command = [sys.executable, "-m", "pytest", "--runner", "toy-2", "-p", "no:cacheprovider"]

    done = subprocess.run(command, cwd=host.pytester.path, capture_output=True, text=True, check=False, timeout=120)

    assert done.returncode == 0, done.stdout
    assert "test_case: step 1/3, reward 0." in done.stdout
    assert "test_case: step 3/3, reward 0." in done.stdout


def test_what_a_dead_session_left_is_ended_before_a_run_and_named(host: Host) -> None:
    host.cases("@npu_nightly(runner='toy-2', recipe=recipe(steps=2))\ndef test_case(run): run.check_completed()\n")
    dead = f"{os.getpid()}:1"  # a living number, but the process that had it began at another time
    for _ in range(5):  # another session of this host may be there first, and ends it too
        orphan = subprocess.Popen(["/bin/sleep", "600"], env={RUN_ID: "test_gone-20261130T150405-ffffffff", OWNER: dead})

        host.run("--runner", "toy-2").assert_outcomes(passed=1)

        assert orphan.wait(timeout=10) == -signal.SIGTERM
        told = f"of a session that is gone, ended before this run: sleep[{orphan.pid}]"
        if any(told in record.read_text() for record in (host.pytester.path / "runs").glob("*/record.json")):
            return
    pytest.fail("no run of five named what it had ended")
