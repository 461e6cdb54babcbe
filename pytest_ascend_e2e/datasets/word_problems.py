"""A stream of arithmetic word problems with worked solutions, in the raw schema of gsm8k.

Owns the templates. Must not know: files, prompts for training.
"""

from __future__ import annotations

import operator
import zlib
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from .difficulty import Difficulty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
}

_TEST_SHARE = 8  # one problem in so many belongs to the test split
_TRIES = 10_000
_LEAST_RESULT = 2  # so that every noun stands in the plural


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One line of a solution: `left` and `right` name a number of the question (`a`) or the result of a step (`s1`)."""

    left: str
    sign: str
    right: str
    words: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """A question with the steps that solve it; in braces stand names, things (`item`, `items`) and numbers (`a` to `d`)."""

    text: str
    steps: tuple[Step, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of the numbers in the question."""
        return tuple(name for name in "abcd" if f"{{{name}}}" in self.text)


@dataclass(frozen=True, kw_only=True, slots=True)
class WordProblem:
    """A question, its solution (gsm8k's notation: `3 * 4 = <<3*4=12>>12`, last line `#### 12`) and the number of its steps."""

    question: str
    solution: str
    steps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Range:
    """What numbers may be: those of the question up to `largest`, every result from 2 to `largest_result`."""

    largest: int
    largest_result: int
    most_steps: int
    names: tuple[str, ...]
    things: tuple[tuple[str, str], ...]
    is_wordy: bool


_SIMPLE = _Range(
    largest=9,
    largest_result=20,
    most_steps=2,
    names=("Tom", "Ann", "Ben", "Eva"),
    things=(("pen", "pens"), ("book", "books"), ("egg", "eggs"), ("ball", "balls")),
    is_wordy=False,
)
_FULL = _Range(
    largest=60,
    largest_result=2000,
    most_steps=4,
    names=("Tom", "Ann", "Ben", "Eva", "Omar", "Lucy", "Wei", "Nora", "Ivan", "Mia"),
    things=(
        ("pen", "pens"),
        ("book", "books"),
        ("egg", "eggs"),
        ("ball", "balls"),
        ("apple", "apples"),
        ("ticket", "tickets"),
        ("candle", "candles"),
        ("mug", "mugs"),
        ("plant", "plants"),
        ("sticker", "stickers"),
    ),
    is_wordy=True,
)
_RANGES: Mapping[Difficulty, _Range] = {Difficulty.SIMPLE: _SIMPLE, Difficulty.FULL: _FULL}

TEMPLATES: tuple[Template, ...] = (
    Template(
        text="{name} has {a} {items} and gets {b} more. How many {items} does {name} have now?",
        steps=(Step(left="a", sign="+", right="b", words="{name} now has {sum} {items}."),),
    ),
    Template(
        text="{name} has {a} {items} and gives {b} to {other}. How many {items} are left?",
        steps=(Step(left="a", sign="-", right="b", words="There are {sum} {items} left."),),
    ),
    Template(
        text="There are {a} boxes with {b} {items} each. How many {items} are there?",
        steps=(Step(left="a", sign="*", right="b", words="The boxes hold {sum} {items}."),),
    ),
    Template(
        text="{name} shares {a} {items} among {b} friends. How many does each friend get?",
        steps=(Step(left="a", sign="/", right="b", words="Each friend gets {sum} {items}."),),
    ),
    Template(
        text="One {item} costs {a} dollars. How many dollars do {b} {items} cost?",
        steps=(Step(left="a", sign="*", right="b", words="They cost {sum} dollars."),),
    ),
    Template(
        text="{name} has {a} boxes with {b} {items} each and {c} more {items}. How many {items} does {name} have?",
        steps=(
            Step(left="a", sign="*", right="b", words="The boxes hold {sum} {items}."),
            Step(left="s1", sign="+", right="c", words="Together there are {sum} {items}."),
        ),
    ),
    Template(
        text="{name} has {a} {items}. {other} has {b} times as many. How many {items} do they have together?",
        steps=(
            Step(left="a", sign="*", right="b", words="{other} has {sum} {items}."),
            Step(left="s1", sign="+", right="a", words="Together they have {sum} {items}."),
        ),
    ),
    Template(
        text="{name} has {a} {items}, buys {b} more and gives {c} to {other}. How many {items} does {name} have now?",
        steps=(
            Step(left="a", sign="+", right="b", words="{name} first has {sum} {items}."),
            Step(left="s1", sign="-", right="c", words="Then {sum} {items} are left."),
        ),
    ),
    Template(
        text="{name} and {other} put {a} and {b} {items} into {c} equal bags. How many {items} are in each bag?",
        steps=(
            Step(left="a", sign="+", right="b", words="Together they have {sum} {items}."),
            Step(left="s1", sign="/", right="c", words="Each bag holds {sum} {items}."),
        ),
    ),
    Template(
        text=(
            "{name} works {a} hours a day for {b} days and earns {c} dollars an hour. {name} spends {d} dollars. "
            "How many dollars are left?"
        ),
        steps=(
            Step(left="a", sign="*", right="b", words="{name} works {sum} hours."),
            Step(left="s1", sign="*", right="c", words="{name} earns {sum} dollars."),
            Step(left="s2", sign="-", right="d", words="There are {sum} dollars left."),
        ),
    ),
    Template(
        text=(
            "A shop has {a} shelves with {b} {items} each. It gets {c} more {items} and packs all of them into {d} equal boxes. "
            "How many {items} are in each box?"
        ),
        steps=(
            Step(left="a", sign="*", right="b", words="The shelves hold {sum} {items}."),
            Step(left="s1", sign="+", right="c", words="Together there are {sum} {items}."),
            Step(left="s2", sign="/", right="d", words="Each box holds {sum} {items}."),
        ),
    ),
    Template(
        text=(
            "{name} sells {a} small {items} and {b} large {items}. A small one costs {c} dollars, a large one {d} dollars more. "
            "How many dollars does {name} get?"
        ),
        steps=(
            Step(left="a", sign="*", right="c", words="The small {items} bring {sum} dollars."),
            Step(left="c", sign="+", right="d", words="A large one costs {sum} dollars."),
            Step(left="b", sign="*", right="s2", words="The large {items} bring {sum} dollars."),
            Step(left="s1", sign="+", right="s3", words="Together {name} gets {sum} dollars."),
        ),
    ),
)


