"""Generated word problems: solutions that follow from the question, in gsm8k's notation."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pytest_ascend_e2e.datasets import Difficulty, word_rows
from pytest_ascend_e2e.datasets.word_problems import TEMPLATES, word_problems

if TYPE_CHECKING:
    from collections.abc import Callable

# What each question asks, written down a second time: from the numbers of the question, in their order.
ANSWERS: dict[str, Callable[..., float]] = {
    r"and gets \d+ more": lambda a, b: a + b,
    r"and gives \d+ to \w+\. How many \w+ are left": lambda a, b: a - b,
    r"^There are \d+ boxes": lambda a, b: a * b,
    r"shares \d+": lambda a, b: a / b,
    r"^One \w+ costs": lambda a, b: a * b,
    r"boxes with \d+ \w+ each and": lambda a, b, c: a * b + c,
    r"times as many": lambda a, b: a * b + a,
    r"buys \d+ more and gives": lambda a, b, c: a + b - c,
    r"equal bags": lambda a, b, c: (a + b) / c,
    r"hours a day": lambda a, b, c, d: a * b * c - d,
    r"shelves": lambda a, b, c, d: (a * b + c) / d,
    r"small \w+ and \d+ large": lambda a, b, c, d: a * c + b * (c + d),
}


def asked(question: str) -> float:
    matching = [solve for pattern, solve in ANSWERS.items() if re.search(pattern, question)]
    assert len(matching) == 1, question
    return matching[0](*(int(number) for number in re.findall(r"\d+", question)))


@pytest.mark.parametrize("difficulty", Difficulty)
@pytest.mark.parametrize("split", ["train", "test"])
def test_final_number_is_what_the_question_asks(split: str, difficulty: Difficulty) -> None:
    for row in itertools.islice(word_rows(split, seed=1, difficulty=difficulty), 500):
        final = row["answer"].splitlines()[-1]

        assert final == f"#### {asked(row['question']):g}"


@pytest.mark.parametrize("difficulty", Difficulty)
def test_every_step_is_worked_correctly(difficulty: Difficulty) -> None:
    for problem in itertools.islice(word_problems("train", seed=2, difficulty=difficulty), 500):
        worked = re.findall(r"(\d+) ([-+*/]) (\d+) = <<(\d+)([-+*/])(\d+)=(\d+)>>(\d+)", problem.solution)

        assert len(worked) == problem.steps == len(problem.solution.splitlines()) - 1
        for left, sign, right, left_again, sign_again, right_again, result, result_again in worked:
            a, b = int(left), int(right)
            assert (left, sign, right, result) == (left_again, sign_again, right_again, result_again)
            assert int(result) == {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[sign]
        assert problem.solution.endswith(f"#### {worked[-1][-1]}")


def test_every_template_and_one_to_four_steps_occur_in_full_problems() -> None:
    problems = list(itertools.islice(word_problems("train", seed=3, difficulty=Difficulty.FULL), 600))

    patterns = Counter(pattern for problem in problems for pattern in ANSWERS if re.search(pattern, problem.question))

    assert len(ANSWERS) == len(TEMPLATES)
    assert set(patterns) == set(ANSWERS)
    assert {problem.steps for problem in problems} == {1, 2, 3, 4}


def test_simple_problems_are_short_and_have_few_answers() -> None:
    problems = list(itertools.islice(word_problems("train", seed=4), 1000))

    finals = {problem.solution.rsplit(" ", 1)[1] for problem in problems}

    assert len(finals) <= 20
    assert max(len(problem.question) for problem in problems) < 110
    assert max(len(problem.solution) for problem in problems) < 70
    assert {problem.steps for problem in problems} == {1, 2}


def test_lengths_of_questions_vary() -> None:
    questions = [row["question"] for row in itertools.islice(word_rows("train"), 32)]

    assert len({len(question.split()) for question in questions}) >= 5


def test_same_seed_makes_the_same_rows_and_another_one_others() -> None:
    first, again, other = (list(itertools.islice(word_rows("train", seed=seed), 20)) for seed in (5, 5, 6))

    assert first == again
    assert first != other


def test_test_questions_are_no_train_questions() -> None:
    train = {row["question"] for row in itertools.islice(word_rows("train"), 4000)}
    test = {row["question"] for row in itertools.islice(word_rows("test"), 400)}

    assert not train & test
