"""Console logs: what is a step line, a key and a number, and what happens to lines that are glued, split or cut."""

from __future__ import annotations

import io
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ascend_e2e.metrics import LONGEST_LINE, Metrics, bounded_lines, read_console

STEP = "step:4 - critic/rewards/mean:0.75 - actor/lr:1e-06"
ROW = {"critic/rewards/mean": 0.75, "actor/lr": 1e-06}


def read(*lines: str, ends: bool = True) -> Metrics:
    encoded = [f"{line}\n".encode() for line in lines]
    if not ends:
        encoded[-1] = encoded[-1][:-1]
    return read_console(encoded)


@pytest.mark.parametrize(
    "before",
    [
        "",
        "(TaskRunnerV1 pid=88) ",
        "(TaskRunner pid=88, ip=192.0.2.7) ",
        "(Runner(name=a) pid=88) ",
        "\x1b[36m(TaskRunnerV1 pid=88)\x1b[0m ",
        "[36m(TaskRunnerV1 pid=88)[0m ",
        "^[[1;36m(TaskRunnerV1 pid=88)^[[0m ",
        "2026-05-04T19:20:21.1234567Z (TaskRunnerV1 pid=88) ",
        "2026-05-04 19:20:21,123 - verl - INFO - ",
        "INFO:2026-05-04 19:20:21,123:",
        "[rank0]: ",
        "[pod/verl-head-a/main] ",
        "0: ",
        "worker-1  | ",
        "Epoch 1/2:  50%|\u2588\u2588\u258c  | 5/10 [00:09<00:09,  1.8s/it]",
        "Training Progress:   7%|\u258b\r(TaskRunnerV1 pid=88) ",
        "noise\r",
        "\ufeff",
    ],
)
def test_a_step_line_is_found_behind(before: str) -> None:
    metrics = read(before + STEP)

    assert metrics.steps == (4,)
    assert metrics.row(4) == ROW
    assert metrics.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        "timing/step:1.25",
        "val/global_step:12 - a/b:1",
        "saved to /ckpt/global_step:9/actor - a/b:1",
        "Saving checkpoint step:15 - took/seconds:3.5",
        "Saving checkpoint step:15 done",
        "At step:3 - we add 5",
        "- step:1 - compute:5",
        "substep:1 - a/b:5",
        "{'step': 3, 'a/b': 1}",
        "step:5",
        "step:5 - see below",
        "step:1 - multiply: 5",
        "total_training_steps: 15",
        "| step:1 - a/b:1 |",
    ],
)
def test_no_step_line_is_seen_in(text: str) -> None:
    assert read(text).steps == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2.0),
        ("-.02", -0.02),
        ("5.", 5.0),
        ("1.2e3", 1200.0),
        ("+1E-05", 1e-05),
        ("np.float64(0.5)", 0.5),
        ("np.float32(-1e-3)", -0.001),
        ("np.int64(2)", 2.0),
        ("numpy.float64(.55)", 0.55),
        ("Decimal('0.5')", 0.5),
        ("True", 1.0),
        ("np.False_", 0.0),
        ("np.bool_(True)", 1.0),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("-Infinity", -math.inf),
        ("np.float64(inf)", math.inf),
    ],
)
def test_a_number_is(text: str, value: float) -> None:
    metrics = read(f"step:1 - a/b:{text} - c/d:1")

    assert metrics.row(1) == {"a/b": value, "c/d": 1.0}
    assert metrics.problems == ()


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "np.float64(nan)"])
def test_nan_is_a_number_that_is_not_finite(text: str) -> None:
    assert read(f"step:1 - a/b:{text}")["a/b"].non_finite_steps == (1,)


@pytest.mark.parametrize("text", ["1.2.3", "12abc", "1,234", "0x1f", "1e", "np.float64(1.2.3)", "1-2", "--1", "nano"])
def test_a_broken_number_is_left_out_and_named(text: str) -> None:
    metrics = read(f"step:1 - a/b:{text} - c/d:1")

    assert metrics.row(1) == {"c/d": 1.0}
    assert f"a/b:{text}" in metrics.problems[0]


@pytest.mark.parametrize("text", ["1.2.3", "0.5abc"])
def test_a_broken_number_at_the_end_is_left_out_and_named(text: str) -> None:
    metrics = read(f"step:1 - c/d:1 - a/b:{text}", "more")

    assert metrics.row(1) == {"c/d": 1.0}
    assert f"a/b:{text}" in metrics.problems[0]


