"""The lines of a log that a reader is shown: those around the root cause, marked, or the last ones."""

from __future__ import annotations

from pytest_ascend_e2e.diagnosis import diagnose, excerpt, last_steps
from pytest_ascend_e2e.records import Ending

CAUSE = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB"


def log_of(*lines: str) -> list[bytes]:
    return [f"{line}\n".encode() for line in lines]


def test_the_line_of_a_diagnosis_is_found_and_marked_among_its_neighbours() -> None:
    log = log_of(
        *[f"before {i}" for i in range(50)],
        "Traceback (most recent call last):",
        '  File "x.py", line 1, in step',
        f"\x1b[36m(WorkerDict pid=77)\x1b[0m {CAUSE}",
        *[f"after {i}" for i in range(50)],
    )
    diagnosis = diagnose(log, exit_status=1, ending=Ending.EXITED)

    found = excerpt(log, diagnosis.line, before=3, after=2)

    assert diagnosis.line == CAUSE
    assert [(line.number, line.text) for line in found.lines] == [
        (50, "before 49"),
        (51, "Traceback (most recent call last):"),
        (52, '  File "x.py", line 1, in step'),
        (53, CAUSE),
        (54, "after 0"),
        (55, "after 1"),
    ]
    assert [line.number for line in found.lines if line.is_cause] == [53]
    assert found.lines[3].source == "WorkerDict pid=77"
    assert found.total == 103


def test_of_equal_lines_the_first_one_after_the_last_step_is_marked() -> None:
    log = log_of("step:1 - actor/loss:1.0", CAUSE, "step:2 - actor/loss:1.0", "so", CAUSE, CAUSE)

    found = excerpt(log, CAUSE)

    assert [line.number for line in found.lines if line.is_cause] == [5]


def test_a_cause_before_the_last_step_is_marked_where_none_comes_after_it() -> None:
    found = excerpt(log_of(CAUSE, "step:1 - actor/loss:1.0", "end"), CAUSE)

    assert [line.number for line in found.lines if line.is_cause] == [1]


def test_a_step_line_that_a_diagnosis_shortened_is_found() -> None:
    log = log_of(
        "step:70 - actor/entropy:0.3 - actor/grad_norm:nan", "step:7 - actor/entropy:0.3 - actor/grad_norm:nan - perf/mfu:1"
    )

    found = excerpt(log, "step:7 - … - actor/grad_norm:nan - …")

    assert [line.number for line in found.lines if line.is_cause] == [2]


def test_a_cause_that_is_not_in_the_log_leaves_the_last_lines() -> None:
    found = excerpt(log_of(*map(str, range(100))), CAUSE, before=2, after=2)

    assert [line.text for line in found.lines] == ["95", "96", "97", "98", "99"]
    assert not found.has_cause


def test_an_empty_log_has_no_lines() -> None:
    assert excerpt([], "").lines == ()


def test_a_long_line_is_cut_and_blank_ones_are_left_out() -> None:
    found = excerpt(log_of("x" * 9000, "", "  "), "")

    assert [len(line.text) for line in found.lines] == [501]


NOISE = (
    "nanobind: leaked 4 instances!",
    "UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects to clean up",
)


def test_of_a_whole_training_the_last_steps_are_shown_and_not_the_noise_of_its_end() -> None:
    log = log_of(*[line for step in range(1, 5) for line in (f"step:{step} - actor/loss:1.0", "so")], *NOISE)

    found = last_steps(log, most=2)

    assert [(line.number, line.text) for line in found.lines] == [(5, "step:3 - actor/loss:1.0"), (7, "step:4 - actor/loss:1.0")]
    assert found.is_of_steps
    assert not found.has_cause
    assert found.total == 10


def test_of_a_log_without_steps_the_last_lines_are_shown() -> None:
    found = last_steps(log_of("one", "two", "three"), most=2)

    assert [line.text for line in found.lines] == ["two", "three"]
    assert not found.is_of_steps
    assert last_steps([]).lines == ()
