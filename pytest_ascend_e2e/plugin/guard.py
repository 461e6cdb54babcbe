"""The closing check: a session is never green because something did not happen.

Red are: a session with an asked-for runner in which no case ran, and a collected test without a result (an xdist worker that
died without a word, a report that could not be sent). Must not know: why a case is red; that is told with the case.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from ..report import PlanRow, device_hours
from .results import message_of

if TYPE_CHECKING:
    from .state import State  # which holds a Guard

SHOWN = 5

# What travels with a report: that its test is a case, why it is off, each repeated attempt, and each that another plugin repeated,
# in plan mode the plan.
CASE_PROPERTY = "e2e_tier"
QUARANTINE_PROPERTY = "e2e_quarantine"
RETRIED_PROPERTY = "e2e_retried"
RERUN_PROPERTY = "e2e_rerun"
PLAN_PROPERTY = "e2e_plan"
PLAN_ROW_PROPERTY = "e2e_plan_row"


@dataclass(kw_only=True, slots=True)
class Guard:
    """Counts what was collected, what began, what has a result, which cases ran and which are red; `notes` are of this host."""

    collected: set[str] = field(default_factory=set)
    begun: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    cases: set[str] = field(default_factory=set)
    ran: set[str] = field(default_factory=set)
    planned: list[str] = field(default_factory=list)
    retried: list[str] = field(default_factory=list)
    rerun: list[str] = field(default_factory=list)
    rows: list[PlanRow] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def unfinished(self, config: pytest.Config) -> dict[str, str]:
        """Return the tests that were to run and did not end, each with how far it came."""
        silent = () if config.getoption("collectonly") else sorted(self.collected - self.finished)
        return {nodeid: "was running" if nodeid in self.begun else "had not begun" for nodeid in silent}

    def saw_report(self, report: pytest.TestReport) -> None:
        """Count a report: a test is finished by its teardown or its worker's crash; a case ran when its training was reached."""
        if report.when not in ("setup", "call"):
            self.finished.add(report.nodeid)
            self.retried += [f"{report.nodeid}: {value}" for name, value in report.user_properties if name == RETRIED_PROPERTY]
            self.planned += [str(value) for name, value in report.user_properties if name == PLAN_PROPERTY]
            self.rows += [PlanRow.from_text(str(value)) for name, value in report.user_properties if name == PLAN_ROW_PROPERTY]
        if str(report.outcome) == "rerun":  # what pytest-rerunfailures makes of a failure that it repeats
            self.rerun.append(f"{report.nodeid}: {message_of(report)}")
        if any(name == CASE_PROPERTY for name, _ in report.user_properties):
            self.cases.add(report.nodeid)
            if report.failed:
                self.failures.setdefault(report.nodeid, report.longreprtext)
            is_skipped = report.skipped and not hasattr(report, "wasxfail")  # what was expected to fail did run
            if (report.when == "call" and not is_skipped) or (report.when == "setup" and report.failed):
                self.ran.add(report.nodeid)


def close(session: pytest.Session, state: State) -> None:
    """Turn the session red where something did not happen; a session that is red already needs no more."""
    config, guard = session.config, state.guard
    if config.getoption("collectonly") or session.exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return
    silent = list(guard.unfinished(config))
    if silent:
        more = f" and {len(silent) - SHOWN} more" if len(silent) > SHOWN else ""
        guard.problems.append(f"{len(silent)} collected test(s) without a result: {', '.join(silent[:SHOWN])}{more}")
    asked_for = state.found["runner"].source in (state.found["runner"].option.flag, state.found["runner"].option.variable)
    if asked_for and not state.is_plan and not guard.ran:
        guard.problems.append(
            f"no case ran on {state.settings.runner}: {len(guard.cases)} case(s) selected, all skipped; -rs shows why"
        )
    if state.is_plan and not guard.planned:
        guard.problems.append("no case was planned: the selection holds none")
    budget = state.settings.budget_device_hours
    if state.is_plan and budget is not None and device_hours(guard.rows) > budget:
        guard.problems.append(
            f"the cases are estimated at {device_hours(guard.rows):.4g} device-hours, more than the budget of {budget:g} "
            f"({state.found['budget'].source})"
        )
    if guard.problems:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def tell(terminalreporter: pytest.TerminalReporter, state: State) -> None:
    """Print what was repeated, whatever came of it, and why the closing check made the session red."""
    for line in state.guard.retried:
        terminalreporter.write_line(f"repeated after a failure of the machine: {line}", yellow=True)
    for line in state.guard.rerun:
        terminalreporter.write_line(f"repeated by another plugin after a failure of whatever kind: {line}", yellow=True)
    for problem in state.guard.problems:
        terminalreporter.write_line(f"ascend-e2e: {problem}", red=True, bold=True)
