"""The calls of checks in a case's test function, looked at before its training."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator

import pytest

from ..errors import E2EError
from ..session import call_problems
from . import fixtures

_RUN, _TRAIN = "run", "train"


def refuse_wrong_calls(item: pytest.Item) -> None:
    """Refuse a test whose calls of checks cannot succeed; one whose source is not at hand is left to its run.

    Raises:
        E2EError: with one text for each call.
    """
    if not isinstance(item, pytest.Function):
        return
    ours = set(_own_fixtures(item))
    try:
        lines, first = inspect.getsourcelines(item.function)
        source = textwrap.dedent("".join(lines))
        problems = call_problems(source, first_line=first, runs=ours & {_RUN}, factories=ours & {_TRAIN})
    except (OSError, SyntaxError):  # made by a program, or of a form that cannot stand alone
        return
    if problems:
        raise E2EError(*problems)


def _own_fixtures(item: pytest.Function) -> Iterator[str]:
    """Yield the names of this plugin's fixtures that the test takes, but for those that a suite has replaced by its own."""
    # There is no public way from a test to its fixtures before they are made. tests/plugin/test_calls.py notices when this moves.
    found = item._fixtureinfo.name2fixturedefs  # noqa: SLF001
    for name in (_RUN, _TRAIN):
        if name in found and found[name][-1].func.__module__ == fixtures.__name__:
            yield name
