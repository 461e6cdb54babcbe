"""Calls of checks in a test's source that cannot succeed, told before a training: a misspelt check, argument or choice.

Only what is certain is told: calls on a name that is bound once, to a finished training, and not where a test may expect an error.
Must not know: pytest, or how a test gets its trainings.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import types
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..errors import did_you_mean
from .run import Run

_CHECKS = tuple(name for name, _ in inspect.getmembers(Run, inspect.isfunction) if not name.startswith("_"))
# What binds a name, and the field that holds it.
_BINDINGS: dict[type[ast.AST], str] = {
    ast.arg: "arg",
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}
# Where a test may expect an error, or may never come by.
_UNCERTAIN = (
    ast.With, ast.AsyncWith, ast.Try, ast.If, ast.IfExp, ast.BoolOp, ast.Match, ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef
)  # fmt: skip


def call_problems(source: str, *, first_line: int, runs: Collection[str], factories: Collection[str]) -> list[str]:
    """Return one text for each call in a test function that cannot succeed.

    `source` is the function's own, which begins in line `first_line` of its file. `runs` are arguments that are finished trainings,
    `factories` those whose calls return one.
    """
    function = ast.parse(source).body[0]
    bound = Counter(_bound_names(function))
    names = {name for name in runs if bound[name] == 1}
    made = {name for name in factories if bound[name] == 1}
    names |= {name for name in _made_by(function, made) if bound[name] == 1}
    calls = [(call, call.func) for call in _certain_calls(function) if isinstance(call.func, ast.Attribute)]
    return [
        f"{ast.unparse(method)} in line {first_line + call.lineno - 1}: {problem}"
        for call, method in calls
        if isinstance(method.value, ast.Name) and method.value.id in names
        for problem in _problems(call, method.attr)
    ]


def _bound_names(function: ast.AST) -> Iterator[str]:
    """Yield each name as often as something is bound to it, or to an attribute of it."""
    for node in ast.walk(function):
        field = _BINDINGS.get(type(node))
        if field is not None:
            yield str(getattr(node, field))
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name):
            yield node.value.id
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def _made_by(function: ast.AST, factories: Collection[str]) -> Iterator[str]:
    """Yield each name that is assigned what a factory returns."""
    for node in ast.walk(function):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)):
            continue
        if node.value.func.id in factories and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id


def _certain_calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls below a node that a test makes whenever it gets there."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _UNCERTAIN):
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from _certain_calls(child)


def _problems(call: ast.Call, name: str) -> Iterator[str]:
    method: Any = getattr(Run, name, None)
    is_of_an_instance = name in Run.__init__.__code__.co_names
    if method is None and not is_of_an_instance:
        yield f"a finished training has no {name!r}; {_advice(name, _CHECKS)}"
    if inspect.isfunction(method) and name in _CHECKS:
        yield from _argument_problems(call, method)


def _argument_problems(call: ast.Call, method: Callable[..., object]) -> Iterator[str]:
    parameters = list(inspect.signature(method).parameters.values())[1:]
    kinds = {parameter.kind for parameter in parameters}
    by_place = sum(parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)
    is_open = inspect.Parameter.VAR_POSITIONAL in kinds or any(isinstance(argument, ast.Starred) for argument in call.args)
    names = [parameter.name for parameter in parameters if parameter.kind is not inspect.Parameter.VAR_POSITIONAL]
    if len(call.args) > by_place and not is_open:
        yield f"{ast.unparse(call.args[by_place])} is given without a name; accepted are {', '.join(names)}"
    hints = get_type_hints(method)
    for keyword in call.keywords:
        if keyword.arg is not None and keyword.arg not in names:
            yield f"there is no argument {keyword.arg!r}; {_advice(keyword.arg, names)}"
        elif keyword.arg is not None and isinstance(keyword.value, ast.Constant):
            yield from _choice_problem(keyword.arg, keyword.value.value, _choices(hints[keyword.arg]))


def _choice_problem(name: str, value: object, choices: Collection[object]) -> Iterator[str]:
    if choices and value not in choices:
        yield f"{name}={value!r} cannot be used: expected one of {', '.join(map(repr, choices))}"


def _choices(hint: object) -> tuple[object, ...]:
    """Return the values that a type allows, nothing where they are not a closed set."""
    if hint is type(None):
        return (None,)
    if get_origin(hint) is Literal:
        return get_args(hint)
    if get_origin(hint) not in (Union, types.UnionType):
        return ()
    parts = [_choices(part) for part in get_args(hint)]
    return tuple(choice for part in parts for choice in part) if all(parts) else ()


def _advice(name: str, accepted: Collection[str]) -> str:
    near = difflib.get_close_matches(name, accepted, n=1)
    return did_you_mean(near, otherwise=f"there are {', '.join(accepted) or 'none'}")
