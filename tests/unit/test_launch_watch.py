"""Reading a growing file, and the deadlines of a watch, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from pytest_ascend_e2e.launch import Limits, RunDirectory
from pytest_ascend_e2e.launch.memory_kills import count_memory_kills
from pytest_ascend_e2e.launch.ray_remains import FILE_LIMIT_BYTES, put_away
from pytest_ascend_e2e.launch.tail import CHUNK_BYTES, LINE_LIMIT_BYTES, Tail
from pytest_ascend_e2e.launch.watch import Watch
from pytest_ascend_e2e.records import Ending


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A run directory, a watch over it, and the clock of both."""

    def __init__(self, tmp_path: Path, *, origins: Mapping[str, str] | None = None, **limits: float) -> None:
        self.clock = Clock()
        self.has_begun = False
        self.directory = RunDirectory.create(tmp_path / "run", env={})
        self.watch = Watch(
            self.directory,
            Limits(**{"total_s": 1000.0, **limits}, origins={} if origins is None else origins),
            is_fatal=lambda line: "it died" if line == "dead" else None,
            progress=lambda lines: f"line {lines[-1].decode()}",
            has_begun=lambda: self.has_begun,
            clock=self.clock,
        )

    def after(self, seconds: float, *, log: str = "", metrics: str = "") -> str:
        """Let time pass, write, look; return why the training must end."""
        self.clock.now += seconds
        for path, text in ((self.directory.log, log), (self.directory.metrics, metrics)):
            if text:
                with path.open("a") as file:
                    file.write(text)
        stop = self.watch.look()
        return f"{stop.ending.value}: {stop.reason}" if stop else ""


