"""How the end of the process counts where the log says little, and what is said of logs that say nothing."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_ascend_e2e.diagnosis import diagnose
from pytest_ascend_e2e.records import Ending, Kind

PROBLEM = b"(WorkerDict pid=3) OSError: [Errno 28] No space left on device: '/srv/run'\n"


@pytest.mark.parametrize(("exit_status", "signal"), [(-9, None), (137, None), (None, "SIGKILL")])
def test_sigkill_is_named_and_points_at_the_oom_killer(exit_status: int | None, signal: str | None) -> None:
    found = diagnose([b"working\n"], exit_status=exit_status, signal=signal, ending=Ending.SIGNALLED)

    assert found.kind is Kind.WORKER_CRASH
    assert "SIGKILL" in found.advice
    assert "OOM" in found.advice


def test_sigkill_with_a_word_on_host_memory_is_host_memory() -> None:
    found = diagnose([b"(raylet) Task was killed due to the node running low on memory.\n"], exit_status=-9)

    assert found.kind is Kind.HOST_OOM


@pytest.mark.parametrize("exit_status", [-11, 139, -6, 134])
def test_crash_signals_are_a_crash(exit_status: int) -> None:
    assert diagnose([], exit_status=exit_status).kind is Kind.WORKER_CRASH


def test_sigbus_is_shared_memory() -> None:
    assert diagnose([], exit_status=-7).kind is Kind.HOST_OOM


def test_a_cause_in_the_log_beats_the_signal() -> None:
    assert diagnose([PROBLEM], exit_status=-11).kind is Kind.DISK_FULL


@pytest.mark.parametrize("exit_status", [-9, -15, 143])
def test_our_own_signal_is_no_cause(exit_status: int) -> None:
    found = diagnose(
        [b"step 3 of 9\n"], exit_status=exit_status, signal="SIGKILL", ending=Ending.DEADLINE, end_reason="silence: 600s"
    )

    assert found.kind is Kind.HANG
    assert found.line == ""
    assert found.advice.startswith("Silence: 600s; its last line was 'step 3 of 9'.")


def test_a_deadline_with_a_cause_in_the_log_is_that_cause() -> None:
    assert diagnose([PROBLEM, b"waiting\n"], ending=Ending.DEADLINE).kind is Kind.DISK_FULL


def test_a_deadline_on_an_empty_log_is_a_hang() -> None:
    found = diagnose([], ending=Ending.DEADLINE)

    assert found.kind is Kind.HANG
    assert "it printed nothing" in found.advice


def test_zero_rewards_do_not_explain_a_deadline() -> None:
    step = b"step:1 - training/global_step:1 - critic/rewards/max:0.0 - critic/rewards/min:0.0\n"

    assert diagnose([step], ending=Ending.DEADLINE).kind is Kind.HANG


def test_a_stopped_session_is_no_failure_of_the_run() -> None:
    lines = [b"the probe failed, going on without\n", b"working\n"]

    found = diagnose(lines, signal="SIGTERM", ending=Ending.INTERRUPTED, end_reason="the session was asked to stop")

    assert (found.kind, found.line) == (Kind.UNKNOWN, "")
    assert found.advice == "It was stopped from outside: the log shows no failure of it."


def test_an_empty_log_is_said_to_be_empty() -> None:
    found = diagnose([], exit_status=1)

    assert (found.kind, found.line, found.infra) == (Kind.UNKNOWN, "", False)
    assert "empty" in found.advice


def test_the_last_complaint_is_shown_where_no_rule_knows_it() -> None:
    found = diagnose([b"the frobnicator failed to turn\n", b"bye\n"], exit_status=3)

    assert (found.kind, found.line) == (Kind.UNKNOWN, "the frobnicator failed to turn")


def test_a_printed_configuration_is_no_cause() -> None:
    printed = [b"'checkpoint_engine': {'backend': 'naive',\n", b"'update_weights_bucket_megabytes': 2048},\n"]
    error = [b"Traceback (most recent call last):\n", b"ValueError: num_samples should be a positive integer value\n"]

    found = diagnose([*printed, *error], exit_status=1)

    assert found.line == "ValueError: num_samples should be a positive integer value"


def test_a_warning_is_no_complaint() -> None:
    lines = [b"the frobnicator failed to turn\n", b"Warning: failed to set the affinity\n", b"UserWarning: an error may follow\n"]

    assert diagnose(lines, exit_status=3).line == "the frobnicator failed to turn"
    assert diagnose(lines[1:], exit_status=3).line == ""


def test_binary_junk_does_not_hide_the_cause() -> None:
    junk = random.Random(7).randbytes(1 << 20)  # noqa: S311  # junk, not a secret

    found = diagnose([*junk.split(b"\n"), PROBLEM, *junk.split(b"\n")])

    assert (found.kind, found.line) == (Kind.DISK_FULL, "OSError: [Errno 28] No space left on device: '/srv/run'")


def test_a_cause_behind_a_progress_bar_is_found() -> None:
    bar = "Training Progress:  10%|█         | 1/10 [00:10<01:30, 10.02s/it]"

    found = diagnose([f"{bar}\r{bar}KeyError: 'x'\r\n".encode()])

    assert found.line == "KeyError: 'x'"


def test_a_line_without_end_is_read_up_to_a_limit() -> None:
    found = diagnose([b"KeyError: " + b"x" * (1 << 24)])

    assert found.kind is Kind.CODE_ERROR
    assert len(found.line) <= 1000


def test_memory_does_not_grow_with_the_log() -> None:
    def log() -> Iterator[bytes]:
        for number in range(20_000):
            yield b"(WorkerDict pid=%d) RuntimeError: worker %d failed\n" % (number, number)

    tracemalloc.start()
    try:
        found = diagnose(log())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert found.line == "RuntimeError: worker 0 failed"
    assert peak < 8 << 20


@pytest.mark.parametrize(
    "unit",
    [
        b"(",
        b"[",
        b" ",
        b"a.",
        b"_",
        b"pid=",
        b"(pid=",
        b"| ",
        b"step:1 - ",
        b"1 GiB ",
        b"EI",
        b"Error: ",
        b"\x1b[",
        b"HCCL ",
        b"port ",
        b"%|",
        b"x: ",
    ],
)
def test_no_line_takes_more_than_linear_time(unit: bytes) -> None:
    short, long = ((unit * (size // len(unit)))[:size] for size in (1 << 12, 1 << 16))

    work = [_cpu_seconds(text) for text in (short, long)]

    assert work[1] < work[0] * 64 + 0.5


def _cpu_seconds(text: bytes) -> float:
    start = time.thread_time()
    diagnose([text])
    return time.thread_time() - start


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])  # a shared machine says nothing of us
@given(st.lists(st.binary(max_size=200), max_size=20), st.none() | st.integers(-70, 300))
def test_any_bytes_have_a_diagnosis_of_one_line(raw: list[bytes], exit_status: int | None) -> None:
    found = diagnose(raw, exit_status=exit_status)

    assert "\n" not in found.line
    assert found.line == found.line.strip()
    assert found.advice
