"""What a tiny model is taught: the answers to a prepared dataset, some in the form that verl's reward asks for, some not.

A base model knows part of the answers and follows the wanted form only at times; that is the room in which RL improves.
Must not know: tokens, networks, files.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ModelError

WELL_FORMED_SHARE = 0.35
"""How often a lesson shows the wanted form; what the tiny model will do about as often."""

_FINAL_ANSWER = re.compile(r"#### (-?[0-9.,]+)")
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_GEOMETRY_FORM = re.compile(r"<think>.*</think>.*\\boxed\{.*\}.*", re.DOTALL)
_GEOMETRY_ACCURACY_WEIGHT = 0.9


@dataclass(frozen=True, kw_only=True, slots=True)
class Lesson:
    """One row of a prepared dataset: the prompt, its images, and the answers to learn.

    `question` is the prompt without images and without the instruction on the form, which is the same in every row;
    `well_formed` is what the reward asks for, `flawed` the ways in which a base model misses the form.
    """

    data_source: str
    prompt: str
    question: str
    images: Sequence[bytes]
    truth: str
    well_formed: str
    flawed: Sequence[str]

    def answer(self, rng: random.Random) -> str:
        """Return one answer to learn, well-formed in `WELL_FORMED_SHARE` of the draws."""
        return self.well_formed if rng.random() < WELL_FORMED_SHARE else rng.choice(self.flawed)

    def reward(self, response: str) -> float:
        """Return what verl's own reward function gives for a response, from 0 to 1."""
        if self.data_source == "hiyouga/geometry3k":
            boxed = _BOXED.findall(response)
            is_right = bool(boxed) and boxed[-1].strip() == self.truth
            is_formed = _GEOMETRY_FORM.fullmatch(response) is not None
            return _GEOMETRY_ACCURACY_WEIGHT * is_right + (1 - _GEOMETRY_ACCURACY_WEIGHT) * is_formed
        found = _FINAL_ANSWER.findall(response)
        return float(bool(found) and found[-1].replace(",", "") == self.truth)


def read_lessons(rows: Sequence[Mapping[str, Any]], *, origin: str) -> list[Lesson]:
    """Return a lesson for each row of a prepared dataset; `origin` names the file in an error.

    Raises:
        ModelError: a row lacks a column, or comes from a dataset of which no answers are known.
    """
    lessons = []
    for number, row in enumerate(rows):
        source = str(row.get("data_source"))
        if source not in _TEACHERS:
            raise ModelError(
                f"{origin}: row {number} has data_source {source!r}; a tiny model can learn {', '.join(map(repr, _TEACHERS))}"
            )
        try:
            well_formed, flawed = _TEACHERS[source](row)
            lesson = Lesson(
                data_source=source,
                prompt=row["prompt"][-1]["content"],
                question=row["extra_info"]["question"].replace("<image>", ""),
                images=tuple(image["bytes"] for image in row.get("images") or ()),
                truth=row["reward_model"]["ground_truth"],
                well_formed=well_formed,
                flawed=flawed,
            )
        except (KeyError, IndexError, TypeError) as error:
            raise ModelError(
                f"{origin}: row {number} is not as `prepare` writes it: {error!r}; prepare the dataset again"
            ) from error
        lessons.append(lesson)
    if not lessons:
        raise ModelError(f"{origin}: no rows to learn from; prepare the dataset again")
    return lessons


def _teach_gsm8k(row: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    work, _, final = row["extra_info"]["answer"].rpartition("#### ")
    work = work.rstrip("\n")
    return f"{work}\n#### {final}", (f"{work}\nThe answer is {final}.",)


def _teach_geometry3k(row: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    truth = row["reward_model"]["ground_truth"]
    thought = row["extra_info"].get("solution") or f"The answer is {truth}."
    boxed, bare = rf"\boxed{{{truth}}}", f"The answer is {truth}."
    return (
        f"<think> {thought} </think> {boxed}",
        (f"<think> {thought} </think> {bare}", f"{thought} {bare}"),
    )


_TEACHERS: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, tuple[str, ...]]]] = {
    "openai/gsm8k": _teach_gsm8k,
    "hiyouga/geometry3k": _teach_geometry3k,
}
