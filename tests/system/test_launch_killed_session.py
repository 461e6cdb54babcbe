"""The pytest process dies in the middle of a run: the training must not live on, nor its devices be free before it is gone."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from pytest_ascend_e2e.launch import OWNER, RUN_ID, UNFINISHED, sweep, sweep_dead_sessions
from pytest_ascend_e2e.launch.processes import owner_text
from tests.fakes.launching import living, sleepers, stranger, wait_until

ROOT = Path(__file__).parents[2]


@contextmanager
def session_process(tmp_path: Path, *actions: str, grace_s: float = 0.5) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    """Start a pytest process whose run has done these actions and hangs; yield it, its run id and its Ray directory."""
    argv = [sys.executable, "-m", "tests.fakes.session_process", str(tmp_path), str(tmp_path / "lock"), str(grace_s)]
    with subprocess.Popen(
        [*argv, *actions, "write=" + str(tmp_path / "ready"), "hang"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        run_id, home = process.stdout.readline().strip(), process.stdout.readline().strip()
        try:
            assert wait_until((tmp_path / "ready").exists)
            yield process, run_id, Path(home)
        finally:
            process.kill()
            assert wait_until(lambda: not living(run_id))


def keeper_of(process: subprocess.Popen[str]) -> psutil.Process:
    return next(child for child in psutil.Process(process.pid).children() if "room.keeper" in " ".join(child.cmdline()))


def test_the_training_ends_when_the_pytest_process_is_killed(tmp_path: Path) -> None:
    kind = f"nameless-{os.getpid()}"
    with session_process(tmp_path, "daemon=deaf", f"daemon={kind}", "ignore_term") as (process, run_id, _):
        before = len(living(run_id))

        process.kill()

        assert before >= 3  # keeper, training, daemon
        assert wait_until(lambda: not living(run_id))
        assert sleepers(kind) == []


def test_the_lock_is_free_only_when_no_process_is_left(tmp_path: Path) -> None:
    with (
        session_process(tmp_path, "daemon=deaf", "ignore_term", grace_s=1.5) as (process, run_id, _),
        (tmp_path / "lock").open("r+") as lock,
    ):
        process.kill()
        process.wait()

        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert living(run_id) == []


def test_a_killed_session_leaves_a_note_of_the_ending_and_no_ray_directory(tmp_path: Path) -> None:
    with session_process(tmp_path, "write=RAY_HOME/session_1/logs/raylet.out") as (process, run_id, home):
        note = tmp_path / run_id / "ending.json"

        process.kill()

        assert wait_until(lambda: note.exists() and not home.exists())
        assert json.loads(note.read_text()) == {"schema": 1, "reason": "the pytest process is gone", "status": -signal.SIGTERM}
        assert (tmp_path / run_id / "ray-logs" / "session_1" / "logs" / "raylet.out").exists()


def test_the_record_of_a_killed_session_is_completed(tmp_path: Path) -> None:
    with session_process(tmp_path) as (process, run_id, home):
        record = tmp_path / run_id / "record.json"
        record.write_text(json.dumps({"end_reason": UNFINISHED, "duration_s": 0.0}))

        process.kill()

        assert wait_until(lambda: not home.exists())
        completed = json.loads(record.read_text())
        assert completed["end_reason"].startswith("the pytest process is gone; the training ended by SIG")
        assert completed["duration_s"] > 0


def test_the_training_ends_even_if_its_keeper_is_killed_too(tmp_path: Path) -> None:
    with session_process(tmp_path) as (process, run_id, home):
        keeper = keeper_of(process)

        process.kill()
        keeper.kill()

        assert wait_until(lambda: not living(run_id))
    shutil.rmtree(home)


def test_the_next_session_ends_what_the_kernel_could_not(tmp_path: Path) -> None:
    with session_process(tmp_path, "daemon=deaf", "ignore_term") as (process, run_id, home):
        keeper = keeper_of(process)
        keeper.suspend()
        process.kill()
        process.wait()
        keeper.kill()
        keeper.wait()

        sweep_dead_sessions(grace_s=0.3)  # or a run that begins beside this test, which does the same

        assert living(run_id) == []
    shutil.rmtree(home)


def test_a_live_session_keeps_its_processes() -> None:
    run_id = "test_neighbour-20261130T150405-ffffffff"
    neighbour = stranger(env={RUN_ID: run_id, OWNER: owner_text(os.getpid())})

    left = sweep_dead_sessions(grace_s=20)

    is_alive = neighbour.poll() is None
    neighbour.kill()
    neighbour.wait()
    assert is_alive
    assert f"{run_id}: 1 processes" in left.others


def test_an_owner_whose_number_was_given_away_counts_as_dead() -> None:
    run_id = "test_gone-20261130T150405-ffffffff"
    orphan = stranger(env={RUN_ID: run_id, OWNER: f"{os.getpid()}:1"})

    sweep_dead_sessions(grace_s=20)

    assert orphan.wait(timeout=10) == -signal.SIGTERM


def test_a_process_with_a_tag_but_no_owner_is_left_alone() -> None:
    run_id = "test_unknown-20261130T150405-ffffffff"
    neighbour = stranger(env={RUN_ID: run_id})

    sweep_dead_sessions(grace_s=20)

    is_alive = neighbour.poll() is None
    neighbour.kill()
    neighbour.wait()
    assert is_alive


def test_a_sweep_ends_the_tagged_and_no_other() -> None:
    run_id = "test_swept-20261130T150405-ffffffff"
    mine, other = stranger(env={RUN_ID: run_id}), stranger(env={RUN_ID: run_id + "0"})

    ended = sweep(run_id, grace_s=20)

    is_alive = other.poll() is None
    other.kill()
    other.wait()
    assert [name.rpartition("[")[2] for name in ended] == [f"{mine.pid}]"]
    assert mine.wait(timeout=10) == -signal.SIGTERM
    assert is_alive


def test_a_sweep_finds_a_process_by_where_it_writes(tmp_path: Path) -> None:
    place = tmp_path / "session_1"
    place.mkdir()
    with (place / "worker.out").open("wb") as output:
        mine = subprocess.Popen(
            [sys.executable, "-S", "-c", "import time; time.sleep(120)"], stdout=output, env={}, start_new_session=True
        )

    sweep("test_nobody-20261130T150405-ffffffff", places=[tmp_path], grace_s=20)

    assert mine.wait(timeout=10) == -signal.SIGTERM
