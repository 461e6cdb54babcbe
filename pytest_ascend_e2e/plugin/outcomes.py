"""How a failure of ours looks in pytest: the text of the error, without a traceback.

Only exceptions of this package are rewritten. An error of the plugin itself (any other exception) keeps its traceback.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest._code.code import ExceptionRepr, ReprTracebackNative  # parts of what `getrepr` returns, without a public name

from ..errors import E2EError

PACKAGE = Path(__file__).parent.parent


class CaseFailed(AssertionError):  # noqa: N818  # named for what a reader of a report sees
    """A training failed, or a check of it did; the text is the whole report of the failure."""


def clean_report(excinfo: pytest.ExceptionInfo[BaseException], rootpath: Path) -> ExceptionRepr | str | None:
    """Return what to show instead of a traceback, None for an exception that is not ours.

    The whole text stands in the failure section. Its first line alone is the message: pytest's summary prints the message in
    full on a CI, and JUnit has it as an attribute.
    """
    text = _clean_text(excinfo, rootpath)
    if text is None:
        return None
    shown = excinfo.getrepr(style="native")
    if shown.reprcrash is None:
        return text
    shown.reprtraceback = ReprTracebackNative([f"{text}\n"])
    shown.reprcrash.message = text.partition("\n")[0]
    return shown


def _clean_text(excinfo: pytest.ExceptionInfo[BaseException], rootpath: Path) -> str | None:
    error = excinfo.value
    if isinstance(error, CaseFailed):
        return str(error)
    if isinstance(error, E2EError):
        place = _place(excinfo, rootpath)
        return "\n".join(f"{place}{problem}" for problem in error.problems)
    return None


def _place(excinfo: pytest.ExceptionInfo[BaseException], rootpath: Path) -> str:
    """Return `file:line: ` of the innermost frame of the user's own code, empty where there is none."""
    for entry in reversed(excinfo.traceback):
        path = Path(entry.path)
        if rootpath in path.parents and PACKAGE not in path.parents:
            return f"{path.relative_to(rootpath)}:{entry.lineno + 1}: "
    return ""
