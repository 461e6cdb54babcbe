"""How the tests of a session ended, in the one process that sees every report: what the reports of the session are made from.

Must not know: what is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ..nodeids import parts_of
from ..report import PREFIX, Outcome, ReportedCase, address_of, expected_failure, own_properties

LINE_PROPERTY = "e2e_line"


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """One test: `path` and `line` (from 1) are where it failed, else where it stands; the path is from the session's root."""

    nodeid: str
    outcome: Outcome
    message: str
    path: str
    line: int
    time_s: float
    properties: Mapping[str, str]

    def as_case(self) -> ReportedCase:
        """Return it as a JUnit file would tell it."""
        return ReportedCase(
            address=address_of(self.nodeid),
            outcome=self.outcome,
            message=self.message,
            origin="this session",
            time_s=self.time_s,
            properties=self.properties,
        )


@dataclass(kw_only=True, slots=True)
class Results:
    """The results by node id, in the order of their first reports."""

    found: dict[str, Result] = field(default_factory=dict)

    def saw_report(self, report: pytest.TestReport) -> None:
        """Add what a phase of a test says: a failure of any phase is one of the test, and the first one is told."""
        path, line, _ = report.location
        known = self.found.get(report.nodeid) or Result(
            nodeid=report.nodeid, outcome=Outcome.PASSED, message="", path=path, line=(line or 0) + 1, time_s=0.0, properties={}
        )
        own = own_properties(report.user_properties)
        result = replace(known, time_s=known.time_s + report.duration, properties=own)
        outcome = _outcome(report)
        if outcome is not Outcome.PASSED and not known.outcome.is_red:
            result = replace(result, outcome=outcome, message=message_of(report), line=_line(report, own) or result.line)
        self.found[report.nodeid] = result

    def saw_collected(self, report: pytest.CollectReport) -> None:
        """Add a file that could not be collected; with xdist each worker tells of it."""
        if report.failed and report.nodeid:
            self.found[report.nodeid] = Result(
                nodeid=report.nodeid,
                outcome=Outcome.ERROR,
                message=f"cannot be collected: {message_of(report)}",
                path=parts_of(report.nodeid)[0],
                line=getattr(getattr(report.longrepr, "reprcrash", None), "lineno", 0) or 1,
                time_s=0.0,
                properties={},
            )

    def close(self, unfinished: Mapping[str, str]) -> None:
        """Add the tests that the session did not end, each with how far it came; of one that is red already that stays told."""
        for nodeid, state in unfinished.items():
            known = self.found.get(nodeid) or Result(
                nodeid=nodeid, outcome=Outcome.PASSED, message="", path=parts_of(nodeid)[0], line=1, time_s=0.0, properties={}
            )
            if not known.outcome.is_red:
                self.found[nodeid] = replace(known, outcome=Outcome.UNFINISHED, message=f"{state} when the session ended")

    def cases(self) -> list[ReportedCase]:
        """Return all of them as a JUnit file would tell them."""
        return [result.as_case() for result in self.found.values()]


def _outcome(report: pytest.TestReport) -> Outcome:
    """Return the outcome of a phase; one that another plugin repeats ("rerun") decides nothing yet."""
    if report.failed:
        return Outcome.FAILED if report.when == "call" else Outcome.ERROR
    if report.skipped:
        return expected_failure(_xfail_reason(report)) if hasattr(report, "wasxfail") else Outcome.SKIPPED
    return Outcome.PASSED


def message_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the one line that says why a test failed or was skipped, or a file was not collected."""
    if report.skipped and hasattr(report, "wasxfail"):
        return _xfail_reason(report)
    told: Any = report.longrepr
    if isinstance(told, tuple):
        return str(told[2]).removeprefix("Skipped: ")
    crash = getattr(told, "reprcrash", None)
    lines = (str(told) if crash is None else str(crash.message)).strip().splitlines()
    # An error of an import has only its text, in which pytest marks the lines of the exception.
    marked = [line.removeprefix("E").strip() for line in lines if line.startswith("E  ")]
    return next(iter([*marked[-1:], *lines]), "")


def _xfail_reason(report: Any) -> str:
    """Return why a test is expected to fail, as pytest's JUnit file has it."""
    return str(report.wasxfail).removeprefix("reason: ")


def _line(report: pytest.TestReport, properties: Mapping[str, str]) -> int | None:
    """Return the line of the test's own file at which it failed, None where it did not fail there."""
    of_check = properties.get(LINE_PROPERTY.removeprefix(PREFIX))
    if of_check is not None:
        return int(of_check)
    told: Any = report.longrepr
    for entry in reversed(getattr(getattr(told, "reprtraceback", None), "reprentries", ())):
        place = getattr(entry, "reprfileloc", None)
        if place is not None and str(place.path).endswith(report.location[0]):
            return int(place.lineno)
    return None
