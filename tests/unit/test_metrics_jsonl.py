"""The JSONL of verl's file logger: merging, nulls, and every way in which a line can be wrong."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ascend_e2e.metrics import LONGEST_LINE, read_jsonl


def line(step: object, **data: object) -> bytes:
    return json.dumps({"step": step, "data": data}).encode() + b"\n"


def test_each_line_is_a_step() -> None:
    metrics = read_jsonl([line(1, reward=0.25), line(2, reward=0.5)])

    assert metrics["reward"].items() == ((1, 0.25), (2, 0.5))
    assert metrics.problems == ()


def test_null_is_a_nan_at_its_step() -> None:
    metrics = read_jsonl([line(1, reward=0.25), line(2, reward=None)])

    assert metrics["reward"].non_finite_steps == (2,)


def test_lines_of_one_step_with_different_keys_are_merged() -> None:
    metrics = read_jsonl([line(1, reward=0.25), line(1, accuracy=0.5)])

    assert metrics.row(1) == {"reward": 0.25, "accuracy": 0.5}
    assert metrics.problems == ()


def test_of_a_step_logged_twice_the_later_value_counts_and_is_named() -> None:
    metrics = read_jsonl([line(1, reward=0.25), line(1, reward=0.5)])

    assert metrics["reward"].at(1) == 0.5
    assert metrics.problems == ("line 2: step 1 is logged again and replaces reward from 0.25 to 0.5",)


def test_a_step_logged_twice_with_the_same_values_is_named() -> None:
    metrics = read_jsonl([line(1, reward=0.25), line(1, reward=0.25)])

    assert "logged again, with the same values" in metrics.problems[0]


def test_a_nan_that_is_replaced_is_named() -> None:
    metrics = read_jsonl([line(1, reward=None), line(1, reward=0.5)])

    assert "replaces reward from nan to 0.5" in metrics.problems[0]


def test_a_step_that_goes_back_is_named() -> None:
    metrics = read_jsonl([line(3, reward=0.5), line(2, reward=0.5)])

    assert "step 2 comes after step 3" in metrics.problems[0]


def test_a_cut_last_line_is_named_and_the_rest_is_kept() -> None:
    metrics = read_jsonl([line(1, reward=0.25), line(2, reward=0.5)[:-9]])

    assert metrics.steps == (1,)
    assert "line 2, the last one, is broken or was cut" in metrics.problems[0]


def test_a_broken_line_between_others_is_named_and_the_rest_is_kept() -> None:
    metrics = read_jsonl([line(1, reward=0.25), b"Traceback\n", line(2, reward=0.5)])

    assert metrics.steps == (1, 2)
    assert metrics.problems[0].startswith("line 2 is broken")


@pytest.mark.parametrize(
    "broken",
    [
        b"[1]\n",
        b'{"step": 1}\n',
        b'{"data": {}}\n',
        line("1", a=1),
        b'{"step": true, "data": {}}\n',
        line(-1, a=1),
        line(1.5, a=1),
        b'{"step": 1, "data": []}\n',
        b"[" * 100_000,
        b"\xff\xfe\n",
    ],
)
def test_what_is_no_step_is_named(broken: bytes) -> None:
    metrics = read_jsonl([broken, line(2, reward=0.5)])

    assert metrics.steps == (2,)
    assert metrics.problems[0].startswith("line 1 is broken")


def test_an_empty_log_is_a_problem() -> None:
    assert "the log is empty" in read_jsonl([]).problems[0]


def test_blank_lines_alone_are_no_step() -> None:
    assert "no step in 2 lines" in read_jsonl([b"\n", b"  \n"]).problems[0]


def test_a_text_is_no_metric() -> None:
    metrics = read_jsonl([line(1, reward=0.5, note="ok"), line(2, reward=0.5, note="ok")])

    assert "note" not in metrics
    assert metrics.problems == ()


def test_a_text_in_the_place_of_a_number_is_named() -> None:
    metrics = read_jsonl([line(1, reward=0.5), line(2, reward="0.5", other=1)])

    assert metrics.problems == ("line 2: reward at step 2 is no number: '0.5'",)


def test_truth_values_are_numbers() -> None:
    assert read_jsonl([line(1, done=True)])["done"].at(1) == 1.0


def test_an_integer_beyond_a_float_is_infinite() -> None:
    assert read_jsonl([line(1, tokens=-(10**400))])["tokens"].at(1) == -math.inf


def test_an_over_long_line_is_named() -> None:
    metrics = read_jsonl([b'{"step": 1, "data": {"' + b"a" * LONGEST_LINE + b'": 1}}\n', line(2, reward=0.5)])

    assert "longer than" in metrics.problems[0]


def test_problems_beyond_a_hundred_are_counted() -> None:
    metrics = read_jsonl([b"x\n"] * 150)

    assert len(metrics.problems) == 101
    assert metrics.problems[-1] == "and 51 more problems"


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_no_bytes_are_too_odd(lines: list[bytes]) -> None:
    metrics = read_jsonl(lines)

    assert metrics.problems or metrics.steps
