"""Which calls of checks in a test's source are told before a training, and that none is told in error."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from pytest_ascend_e2e.session import call_problems

TRENDS = "'rises', 'falls', 'not-rising', 'not-falling', None"
WRONG = {
    "check": ("run.check_reward()", "a finished training has no 'check_reward'; did you mean 'check_rewards'?"),
    "argument": ("run.check_rewards(trends='rises')", "there is no argument 'trends'; did you mean 'trend'?"),
    "choice": ("run.check_rewards(trend='rising')", f"trend='rising' cannot be used: expected one of {TRENDS}"),
    "no name": ("run.check_rewards(0.3)", "0.3 is given without a name; accepted are minimum, window, "),
    "no arguments": ("run.remove_checkpoints(all=True)", "there is no argument 'all'; there are none"),
    "of train": ("mine = train(1); mine.check_reward()", "a finished training has no 'check_reward'; "),
    "in a loop": ("for _ in '12': run.check_reward()", "a finished training has no 'check_reward'; "),
}
SOUND = {
    "used well": "run.check_rewards(trend=None, minimum=0.1); run.same_as(run, 'a', bitwise=True); run.metrics['a'].last(5)",
    "a value of its own": "run.check_rewards(trend=train.trend, **train.more)",
    "bound again": "run = train.other(); run.check_reward()",
    "bound by a loop": "for run in [train]: run.check_reward()",
    "given another method": "run.check_mine = print; run.check_mine()",
    "a method of another": "other = train.run(); other.check_reward()",
    "train bound again": "train = print; mine = train(1); mine.check_reward()",
    "bound twice": "mine = train(1); mine = print; mine.check_reward()",
    "an error that is expected": "with train.raises(TypeError): run.check_reward()",
    "asked first": "if hasattr(run, 'check_new'): run.check_new()",
    "asked first, in a word": "hasattr(run, 'check_new') and run.check_new()",
    "a parameter of the same name": "print(lambda run: run.check_reward())",
}


def problems_of(body: str) -> list[str]:
    return call_problems(f"def test_case(run, train):\n    {body}\n", first_line=10, runs={"run"}, factories={"train"})


@pytest.mark.parametrize("name", WRONG)
def test_a_call_that_cannot_succeed_is_told(name: str) -> None:
    body, expected = WRONG[name]

    (problem,) = problems_of(body)

    place, _, text = problem.partition(": ")
    assert place.endswith(" in line 11")
    assert text.startswith(expected)


@pytest.mark.parametrize("name", SOUND)
def test_what_may_succeed_is_left_alone(name: str) -> None:
    assert problems_of(SOUND[name]) == []


def test_only_the_given_names_are_trainings() -> None:
    source = textwrap.dedent("def test_case(run): run.check_reward()")

    assert call_problems(source, first_line=1, runs=(), factories=()) == []


def test_the_checks_of_the_cases_are_sound() -> None:
    for path in Path(__file__).parents[1].joinpath("e2e_npu").glob("test_*.py"):
        parts = path.read_text(encoding="utf-8").split("\ndef ")[1:]
        for part in parts:
            body = f"def {part}".partition("\n@")[0].partition("\n\n\n")[0]
            assert call_problems(body, first_line=1, runs={"run"}, factories={"train"}) == [], path
