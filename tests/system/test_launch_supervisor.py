"""How a supervised training ends, and that nothing of it is left, with real processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from pytest_ascend_e2e.errors import LaunchError
from pytest_ascend_e2e.launch import Command, Exit, RunDirectory, Supervisor, make_ray_home, name_ray_home
from pytest_ascend_e2e.records import Ending
from tests.fakes.launching import FakeRun, limits, living, sleepers, stranger


def test_a_training_that_ends_with_status_0_is_clean(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "say=hello", "step=1")

    ended = run.supervisor.run()

    assert (ended.ending, ended.exit_status, ended.signal, ended.end_reason) == (Ending.EXITED, 0, None, "")
    assert ended.is_clean
    assert run.log == "hello\n"
    assert living(run.run_id) == []


def test_the_exit_status_of_a_training_is_reported(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "step=1", "leave=17")

    ended = run.supervisor.run()

    assert (ended.ending, ended.exit_status) == (Ending.EXITED, 17)
    assert ended.end_reason.startswith("exit status 17; last progress: 1 lines of metrics")


def test_a_crash_is_reported_with_its_signal(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "crash")

    ended = run.supervisor.run()

    assert (ended.ending, ended.exit_status, ended.signal) == (Ending.SIGNALLED, None, "SIGSEGV")
    assert "Segmentation fault" in run.log


def test_standard_error_is_in_the_log(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "leave=notanumber")

    run.supervisor.run()

    assert "ValueError: invalid literal" in run.log


def test_the_total_deadline_ends_a_training_that_talks(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "talk=60", limits=limits(total_s=0.8))

    ended = run.supervisor.run()

    assert (ended.ending, ended.signal) == (Ending.DEADLINE, "SIGTERM")
    assert ended.end_reason.startswith("run deadline: not at its end after 0.8s; last progress: no step")
    assert living(run.run_id) == []


def test_the_silence_deadline_ends_a_training_that_is_silent(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "say=last words", "hang", limits=limits(silence_s=0.5))

    ended = run.supervisor.run()

    assert ended.ending is Ending.DEADLINE
    assert ended.end_reason.startswith("silence deadline: nothing new in log or metrics for 0.5s")
    assert living(run.run_id) == []


def test_the_step_deadline_counts_from_the_last_step(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "step=1", "step=2", "talk=60", limits=limits(step_s=0.5))

    ended = run.supervisor.run()

    assert ended.ending is Ending.DEADLINE
    assert "step deadline: no metrics for 0.5s after the last step's; last progress: 2 lines of metrics" in ended.end_reason


def test_a_training_that_ignores_term_is_killed(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "ignore_term", "step=1", "hang", limits=limits(step_s=0.3))

    ended = run.supervisor.run()

    assert (ended.ending, ended.signal) == (Ending.DEADLINE, "SIGKILL")
    assert living(run.run_id) == []


def test_a_fatal_line_split_over_two_writes_ends_the_training(tmp_path: Path) -> None:
    run = FakeRun(
        tmp_path,
        "say_in_pieces=the engine is de|ad",
        "hang",
        is_fatal=lambda line: "the engine died" if line == "the engine is dead" else None,
    )

    ended = run.supervisor.run()

    assert ended.ending is Ending.FATAL_LINE
    assert "the log says that it cannot go on (the engine died)" in ended.end_reason
    assert living(run.run_id) == []


def test_a_training_may_end_by_itself_after_a_fatal_line(tmp_path: Path) -> None:
    run = FakeRun(
        tmp_path,
        "say=dead",
        "talk=0.6",
        "leave=1",
        is_fatal=lambda line: line if line == "dead" else None,
        limits=limits(fatal_s=20),
    )

    ended = run.supervisor.run()

    assert (ended.ending, ended.exit_status) == (Ending.EXITED, 1)
    assert "fatal line before: dead" in ended.end_reason


def test_progress_gets_each_line_of_metrics_once_and_is_quoted(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def progress(lines: Sequence[bytes]) -> str:
        seen.extend(lines)
        return f"step {len(seen)} of 3"

    run = FakeRun(tmp_path, "step=1", "talk=0.5", "step=2", "talk=0.3", "step=3", "leave=1", progress=progress)

    ended = run.supervisor.run()

    assert b"\n".join(seen) + b"\n" == run.directory.metrics.read_bytes()
    assert "last progress: step 3 of 3" in ended.end_reason


def test_much_output_is_read_in_bounded_memory(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "fill=200", "leave=3")
    before = psutil.Process().memory_info().rss

    ended = run.supervisor.run()

    assert ended.exit_status == 3
    assert run.directory.log.stat().st_size == 200 << 20
    assert psutil.Process().memory_info().rss - before < 50 << 20


def test_a_daemon_left_behind_is_ended_and_reported(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "daemon=deaf")

    ended = run.supervisor.run()

    assert ended.is_clean
    assert len(ended.leftovers) == 1
    assert ended.stuck == ()
    assert living(run.run_id) == []


def test_a_daemon_that_goes_by_itself_is_no_leftover(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "brief_daemon", limits=limits(leave_s=20))

    ended = run.supervisor.run()

    assert ended.leftovers == ()


def test_a_daemon_without_tag_session_and_parent_is_ended_too(tmp_path: Path) -> None:
    kind = f"nameless-{os.getpid()}"
    run = FakeRun(tmp_path, f"daemon={kind}", "step=1", "hang", limits=limits(step_s=0.1))

    ended = run.supervisor.run()

    assert ended.ending is Ending.DEADLINE
    assert sleepers(kind) == []


def test_a_process_of_another_run_is_left_alone(tmp_path: Path) -> None:
    neighbour = stranger(env={"ASCEND_E2E_RUN_ID": "test_other-20261130T150405-ffffffff"})
    run = FakeRun(tmp_path, "hang", limits=limits(total_s=0.3))

    run.supervisor.run()

    alive = neighbour.poll() is None
    neighbour.kill()
    neighbour.wait()
    assert alive


class Stopped(BaseException):
    """What a plugin makes of SIGTERM."""


def test_an_exception_while_it_runs_ends_the_training(tmp_path: Path) -> None:
    def stop(_: str) -> None:
        raise Stopped

    run = FakeRun(tmp_path, "daemon=deaf", "say=hello", "hang", is_fatal=stop)

    with pytest.raises(Stopped):
        run.supervisor.run()

    ended = run.supervisor.exit
    assert isinstance(ended, Exit)
    assert (ended.ending, ended.end_reason.partition(";")[0]) == (Ending.INTERRUPTED, "interrupted by Stopped")
    assert living(run.run_id) == []


def test_a_keeper_that_is_killed_takes_the_training_with_it(tmp_path: Path) -> None:
    def kill_keeper(_: str) -> None:
        children = psutil.Process().children()
        keeper = next(child for child in children if "room.keeper" in " ".join(child.cmdline()))
        keeper.send_signal(signal.SIGKILL)

    run = FakeRun(tmp_path, "daemon=deaf", "say=hello", "hang", is_fatal=kill_keeper)

    ended = run.supervisor.run()

    assert ended.ending is Ending.SIGNALLED
    assert ended.end_reason.startswith("the keeper of the run was ended (SIGKILL), and the training with it")
    assert living(run.run_id) == []


def test_a_descriptor_is_inherited_by_the_training(tmp_path: Path) -> None:
    lease = tmp_path / "device-0.lock"
    with lease.open("w") as file:
        run = FakeRun(tmp_path, f"show_descriptor={file.fileno()}", fds=(file.fileno(),))

        run.supervisor.run()

    assert f": {lease}" in run.log


def test_the_training_reads_nothing_from_our_input(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "show_descriptor=0")

    run.supervisor.run()

    assert run.log == "descriptor 0: /dev/null\n"


def test_ray_logs_of_a_failed_run_are_kept_and_the_rest_removed(tmp_path: Path) -> None:
    home = name_ray_home("test_fake-20261130T150405-0a0a0a")
    make_ray_home(home)
    run = FakeRun(
        tmp_path, f"write={home}/session_1/logs/raylet.err", f"write={home}/session_1/sockets/x", "leave=1", ray_home=home
    )

    run.supervisor.run()

    kept = [path.relative_to(run.directory.ray_logs).as_posix() for path in run.directory.ray_logs.rglob("*") if path.is_file()]
    assert kept == ["session_1/logs/raylet.err"]
    assert not home.exists()


def test_ray_logs_of_a_clean_run_are_removed(tmp_path: Path) -> None:
    home = name_ray_home("test_fake-20261130T150405-0b0b0b")
    make_ray_home(home)
    run = FakeRun(tmp_path, f"write={home}/session_1/logs/raylet.err", ray_home=home)

    run.supervisor.run()

    assert not home.exists()
    assert not run.directory.ray_logs.exists()


def test_shared_memory_of_a_training_that_was_ended_is_removed(tmp_path: Path) -> None:
    name = f"e2e-test-{os.getpid()}"
    run = FakeRun(tmp_path, f"share={name}", "step=1", "hang", limits=limits(step_s=0.1))

    ended = run.supervisor.run()

    assert ended.ending is Ending.DEADLINE
    assert not Path("/dev/shm", name).exists()  # noqa: S108  # where the kernel keeps them


def test_a_program_that_is_not_there_is_a_launch_error(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run", env={})
    command = Command(argv=("/no/such/python", "-m", "verl"), env={}, cwd=tmp_path)

    with pytest.raises(LaunchError, match=r"'/no/such/python' could not be started in .*No such file"):
        Supervisor(command, directory, run_id="test_fake-20261130T150405-0c0c0c", limits=limits()).run()


def test_a_used_run_directory_is_a_launch_error(tmp_path: Path) -> None:
    run = FakeRun(tmp_path)
    run.directory.log.touch()

    with pytest.raises(LaunchError, match=r"train\.log' cannot be made: .*each run needs a new directory"):
        run.supervisor.run()