def word_problems(split: str, *, seed: int = 0, difficulty: Difficulty = Difficulty.SIMPLE) -> Iterator[WordProblem]:
    """Yield problems without end; a question of the split "test" is in no other split."""
    rng = Random(f"words {split} {seed} {difficulty.value}")  # noqa: S311  # repeatable, not secret
    span = _RANGES[difficulty]
    templates = [template for template in TEMPLATES if len(template.steps) <= span.most_steps]
    while True:
        problem = _filled(rng.choice(templates), rng, span)
        if (zlib.crc32(problem.question.encode()) % _TEST_SHARE == 0) == (split == "test"):
            yield problem


def word_rows(split: str, *, seed: int = 0, difficulty: Difficulty = Difficulty.SIMPLE) -> Iterator[dict[str, Any]]:
    """Yield rows in gsm8k's raw schema without end: `question`, `answer` (the worked solution)."""
    for problem in word_problems(split, seed=seed, difficulty=difficulty):
        yield {"question": problem.question, "answer": problem.solution}


def _filled(template: Template, rng: Random, span: _Range) -> WordProblem:
    name, other = rng.sample(span.names, 2)
    item, items = rng.choice(span.things)
    numbers = _numbers(template, rng, span)
    words = {"name": name, "other": other, "item": item, "items": items}
    lines = [_line(step, numbers, words, is_wordy=span.is_wordy) for step in template.steps]
    return WordProblem(
        question=template.text.format(**words, **numbers),
        solution="\n".join([*lines, f"#### {numbers[f's{len(template.steps)}']}"]),
        steps=len(template.steps),
    )


def _numbers(template: Template, rng: Random, span: _Range) -> dict[str, int]:
    """Draw the numbers of a question, and return them with the result of each step: whole, and neither too small nor too large."""
    for _ in range(_TRIES):
        numbers = {name: rng.randint(2, span.largest) for name in template.numbers}
        if all(_is_solved(step, numbers, index, span) for index, step in enumerate(template.steps, start=1)):
            return numbers
    raise RuntimeError(f"no acceptable numbers in {_TRIES} draws for {template.text!r}")


def _is_solved(step: Step, numbers: dict[str, int], index: int, span: _Range) -> bool:
    left, right = numbers[step.left], numbers[step.right]
    if step.sign == "/" and left % right != 0:
        return False
    numbers[f"s{index}"] = _OPERATORS[step.sign](left, right)
    return _LEAST_RESULT <= numbers[f"s{index}"] <= span.largest_result


def _line(step: Step, numbers: Mapping[str, int], words: Mapping[str, str], *, is_wordy: bool) -> str:
    left, right = numbers[step.left], numbers[step.right]
    result = _OPERATORS[step.sign](left, right)
    worked = f"{left} {step.sign} {right} = <<{left}{step.sign}{right}={result}>>{result}"
    return step.words.format(sum=worked, **words) if is_wordy else worked