Start = Callable[..., Watched]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a watch with these limits."""
    with ExitStack() as stack:

        def begin(*, origins: Mapping[str, str] | None = None, **limits: float) -> Watched:
            watched = Watched(tmp_path, origins=origins, **limits)
            stack.enter_context(watched.watch)
            return watched

        yield begin


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def test_a_file_that_is_not_there_yet_has_no_lines(log: Path) -> None:
    with Tail(log) as tail:
        assert tail.read() == []
        log.write_bytes(b"one\n")
        assert tail.read() == [b"one"]


def test_a_line_comes_when_it_is_complete_and_once(log: Path) -> None:
    log.write_bytes(b"one\ntw")
    with Tail(log) as tail, log.open("ab", buffering=0) as file:
        first = tail.read()
        file.write(b"o\n")

        assert (first, tail.read(), tail.read()) == ([b"one"], [b"two"], [])


def test_a_line_does_not_hide_behind_a_progress_bar(log: Path) -> None:
    log.write_bytes(b"10%|#\r20%|##\rfatal\r\nnext\n")
    with Tail(log) as tail:
        assert tail.read() == [b"10%|#", b"20%|##", b"fatal", b"next"]


def test_a_line_without_end_is_given_in_pieces(log: Path) -> None:
    log.write_bytes(b"x" * (LINE_LIMIT_BYTES + 10) + b"y\nnext\n")
    with Tail(log) as tail:
        lines = tail.read()

    assert lines == [b"x" * (LINE_LIMIT_BYTES + 10) + b"y", b"next"]


def test_what_is_kept_of_an_endless_line_is_bounded(log: Path) -> None:
    log.write_bytes(b"x" * (CHUNK_BYTES + 10))
    with Tail(log) as tail:
        assert tail.read() == [b"x" * CHUNK_BYTES]
        assert (tail.read(), tail.rest()) == ([], [b"x" * 10])


def test_the_last_line_may_have_no_end(log: Path) -> None:
    log.write_bytes(b"one\ntwo")
    with Tail(log) as tail:
        tail.read()

        assert (tail.rest(), tail.rest()) == ([b"two"], [])


def test_a_file_begun_anew_is_read_from_its_start(log: Path) -> None:
    log.write_bytes(b"a long first line\n")
    with Tail(log) as tail:
        tail.read()
        log.write_bytes(b"new\n")

        assert tail.read() == [b"new"]


def test_the_run_deadline_is_not_moved_by_output(start: Start) -> None:
    watched = start(total_s=100)

    assert watched.after(99, log="x\n") == ""
    assert watched.after(1, log="x\n") == "deadline: run deadline: not at its end after 1m40s"


@pytest.mark.parametrize("where", ["log", "metrics"])
def test_the_silence_deadline_is_moved_by_log_and_metrics(start: Start, where: str) -> None:
    watched = start(silence_s=60)

    assert watched.after(59, **{where: "x"}) == ""
    assert watched.after(59) == ""
    assert watched.after(1) == "deadline: silence deadline: nothing new in log or metrics for 1m00s"


def test_the_start_deadline_is_not_moved_by_output(start: Start) -> None:
    watched = start(start_s=60)

    assert watched.after(59, log="x\n") == ""
    assert watched.after(1, log="x\n") == "deadline: start deadline: no step begun 1m00s after the start"


def test_the_start_deadline_ends_with_the_begin_of_the_first_step(start: Start) -> None:
    watched = start(start_s=60)
    watched.has_begun = True

    assert watched.after(59, log="x\n") == ""
    assert watched.after(500) == ""


def test_a_step_that_has_ended_had_begun(start: Start) -> None:
    watched = start(start_s=60)

    assert watched.after(59, metrics="1\n") == ""
    assert watched.after(500) == ""


@pytest.mark.parametrize("name", ["total_s", "silence_s", "start_s", "first_step_s"])
def test_a_missed_deadline_says_where_its_limit_came_from(start: Start, name: str) -> None:
    watched = start(**{name: 60.0}, origins={name: "the marker", "step_s": "elsewhere"})

    assert watched.after(60).endswith(" (limit: the marker)")


def test_the_deadline_of_a_later_step_says_where_its_limit_came_from(start: Start) -> None:
    watched = start(first_step_s=500, step_s=60, origins={"first_step_s": "elsewhere", "step_s": "the marker"})
    watched.after(1, metrics="1\n")

    assert watched.after(60).endswith("after the last step's (limit: the marker)")


def test_the_first_step_deadline_is_not_moved_by_the_log(start: Start) -> None:
    watched = start(first_step_s=60)

    assert watched.after(59, log="x\n") == ""
    assert watched.after(1, log="x\n") == "deadline: first step deadline: no metrics 1m00s after the start"


def test_the_first_step_deadline_ends_with_the_first_step(start: Start) -> None:
    watched = start(first_step_s=60)

    assert watched.after(59, metrics="1\n") == ""
    assert watched.after(500) == ""


def test_the_step_deadline_begins_with_the_first_step(start: Start) -> None:
    watched = start(step_s=60)

    assert watched.after(500) == ""
    assert watched.after(1, metrics="1\n") == ""
    assert watched.after(59, metrics="2\n") == ""
    assert watched.after(60) == "deadline: step deadline: no metrics for 1m00s after the last step's"


def test_half_a_line_of_metrics_is_no_step(start: Start) -> None:
    watched = start(first_step_s=60)

    assert watched.after(59, metrics='{"step"') == ""
    assert watched.after(1).startswith("deadline: first step deadline")


def test_a_fatal_line_leaves_time_to_die(start: Start) -> None:
    watched = start(fatal_s=10)

    assert watched.after(1, log="dead\n") == ""
    assert watched.after(9, log="dead\n") == ""
    assert watched.after(1).startswith(f"{Ending.FATAL_LINE.value}: the log says that it cannot go on (it died)")


def test_from_a_fatal_line_to_the_verdict_it_takes_less_than_ten_seconds() -> None:
    limits = Limits(total_s=1000)

    # The scene is kept while the training has its time to die; the rest is for the last look at what is left.
    assert max(limits.fatal_s, limits.scene_s) + limits.fatal_grace_s <= 6


def test_progress_tells_the_last_step_and_the_last_output(start: Start) -> None:
    watched = start()
    watched.after(1, metrics="7\n")
    watched.after(42)

    assert watched.watch.progress_text() == "last progress: line 7; last output 42s ago"


def test_the_end_of_the_metrics_is_read_after_the_end(start: Start) -> None:
    watched = start()
    watched.directory.metrics.write_text("1\n" * 300_000 + "2")

    watched.watch.finish()

    assert watched.watch.progress_text().startswith("last progress: line 2;")


def test_the_kernels_count_of_killed_processes_is_read(tmp_path: Path) -> None:
    events = tmp_path / "memory.events"
    events.write_text("low 0\noom 3\noom_kill 2\noom_group_kill 0\n")

    assert count_memory_kills([tmp_path / "none", events]) == 2


def test_no_count_of_the_kernel_is_no_count(tmp_path: Path) -> None:
    assert count_memory_kills([tmp_path / "none"]) is None


def test_of_a_long_ray_log_the_end_is_kept(tmp_path: Path) -> None:
    home, kept = tmp_path / "home", tmp_path / "kept"
    logs = home / "session_1" / "logs"
    logs.mkdir(parents=True)
    (logs / "raylet.out").write_bytes(b"a" * FILE_LIMIT_BYTES + b"the end")
    (home / "session_latest").symlink_to(home / "session_1")

    put_away(home, keep_in=kept)

    assert [path.relative_to(kept).as_posix() for path in kept.rglob("*.out")] == ["session_1/logs/raylet.out"]
    assert (kept / "session_1" / "logs" / "raylet.out").read_bytes() == (b"a" * FILE_LIMIT_BYTES + b"the end")[-FILE_LIMIT_BYTES:]
    assert not home.exists()
