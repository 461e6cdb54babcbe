"""Wrong arguments of a recipe and its parts, told as every other mistake in them and not by Python's own `TypeError`.

Must not know: which fields there are, or what their values may be.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ..errors import RecipeError, did_you_mean

T = TypeVar("T")


def told_arguments(kind: type[T]) -> type[T]:
    """Let a dataclass whose fields are given by name raise a RecipeError for arguments that it does not take, or lacks."""
    create: Any = kind.__init__

    @functools.wraps(create)
    def told(self: T, *args: object, **given: object) -> None:
        problems = [*_misplaced(kind, args), *_misnamed(kind, given)]
        if problems:
            raise RecipeError(*problems)
        create(self, **given)

    kind.__init__ = told  # type: ignore[method-assign, assignment]  # type checkers keep to the fields
    return kind


def _misplaced(kind: type, args: Sequence[object]) -> Iterator[str]:
    if args:
        yield f"{kind.__name__} takes its fields by name, got {args[0]!r} without one; accepted are {', '.join(_fields(kind))}"


def _misnamed(kind: type, given: Mapping[str, object]) -> Iterator[str]:
    fields = _fields(kind)
    free = [name for name in fields if name not in given]
    missing = {name for name in free if fields[name]}
    for name in given:
        if name in fields:
            continue
        meant = difflib.get_close_matches(name, free, n=1) or difflib.get_close_matches(name, fields, n=1)
        missing -= {*meant}
        hint = did_you_mean(meant, otherwise=f"accepted are {', '.join(fields)}")
        yield f"{kind.__name__} has no field {name!r}; {hint}"
    for name in free:
        if name in missing:
            yield f"{kind.__name__} needs the field {name!r}; write {name}=..."


def _fields(kind: Any) -> dict[str, bool]:
    """Return the names of the fields, and of each whether it must be given."""
    none = dataclasses.MISSING
    return {field.name: field.default is none and field.default_factory is none for field in dataclasses.fields(kind)}
