"""Runs whose session and keeper are both gone: their books are closed by the next session, and nothing of them is left."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pytest_ascend_e2e.launch import RUN_ID, UNFINISHED, Book, RunDirectory, home_variables, make_ray_home, sweep_dead_sessions
from pytest_ascend_e2e.launch.ray_remains import job_number, remove_weight_sockets
from tests.fakes.launching import stranger

ID = "test_gone-20261130T150405-9f3a1c"


@pytest.fixture
def book(tmp_path: Path) -> Book:
    directory = RunDirectory.create(tmp_path / "runs" / ID, env={})
    directory.write_record(json.dumps({"run_id": ID, "end_reason": UNFINISHED, "signal": None, "exit_status": None}))
    home = tmp_path / "homes" / "e2e-9f3a1c-00000000"
    home.parent.mkdir()
    return Book(run_id=ID, run_dir=str(directory.path), ray_home=str(home))


def make_home(book: Book, *, owner: str | None = None) -> Path:
    home = Path(book.ray_home)
    make_ray_home(home, book=book)
    if owner is not None:
        mark = home / "run.json"
        mark.write_text(json.dumps({**json.loads(mark.read_text()), "owner": owner}))
    return home


def read(book: Book, name: str) -> dict[str, object]:
    content: dict[str, object] = json.loads(Path(book.run_dir, name).read_text())
    return content


DEAD = f"{os.getpid()}:1"  # a number that lives, of a process that began at another time


def test_what_a_dead_session_left_is_removed_and_its_record_completed(book: Book, tmp_path: Path) -> None:
    home = make_home(book, owner=DEAD)
    (home / "session_1" / "logs").mkdir(parents=True)
    (home / "session_1" / "logs" / "raylet.out").write_text("last words")

    left = sweep_dead_sessions(homes=tmp_path / "homes")

    assert left.closed == (ID,)
    assert not home.exists()
    assert read(book, "ending.json")["reason"] == "the pytest process and the keeper of the run are gone"
    assert read(book, "record.json")["end_reason"] == "the pytest process and the keeper of the run are gone"
    assert Path(book.run_dir, "ray-logs", "session_1", "logs", "raylet.out").read_text() == "last words"


def test_the_directory_of_a_live_session_is_left_alone(book: Book, tmp_path: Path) -> None:
    home = make_home(book)

    left = sweep_dead_sessions(homes=tmp_path / "homes")

    assert left.closed == ()
    assert home.exists()


def test_a_directory_of_another_container_is_left_alone(book: Book, tmp_path: Path) -> None:
    home = make_home(book, owner=DEAD)
    mark = home / "run.json"
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "processes": "pid:[1]"}))

    assert sweep_dead_sessions(homes=tmp_path / "homes").closed == ()
    assert home.exists()


def test_a_directory_that_is_not_ours_to_read_is_left_alone(tmp_path: Path) -> None:
    foreign = tmp_path / "e2e-9f3a1c-00000000"
    foreign.mkdir()
    (foreign / "run.json").write_text("no JSON")

    assert sweep_dead_sessions(homes=tmp_path).closed == ()
    assert foreign.exists()


def test_processes_of_a_dead_run_that_cannot_be_ended_keep_its_directory(book: Book, tmp_path: Path) -> None:
    home = make_home(book, owner=DEAD)
    alive = stranger(env={RUN_ID: ID})  # without an owner nobody may end it

    closed = sweep_dead_sessions(homes=tmp_path / "homes").closed

    alive.kill()
    alive.wait()
    assert closed == ()
    assert home.exists()


@pytest.mark.parametrize(
    ("status", "signal", "exit_status", "end"),
    [(-9, "SIGKILL", None, "by SIGKILL"), (3, None, 3, "with exit status 3"), (-40, "signal 40", None, "by signal 40")],
)
def test_the_record_says_how_the_training_ended(
    book: Book, status: int, signal: str | None, exit_status: int | None, end: str
) -> None:
    book.close("the pytest process is gone", status=status, duration_s=12.5)

    record = read(book, "record.json")
    assert (record["signal"], record["exit_status"], record["duration_s"]) == (signal, exit_status, 12.5)
    assert record["end_reason"] == f"the pytest process is gone; the training ended {end}"


def test_a_record_that_was_finished_is_not_touched(book: Book) -> None:
    Path(book.run_dir, "record.json").write_text('{"end_reason": "exit status 0"}')

    book.close("the pytest process is gone", status=-9)

    assert read(book, "record.json") == {"end_reason": "exit status 0"}


def test_a_note_that_was_left_before_is_not_overwritten(book: Book) -> None:
    book.close("the pytest process is gone", status=-15)
    book.close("the pytest process and the keeper of the run are gone")

    assert read(book, "ending.json") == {"schema": 1, "reason": "the pytest process is gone", "status": -15}


def test_a_run_directory_that_is_gone_is_no_error(book: Book, tmp_path: Path) -> None:
    gone = Book(run_id=ID, run_dir=str(tmp_path / "none"), ray_home=book.ray_home)
    home = make_home(gone)

    gone.close("the pytest process is gone")

    assert not home.exists()
    assert not (tmp_path / "none").exists()


def test_of_the_sockets_of_weights_only_those_of_the_run_are_removed(tmp_path: Path) -> None:
    mine = tmp_path / f"rl-colocate-zmq-{job_number(ID).to_bytes(4, 'little').hex()}-replica-0-rank-1.sock"
    other = tmp_path / "rl-colocate-zmq-01000000-replica-0-rank-1.sock"
    for path in (mine, other):
        path.touch()

    remove_weight_sockets(ID, place=tmp_path)

    assert not mine.exists()
    assert other.exists()


def test_what_a_run_needs_while_it_lives_is_in_its_own_directory(book: Book) -> None:
    home = make_home(book)

    variables = home_variables(home)

    assert all(Path(value).is_relative_to(home) for value in variables.values())
    assert Path(variables["TMPDIR"]).is_dir()