@pytest.mark.parametrize("key", ["val-core/a-b/acc/mean@32", "critic/lr(1e-4)", "val-aux/two words/x", "a:b/c", "x"])
def test_a_key_may_be(key: str) -> None:
    assert read(f"step:1 - a/b:1 - {key}:0.5").row(1)[key] == 0.5


@pytest.mark.parametrize(
    "glued",
    [
        "(TaskRunnerV1 pid=1) INFO:2026-05-04 22:29:04,437:pending: 0",
        "Training Progress:  10%|\u2588 | 1/10 [00:01<00:09, 1s/it]",
        " WARNING 05-04 worker says a:b:c",
        "INFO:2026-05-04 22:29:04",
        "[2026-05-04 22:29:04] x",
        "\u2588\u2588",
    ],
)
def test_text_glued_to_the_end_spoils_no_value(glued: str) -> None:
    metrics = read(STEP + glued)

    assert metrics.row(4) == ROW
    assert metrics.problems == ()


def test_values_behind_glued_text_are_named_as_left_out() -> None:
    metrics = read("step:4 - a/b:1(Worker pid=2) hello - c/d:2 - e/f:3")

    assert metrics.row(4) == {"a/b": 1.0}
    assert "2 values after it are left out" in metrics.problems[0]


@pytest.mark.parametrize("between", ["", " ", "(TaskRunnerV1 pid=88) ", " Training: 10%|\u2588| 1/9 [00:01<00:09, 1s/it]", "\r"])
def test_two_step_lines_in_one_are_two_steps(between: str) -> None:
    metrics = read(f"{STEP}{between}step:5 - critic/rewards/mean:0.8")

    assert metrics.steps == (4, 5)
    assert metrics.row(4) == ROW
    assert metrics.problems == ()


def test_a_metric_called_step_is_a_metric() -> None:
    assert read("step:1 - step:7 - a/b:2").row(1) == {"step": 7.0, "a/b": 2.0}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("step:4 - critic/rewards/mean:0.75 - ", "actor/lr:1e-06"),
        ("step:4 - critic/rewards/mean:0.75 -", "actor/lr:1e-06"),
        ("step:4 - critic/rewards/mean:0.75", " - actor/lr:1e-06"),
        ("step:4 - critic/rewards/mean:0.75", "- actor/lr:1e-06"),
        ("step:4 - critic/rewards/mean:0.7", "5 - actor/lr:1e-06"),
        ("step:4 - critic/rewa", "rds/mean:0.75 - actor/lr:1e-06"),
        ("step:4 - critic/rewards/mean:", "0.75 - actor/lr:1e-06"),
        ("step:4 - critic/rewards/mean:0.75 - actor/lr", ":1e-06"),
        ("step:4 - critic/rewards/mean:0.75 - actor/lr:1e-", "06"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "(TaskRunnerV1 pid=88) "])
def test_a_split_step_line_is_joined(first: str, second: str, prefix: str) -> None:
    metrics = read(prefix + first, prefix + second, "and then prose")

    assert metrics.row(4) == ROW
    assert metrics.problems == ()


@pytest.mark.parametrize("following", ["some prose", "Time:5", "3 - x:5", "(Worker pid=3) other/metric", "a - b/c:1"])
def test_what_follows_a_whole_step_line_is_not_joined(following: str) -> None:
    metrics = read(STEP, following)

    assert metrics.row(4) == ROW


def test_a_line_cut_after_a_separator_is_named() -> None:
    metrics = read("step:1 - a/b:1 - ")

    assert metrics.row(1) == {"a/b": 1.0}
    assert "was cut after its last separator" in metrics.problems[0]


def test_a_line_cut_within_a_key_is_named() -> None:
    metrics = read("step:1 - a/b:1 - timing_s/st", ends=False)

    assert "'timing_s/st'" in metrics.problems[0]


def test_a_last_line_without_an_end_is_named_as_its_value_may_be_cut() -> None:
    metrics = read("hello", STEP, ends=False)

    assert "no line end" in metrics.problems[0]


def test_a_last_line_cut_in_the_start_of_a_step_is_named() -> None:
    metrics = read(STEP, "(TaskRunnerV1 pid=88) step:5", ends=False)

    assert "no line end" in metrics.problems[0]


