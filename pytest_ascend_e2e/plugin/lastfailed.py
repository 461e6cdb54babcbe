"""`--lf` across sessions: pytest forgets a failure when its test is skipped, and a plan or another runner skips a case.

Such a session says nothing of the failure, so that it stays one.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

import pytest

from .guard import CASE_PROPERTY

# Where pytest keeps the failures of earlier sessions by node id (https://docs.pytest.org/en/stable/how-to/cache.html).
KEY = "cache/lastfailed"


class LastFailed:
    """Keeps the failures of cases that were skipped; of use in the process that sees every report."""

    def __init__(self, cache: pytest.Cache) -> None:
        self._cache = cache
        self._before: Mapping[str, object] = {}
        self._skipped: set[str] = set()

    def pytest_sessionstart(self) -> None:
        """Remember what had failed."""
        self._before = self._cache.get(KEY, {})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a case that was skipped; one that was expected to fail did run."""
        is_case = any(name == CASE_PROPERTY for name, _ in report.user_properties)
        if is_case and report.skipped and not hasattr(report, "wasxfail"):
            self._skipped.add(report.nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Add to what pytest has kept what it forgot."""
        result = yield
        forgotten = {nodeid: failed for nodeid, failed in self._before.items() if nodeid in self._skipped}
        if forgotten:
            self._cache.set(KEY, {**forgotten, **self._cache.get(KEY, {})})
        return result
