"""Plan mode: every case is judged where it would have trained, and then stopped.

No device is taken and no training starts. The plan of a case travels as text in its report, so that it is the same under xdist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import pytest

from ..errors import PreflightError
from ..recipe import Recipe
from ..report import plan_text
from ..session import Bench, Case
from .guard import PLAN_PROPERTY
from .state import State, environment


def plan_case(item: pytest.Item, case: Case, recipe: Recipe, state: State) -> NoReturn:
    """Judge one recipe of a case on every runner it may run on, keep the text, and stop the test.

    Raises:
        PreflightError: the case cannot work on one of its runners.
    """
    names = [state.runner.name] if state.runner is not None else list(case.runners)
    problems: list[str] = []
    layouts: list[str] = []
    for name in names:
        runner = state.catalogue.get(name)
        bench = Bench(settings=state.settings, runner=runner, environ=environment(), test_file=item.path, rerun="")
        plan, command = bench.plan(case, recipe)
        layouts.append(str(plan.layout))
        text = plan_text(
            case.name,
            runner=name,
            devices=runner.devices,
            nodes=case.nodes,
            layout=None if plan.layout is None else str(plan.layout),
            problems=plan.problems,
            warnings=plan.warnings,
            composed=plan.composed,
            argv=command.argv,
            environment=command.env,
        )
        item.user_properties.append((PLAN_PROPERTY, text))
        problems += [f"{case.name} on {name}: {problem}" for problem in plan.problems]
    if problems:
        raise PreflightError(*problems)
    pytest.skip(f"planned, not trained: {'; '.join(layouts)}")


def write_plans(terminalreporter: pytest.TerminalReporter, texts: Sequence[str]) -> None:
    """Print the plans of all cases, in the order in which they were judged."""
    if not texts:
        return
    terminalreporter.section("plan")
    for text in texts:
        terminalreporter.write_line(text)
        terminalreporter.write_line("")
    broken = sum(text.splitlines()[0].endswith(": cannot work") for text in texts)
    terminalreporter.write_line(f"{len(texts)} planned, {broken} cannot work; no device was taken, nothing was trained")
