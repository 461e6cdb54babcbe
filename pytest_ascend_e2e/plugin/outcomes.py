"""How a failure of ours looks in pytest: the text of the error, without a traceback.

Only exceptions of this package are rewritten. An error of the plugin itself (any other exception) keeps its traceback.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

# Parts of what `getrepr` returns, without a public name.
from _pytest._code.code import ExceptionRepr, ReprExceptionInfo, ReprFileLocation, ReprTracebackNative

from ..errors import E2EError

PACKAGE = Path(__file__).parent.parent
_STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])
_INSTALLED = {"site-packages", "dist-packages"}


class CaseFailed(AssertionError):  # noqa: N818  # named for what a reader of a report sees
    """A training failed, or a check of it did; the text is the whole report of the failure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A line of a file, counted from 1."""

    path: Path
    line: int

    def prefix(self, rootpath: Path) -> str:
        """Return what a text begins with that is about this line."""
        path = self.path.relative_to(rootpath) if rootpath in self.path.parents else self.path
        return f"{path}:{self.line}: "


def place_of(item: pytest.Item) -> Place:
    """Return where a test stands."""
    return Place(path=item.path, line=(item.location[1] or 0) + 1)


def clean_report(excinfo: pytest.ExceptionInfo[BaseException], rootpath: Path, test: Place | None = None) -> ExceptionRepr | None:
    """Return what to show instead of a traceback, None for an exception that is not ours.

    The whole text stands in the failure section, each problem with its line: the innermost one of the user's own code, else that
    of the test. The first line of the error alone is the message: pytest's summary has no room for more, on a CI prints all of it,
    and JUnit has it as an attribute.
    """
    error = excinfo.value
    if isinstance(error, pytest.Collector.CollectError):
        error = error.__cause__ or error
    if not isinstance(error, (CaseFailed, E2EError)):
        return None
    place = _own_line(excinfo, rootpath) or test
    prefix = "" if place is None or isinstance(error, CaseFailed) else place.prefix(rootpath)
    problems = (str(error),) if isinstance(error, CaseFailed) else error.problems
    path, line = ("", 0) if place is None else (str(place.path), place.line)
    return _shown("\n".join(f"{prefix}{problem}" for problem in problems), ReprFileLocation(path, line, _first_line(problems[0])))


def shorten(report: pytest.TestReport, text: str, rootpath: Path) -> None:
    """Let a failure section be one text; what else the report told stands elsewhere."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        place = Place(path=Path(crash.path), line=crash.lineno)
        report.longrepr = _shown(f"{place.prefix(rootpath)}{text}", crash)


def add_section(report: pytest.TestReport, name: str, text: str) -> None:
    """Put a titled text below a failure, where the terminal and the JUnit file have it."""
    if isinstance(report.longrepr, ExceptionRepr):
        report.longrepr.addsection(name, text)
    else:  # a text of its own kind, such as that of a fixture that is not found: the terminal alone has sections for it
        report.sections.append((name, text))


def _shown(text: str, crash: ReprFileLocation) -> ReprExceptionInfo:
    return ReprExceptionInfo(reprtraceback=ReprTracebackNative([f"{text}\n"]), reprcrash=crash)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _own_line(excinfo: pytest.ExceptionInfo[BaseException], rootpath: Path) -> Place | None:
    """Return the innermost line of the user's own code, None where there is none."""
    for entry in reversed(excinfo.traceback):
        path = Path(entry.path)
        if rootpath in path.parents and not _is_foreign(path):
            return Place(path=path, line=entry.lineno + 1)
    return None


def _is_foreign(path: Path) -> bool:
    """Tell whether a file is the package's or is installed: an environment may lie below the root of the tests."""
    return PACKAGE in path.parents or _STANDARD_LIBRARY in path.parents or not _INSTALLED.isdisjoint(path.parts)
