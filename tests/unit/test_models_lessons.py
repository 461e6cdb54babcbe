"""What a tiny model is taught, and how its answers are judged."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_ascend_e2e.errors import ModelError
from pytest_ascend_e2e.models.lessons import WELL_FORMED_SHARE, Lesson, read_lessons


def _word_problem() -> dict[str, Any]:
    return {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content": "How many are 2 and 3? End with ####."}],
        "reward_model": {"style": "rule", "ground_truth": "5"},
        "extra_info": {"question": "How many are 2 and 3?", "answer": "2 + 3 = <<2+3=5>>5\n#### 5"},
    }


def _figure_problem() -> dict[str, Any]:
    return {
        "data_source": "hiyouga/geometry3k",
        "prompt": [{"role": "user", "content": "<image>Find x. Think first."}],
        "images": [{"bytes": b"png", "path": None}],
        "reward_model": {"style": "rule", "ground_truth": "40"},
        "extra_info": {"question": "<image>Find x.", "answer": "40"},
    }


def _lesson(row: Mapping[str, Any]) -> Lesson:
    return read_lessons([row], origin="train.parquet")[0]


@pytest.mark.parametrize("row", [_word_problem(), _figure_problem()])
def test_well_formed_answer_has_the_whole_reward(row: dict[str, Any]) -> None:
    lesson = _lesson(row)

    assert lesson.reward(lesson.well_formed) == pytest.approx(1.0)


@pytest.mark.parametrize("row", [_word_problem(), _figure_problem()])
def test_every_flawed_answer_has_less(row: dict[str, Any]) -> None:
    lesson = _lesson(row)

    assert lesson.flawed
    assert max(lesson.reward(answer) for answer in lesson.flawed) < 1.0


@pytest.mark.parametrize(
    ("response", "reward"),
    [
        ("#### 5", 1.0),
        ("#### 4\n#### 5", 1.0),
        ("#### 5\n#### 4", 0.0),
        ("####5", 0.0),
        ("#### 5.", 0.0),
        ("The answer is 5.", 0.0),
        ("", 0.0),
    ],
)
def test_word_problem_is_judged_by_its_last_final_answer(response: str, reward: float) -> None:
    assert _lesson(_word_problem()).reward(response) == reward


@pytest.mark.parametrize(
    ("response", "reward"),
    [
        (r"<think> x </think> \boxed{40}", 1.0),
        (r"\boxed{40}", 0.9),
        (r"<think> x </think> \boxed{50}", 0.1),
        ("<think> x </think> 40", 0.0),
        (r"x <think> x </think> \boxed{40}", 0.9),
    ],
)
def test_figure_problem_is_judged_by_answer_and_form(response: str, reward: float) -> None:
    assert _lesson(_figure_problem()).reward(response) == pytest.approx(reward)


def test_wanted_form_is_shown_in_its_share_of_the_draws() -> None:
    lesson, rng = _lesson(_word_problem()), random.Random(0)  # noqa: S311  # draws of a test, no secret

    shown = sum(lesson.answer(rng) == lesson.well_formed for _ in range(2000)) / 2000

    assert shown == pytest.approx(WELL_FORMED_SHARE, abs=0.04)


def test_images_come_with_the_lesson() -> None:
    assert _lesson(_figure_problem()).images == (b"png",)


def test_question_is_bare_of_image_and_instruction() -> None:
    assert _lesson(_figure_problem()).question == "Find x."


def test_solution_is_the_thought_where_the_row_has_one() -> None:
    row = _figure_problem()
    row["extra_info"]["solution"] = "180 - 140 = 40"

    assert _lesson(row).well_formed == r"<think> 180 - 140 = 40 </think> \boxed{40}"


def test_unknown_dataset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ModelError, match=r"train\.parquet: row 0 has data_source 'other'; a tiny model can learn 'openai/gsm8k'"):
        _lesson({**_word_problem(), "data_source": "other"})


@pytest.mark.parametrize("column", ["prompt", "reward_model", "extra_info"])
def test_missing_column_is_told_with_its_row(column: str) -> None:
    row = _word_problem()
    del row[column]

    with pytest.raises(ModelError, match=rf"row 0 is not as `prepare` writes it: KeyError\('{column}'\)"):
        _lesson(row)


def test_no_rows_are_no_lessons() -> None:
    with pytest.raises(ModelError, match="no rows to learn from"):
        read_lessons([], origin="train.parquet")
