"""Plan mode: every case is judged where it would have trained, and then stopped.

No device is taken and no training starts. The configurations of all cases are composed together, in one child process, when the
first case is judged. The plan of a case travels as text in its report, so that it is the same under xdist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import pytest

from ..errors import E2EError, PreflightError
from ..history import History
from ..launch import Command
from ..preflight import Plan
from ..recipe import SFT, Recipe
from ..report import PlanRow, plan_table, plan_text
from ..runners import Runner
from ..session import Bench, Case, findings_here
from .guard import PLAN_PROPERTY, PLAN_ROW_PROPERTY
from .markers import CASE_KEY, QUARANTINE_KEY
from .state import State, environment

# So many plans can be read one by one; of more, the table and what is wrong.
SHOWN_IN_FULL = 3


def plan_case(item: pytest.Item, case: Case, recipe: Recipe | SFT, state: State) -> NoReturn:
    """Judge one recipe of a case on every runner it may run on, keep the text, and stop the test.

    Raises:
        PreflightError: the case cannot work on one of its runners.
    """
    _compose_suite(item, state)
    problems: list[str] = []
    layouts: list[str] = []
    for name in runners_of(case, state):
        row = _plan_on(name, item, case, recipe, state)
        layouts.append(row.layout)
        problems += [f"on {name}: {problem}" for problem in row.problems]
    if problems:
        raise PreflightError(*problems)
    pytest.skip(f"planned, not trained: {'; '.join(layouts)}")


def runners_of(case: Case, state: State) -> Sequence[str]:
    """Return the runners that a case is judged on: the session's, or all of its own."""
    return case.runners if state.runner is None else (state.runner.name,)


def _plan_on(name: str, item: pytest.Item, case: Case, recipe: Recipe | SFT, state: State) -> PlanRow:
    """Judge a recipe on one runner and keep what a reader wants of it."""
    runner = case.share_of(state.catalogue.get(name))
    bench = _bench(runner, item, state)
    plan, command, problems = _judged(bench, case, recipe)
    layout = None if plan is None or plan.layout is None else str(plan.layout)
    composed = False if plan is None else plan.composed
    warnings = () if plan is None else plan.warnings
    if plan is not None and (runner.simulated or name == state.here):
        problems = (*problems, *bench.input_problems(recipe))
    elif plan is not None:
        warnings = (*warnings, *bench.input_doubts(recipe))
    text = plan_text(
        case.name,
        runner=name,
        devices=runner.devices,
        nodes=case.nodes,
        layout=layout,
        problems=problems,
        warnings=warnings,
        composed=composed,
        argv=() if command is None else command.argv,
        environment={} if command is None else command.env,
    )
    item.user_properties.append((PLAN_PROPERTY, text))
    history = state.settings.history
    measured_s = None if history is None else History(history).typical_duration(case.name, name)
    off = item.stash.get(QUARANTINE_KEY, None)
    verdict = "cannot work" if problems else "can work"
    row = PlanRow(
        case=case.name,
        runner=name,
        devices=runner.devices * case.nodes,
        nodes=case.nodes,
        hours=(measured_s or case.estimate_s or 0.0) / 3600,
        is_measured=measured_s is not None,
        layout="-" if layout is None else layout,
        verdict=verdict if off is None else f"{verdict}, off until {off.until.isoformat()}",
        is_composed=composed is not None,
        problems=problems,
        warnings=warnings,
    )
    item.user_properties.append((PLAN_ROW_PROPERTY, row.to_text()))
    return row


def _judged(bench: Bench, case: Case, recipe: Recipe | SFT) -> tuple[Plan | None, Command | None, tuple[str, ...]]:
    """Return plan, command and problems; it comes to no plan where the runner cannot train such a thing at all."""
    try:
        plan, command = bench.plan(case, recipe)
    except PreflightError as error:
        return None, None, error.problems
    return plan, command, tuple(plan.problems)


def _bench(runner: Runner, item: pytest.Item, state: State) -> Bench:
    return Bench(
        settings=state.settings,
        runner=runner,
        environ=environment(),
        test_file=item.path,
        rerun="",
        compositions=state.compositions,
    )


def _compose_suite(item: pytest.Item, state: State) -> None:
    """Compose the configurations of all cases of the session at once: a child for each would start as often as there are cases."""
    if state.is_suite_composed:
        return
    state.is_suite_composed = True
    requests = []
    for other in item.session.items:
        case = other.stash.get(CASE_KEY, None)
        if case is None or case.recipe is None or not is_served(case, state):
            continue
        for name in runners_of(case, state):
            try:
                requests.append(_bench(case.share_of(state.catalogue.get(name)), other, state).draft(case, case.recipe).request)
            except E2EError:
                continue  # told when the case itself is judged
    state.compositions.prepare(requests)


def is_served(case: Case, state: State) -> bool:
    """Tell whether this session's runner serves a case."""
    return state.runner is None or state.is_elsewhere or state.runner.name in case.runners


def look_at_host(state: State) -> None:
    """Note what is missing on this host for the runners that were planned for and that it is, each thing once."""
    planned = {row.runner: state.catalogue.get(row.runner) for row in state.guard.rows}
    found = {}
    for name, runner in planned.items():
        if not (runner.simulated or name == state.here):
            continue
        try:
            found.update({str(finding): finding for finding in findings_here(runner, state.settings, environment())})
        except E2EError as error:
            state.guard.problems += [f"this host: {problem}" for problem in error.problems]
    state.guard.problems += [f"this host: {text}" for text, finding in found.items() if finding.is_error]
    state.guard.notes += [f"this host: {text}" for text, finding in found.items() if not finding.is_error]


def write_plans(terminalreporter: pytest.TerminalReporter, state: State) -> None:
    """Print the plans of all cases in the order in which they were judged, and the table of them."""
    texts, rows = state.guard.planned, state.guard.rows
    if not texts:
        return
    terminalreporter.section("plan")
    is_full = len(texts) <= SHOWN_IN_FULL or terminalreporter.config.get_verbosity() > 0
    for text in texts:
        shown = text if is_full else _remarks(text)
        if shown:
            terminalreporter.write_line(shown)
            terminalreporter.write_line("")
    for note in state.guard.notes:
        terminalreporter.write_line(note)
    for line in plan_table(rows, budget_device_hours=state.settings.budget_device_hours) if rows else ():
        terminalreporter.write_line(line)
    broken = sum(row.verdict.startswith("cannot work") for row in rows)
    terminalreporter.write_line(f"{len(texts)} planned, {broken} cannot work; no device was taken, nothing was trained")


def problems_of_plan(report: pytest.TestReport) -> str:
    """Return how many problems the plan tells of a test that failed by them, empty where it is another report."""
    if not report.failed:
        return ""
    rows = [PlanRow.from_text(str(value)) for name, value in report.user_properties if name == PLAN_ROW_PROPERTY]
    told = [f"{_count(row)} on {row.runner}" for row in rows if row.problems]
    return f"cannot work, by {' and '.join(told)}; the plan below tells" if told else ""


def _count(row: PlanRow) -> str:
    count = len(row.problems)
    return "1 problem" if count == 1 else f"{count} problems"


def _remarks(text: str) -> str:
    """Return the head of a plan with its problems and warnings, empty where it has none."""
    head, *lines = text.splitlines()
    remarks = [line for line in lines if line.startswith(("  problem: ", "  warning: "))]
    return "\n".join([head, *remarks]) if remarks else ""
