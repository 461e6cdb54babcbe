"""A case as Python text: a recipe's fields that are not the default, in the format that ruff and black give.

Must not know: where the recipe comes from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass

from ..recipe import SFT, Recipe

_WIDTH = 132
_INDENT = "    "
_CHECKS = ("run.check_completed()",)
_CHECKS_OF_REWARDS = ('run.check_rewards(trend="not-falling")',)
_CHECK_OF_LOGPROBS = "run.check_logprob_consistency()"
_CHECK_OF_THROUGHPUT = "run.check_throughput(report_only=True)"


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseText:
    """What stands in a file for one case."""

    name: str
    marker: str
    runner: str
    nodes: int
    recipe: Recipe | SFT


def module_text(cases: Iterable[CaseText], title: str) -> str:
    """Return a whole test module."""
    texts = list(cases)
    names = sorted(
        {"Run", *(case.marker for case in texts), *(name for case in texts for name in _class_names(case.recipe))}, key=_isort
    )
    lines = [f'"""{title}"""', "", "from __future__ import annotations", ""]
    lines += _bracketed("from pytest_ascend_e2e import ", names)
    for case in texts:
        lines += ["", "", *_decorator(case), f"def {case.name}(run: Run) -> None:"]
        lines += [f"{_INDENT}{check}" for check in _checks(case.recipe)]
    return "\n".join([*lines, ""])


def _isort(name: str) -> tuple[int, str]:
    """Order as ruff does: constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _class_names(recipe: Recipe | SFT) -> set[str]:
    parts = [getattr(recipe, field.name) for field in fields(recipe)]
    return {type(recipe).__name__, *(type(part).__name__ for part in parts if is_dataclass(part))}


def _checks(recipe: Recipe | SFT) -> tuple[str, ...]:
    if isinstance(recipe, SFT):
        return _CHECKS
    logprobs = (_CHECK_OF_LOGPROBS,) if recipe.rollout.calculate_log_probs else ()
    return (*_CHECKS, *_CHECKS_OF_REWARDS, *logprobs, _CHECK_OF_THROUGHPUT)


def _bracketed(head: str, names: list[str]) -> list[str]:
    flat = f"{head}{', '.join(names)}"
    if len(flat) <= _WIDTH:
        return [flat]
    return [f"{head}(", *(f"{_INDENT}{name}," for name in names), ")"]


def _decorator(case: CaseText) -> list[str]:
    arguments: list[tuple[str, object]] = [("runner", case.runner)]
    if case.nodes > 1:
        arguments.append(("nodes", case.nodes))
    arguments.append(("recipe", case.recipe))
    return _lines(f"@{case.marker}(", [(f"{name}=", value) for name, value in arguments], ")", "")


def _lines(opening: str, items: list[tuple[str, object]], closing: str, indent: str) -> list[str]:
    """Return a bracket with its items: on one line, else those of a call on one line below, else each on its own line."""
    inner = ", ".join(f"{prefix}{_flat(value)}" for prefix, value in items)
    if len(indent) + len(opening) + len(inner) + len(closing) <= _WIDTH:
        return [f"{indent}{opening}{inner}{closing}"]
    deeper = indent + _INDENT
    if closing.startswith(")") and len(deeper) + len(inner) <= _WIDTH:
        return [f"{indent}{opening}", f"{deeper}{inner}", f"{indent}{closing}"]
    lines = [f"{indent}{opening}"]
    for prefix, value in items:
        lines += _value_lines(prefix, value, deeper)
    return [*lines, f"{indent}{closing}"]


def _value_lines(prefix: str, value: object, indent: str) -> list[str]:
    brackets = _brackets(value)
    if brackets is None or not brackets[1]:
        return [f"{indent}{prefix}{_flat(value)},"]
    opening, items, closing = brackets
    return _lines(f"{prefix}{opening}", items, f"{closing},", indent)


def _brackets(value: object) -> tuple[str, list[tuple[str, object]], str] | None:
    """Return opening, items and closing of a value that has items."""
    if isinstance(value, Mapping):
        return "{", [(f"{_flat(key)}: ", item) for key, item in value.items()], "}"
    if isinstance(value, (list, tuple)):
        return "[", [("", item) for item in value], "]"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}(", [(f"{name}=", item) for name, item in _told(value)], ")"
    return None


def _told(part: object) -> list[tuple[str, object]]:
    """Return the fields whose values are not the default."""
    found = []
    for field in fields(part):  # type: ignore[arg-type]  # a dataclass, as its caller asked
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        value = getattr(part, field.name)
        if value != default or field.default is field.default_factory is MISSING:
            found.append((field.name, value))
    return found


def _flat(value: object) -> str:
    brackets = _brackets(value)
    if brackets is not None:
        opening, items, closing = brackets
        return f"{opening}{', '.join(f'{prefix}{_flat(item)}' for prefix, item in items)}{closing}"
    if isinstance(value, str):
        return repr(value) if value.count('"') > value.count("'") else json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        if not math.isfinite(value):
            return f'float("{value}")'
        return repr(value).replace("e-0", "e-")
    return repr(value)