def test_a_cut_line_before_another_step_is_named() -> None:
    metrics = read("step:1 - a/b:1 - c/", "step:2 - a/b:1 - c/d:3")

    assert metrics.steps == (1, 2)
    assert "step 1 was cut" in metrics.problems[0]


def test_a_validation_line_adds_to_the_step_of_its_training_line() -> None:
    metrics = read(STEP, "step:4 - val-core/x/acc/mean@4:np.float64(0.5)")

    assert metrics.row(4) == {**ROW, "val-core/x/acc/mean@4": 0.5}
    assert metrics.problems == ()


def test_a_restart_is_named_and_the_later_values_count() -> None:
    metrics = read("step:1 - a/b:1", "step:2 - a/b:2", "step:1 - a/b:3")

    assert metrics["a/b"].items() == ((1, 3.0), (2, 2.0))
    assert "step 1 comes after step 2" in metrics.problems[0]
    assert "replaces a/b from 1 to 3" in metrics.problems[1]


def test_a_key_twice_in_one_line_is_named() -> None:
    metrics = read("step:1 - a/b:1 - a/b:2")

    assert metrics["a/b"].at(1) == 2.0
    assert "a/b twice" in metrics.problems[0]


def test_carriage_return_and_line_feed_end_a_line() -> None:
    metrics = read_console([f"{STEP}\r\n".encode()])

    assert metrics.row(4) == ROW


def test_bytes_that_are_no_text_spoil_nothing() -> None:
    metrics = read_console([b"\xff\xfe\x00 half \xe2\x96\n", STEP.encode() + b"\n"])

    assert metrics.row(4) == ROW


def test_an_empty_log_is_a_problem() -> None:
    assert "the log is empty" in read_console([]).problems[0]


def test_a_log_without_a_step_is_a_problem() -> None:
    assert "no step in 1 lines" in read("Traceback (most recent call last):").problems[0]


@pytest.mark.parametrize(
    "evil",
    [
        "1" * 90_000,
        "a:" * 40_000,
        "step:1 - " * 10_000,
        "step:1 - a/b:" + "9" * 90_000,
        "\x1b[" * 40_000,
        "(" * 90_000,
        " - " * 30_000,
        "step:1 - a/b:1" + " " * 90_000 + "x",
        "[1" * 40_000,
        "step:1 - a/b:1step:" * 5_000,
    ],
    ids=["digits", "colons", "starts", "number", "escapes", "brackets", "separators", "blanks", "squares", "glued"],
)
def test_no_line_takes_more_than_linear_time(evil: str) -> None:
    began = time.process_time()

    read(evil, "step:2 - a/b:1")

    assert time.process_time() - began < 3


def test_an_over_long_line_is_read_from_its_start_only() -> None:
    stream = io.BytesIO(STEP.encode() + b" " * (3 * LONGEST_LINE) + b"\nstep:5 - a/b:1\n")

    lines = list(bounded_lines(stream))

    assert max(map(len, lines)) == LONGEST_LINE + 1
    metrics = read_console(lines)
    assert metrics.steps == (4, 5)
    assert "longer than" in metrics.problems[0]


KEYS = [
    "critic/rewards/mean",
    "val-core/a-b/acc/mean@8",
    "critic/lr(1e-4)",
    "training/num_turns/max",
    "timing_s/step",
    "loss",
    "x/y_z",
]


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(KEYS),
        st.one_of(st.floats(allow_nan=False), st.integers(-(2**53), 2**53)),
        min_size=1,
    ),
    st.booleans(),
)
def test_what_verl_writes_is_read_back(data: dict[str, float], is_numpy: bool) -> None:
    def shown(value: float) -> str:
        return f"np.float64({float(value)!r})" if is_numpy else repr(value)

    metrics = read("(TaskRunnerV1 pid=9) step:3 - " + " - ".join(f"{key}:{shown(value)}" for key, value in data.items()))

    assert metrics.row(3) == data
    assert metrics.problems == ()


@given(
    st.lists(
        st.one_of(st.binary(max_size=50), st.sampled_from([STEP.encode(), b"step:1 - a", b" - ", b"\x1b[0m", b"np.float64("])),
        max_size=9,
    )
)
def test_no_bytes_are_too_odd(parts: list[bytes]) -> None:
    metrics = read_console([b"".join(parts), *parts])

    assert metrics.problems or metrics.steps
