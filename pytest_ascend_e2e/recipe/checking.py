"""Checks on the values of a recipe's fields, one sentence for each that cannot be used.

Must not know: which fields there are. A bool is no number here, although Python takes it for one.
"""

from __future__ import annotations

import copy
import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import RecipeError, did_you_mean


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldChecks:
    """Collects the problems of the fields of one object; `owner` is the field of the recipe that holds it, empty for the recipe."""

    owner: str
    problems: list[str] = field(default_factory=list)

    def refuse(self, name: str, value: object, expected: str, *, rule: str = "") -> None:
        """Note that a value cannot be used, and what is accepted or to be done; `rule` is the id of a rule of verl behind it."""
        path = f"{self.owner}.{name}" if self.owner else name
        self.problems.append(f"{path}: {value!r} cannot be used: {expected}{f' [{rule}]' if rule else ''}")

    def boolean(self, name: str, value: object, *, optional: bool = False) -> None:
        """Accept True and False only."""
        if not isinstance(value, bool) and not (optional and value is None):
            self.refuse(name, value, f"expected True or False{_or_none(optional)}")

    def size(self, name: str, value: object, *, minimum: int = 1, optional: bool = False) -> None:
        """Accept a whole number of `minimum` or more."""
        if optional and value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            self.refuse(name, value, f"expected a whole number of {minimum} or more{_or_none(optional)}")

    def number(
        self, name: str, value: object, *, above: float | None = None, least: float | None = None, most: float | None = None
    ) -> None:
        """Accept a finite number within the bounds given."""
        bounds = [
            text
            for bound, text in ((above, f"above {above}"), (least, f"of {least} or more"), (most, f"of at most {most}"))
            if bound is not None
        ]
        expected = " ".join(["expected a finite number", " and ".join(bounds)]).strip()
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not is_number or not _is_between(value, above, least, most):
            self.refuse(name, value, expected)

    def choice(self, name: str, value: object, accepted: Collection[str], *, rule: str = "") -> None:
        """Accept one of a closed set of names; a near miss is named."""
        if isinstance(value, str) and value in accepted:
            return
        near = difflib.get_close_matches(value, accepted, n=1) if isinstance(value, str) else []
        expected = f"expected one of {', '.join(map(repr, accepted))}{did_you_mean(near, before='; ')}"
        self.refuse(name, value, expected, rule=rule)

    def text(self, name: str, value: object, example: str) -> None:
        """Accept a text that is not empty."""
        if not isinstance(value, str) or not value.strip():
            self.refuse(name, value, f"expected a text such as {example!r}")

    def mapping(self, name: str, value: object) -> None:
        """Accept a mapping with text keys; its values are checked where they are rendered."""
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            self.refuse(name, value, "expected a mapping with text keys, such as {'key': value}")

    def reasons(self, name: str, value: object) -> None:
        """Accept a mapping from text keys to a reason for each."""
        pairs = value.items() if isinstance(value, Mapping) else [(None, None)]
        if not all(isinstance(key, str) and isinstance(reason, str) and reason.strip() for key, reason in pairs):
            self.refuse(name, value, "expected a reason for each name, such as {'rollout.dtype': 'the rollout is quantized'}")


def _is_between(value: object, above: float | None, least: float | None, most: float | None) -> bool:
    if not isinstance(value, (int, float)):
        return False
    return (above is None or value > above) and (least is None or value >= least) and (most is None or value <= most)


def _or_none(optional: bool) -> str:
    return ", or None to leave it to verl" if optional else ""


def settle(recipe: object, problems: Sequence[str]) -> None:
    """Refuse a recipe with problems, and make its mappings its own: one of the caller's that changes later must not change it.

    Raises:
        RecipeError: there are problems.
    """
    if problems:
        raise RecipeError(*problems)
    for name in ("overrides", "env", "meant_differences"):
        if hasattr(recipe, name):
            object.__setattr__(recipe, name, copy.deepcopy(getattr(recipe, name)))
