"""What happens to cases while tests are collected: the marker is checked, the case kept, other runners' cases skipped."""

from __future__ import annotations

import datetime as dt

import pytest

from ..errors import E2EError, RunnerError
from ..session import Case, run_limit, wait_limit
from .calls import refuse_wrong_calls
from .guard import CASE_PROPERTY, QUARANTINE_PROPERTY
from .markers import CASE_KEY, QUARANTINE_KEY, case_of, quarantine_of
from .planning import is_served, plan_case
from .state import State, state_of


def check_marker(metafunc: pytest.Metafunc) -> None:
    """Read the marker of a test function before its items exist.

    Raises:
        E2EError: the marker has a wrong argument, or names a runner that nobody knows.
    """
    definition = metafunc.definition
    case = case_of(definition, definition.nodeid)
    quarantine_of(definition, definition.nodeid)
    if case is None:
        return
    catalogue = state_of(metafunc.config).catalogue
    problems = []
    for name in case.runners:
        try:
            runner = catalogue.get(name)
            if case.devices is not None and case.devices > runner.devices:
                raise RunnerError(
                    f"devices={case.devices}: the runner {name} has {runner.devices}; take fewer, or name a larger one"
                )
        except E2EError as error:
            problems += [f"@{case.tier.value} of {case.name}: {problem}" for problem in error.problems]
    if problems:
        raise E2EError(*problems)


def keep_case(item: pytest.Item) -> None:
    """Keep the case with its item; a nightly case gets the marker `nightly` before -m looks at it."""
    if not isinstance(item, pytest.Function):
        return
    case = case_of(item, item.nodeid)
    if case is None:
        return
    item.stash[CASE_KEY] = case
    quarantine = quarantine_of(item, item.nodeid)
    if quarantine is not None:
        item.stash[QUARANTINE_KEY] = quarantine
        item.user_properties.append((QUARANTINE_PROPERTY, str(quarantine)))
    item.user_properties.append((CASE_PROPERTY, case.tier.value))
    if case.tier.value == "npu_nightly":
        item.add_marker("nightly")
    if item.get_closest_marker("timeout") is None:
        state = state_of(item.config)
        settings = state.settings
        runs = 3 if state.is_confirm else 1  # the run and its two repeats
        limit_s = runs * run_limit(case, settings)[0] + wait_limit(case, settings) + PREPARATION_S
        item.add_marker(pytest.mark.timeout(limit_s, method="signal"))


# What preparing a dataset and a tiny model may take before the deadlines of the training itself begin.
PREPARATION_S = 1800.0


def skip_other_runners(items: list[pytest.Item], state: State) -> None:
    """Give every case that this session's runner does not serve a skip with the reason."""
    for item in items:
        case = item.stash.get(CASE_KEY, None)
        if case is not None and not is_served(case, state):
            item.add_marker(pytest.mark.skip(reason=_not_served(case, state)))


def _not_served(case: Case, state: State) -> str:
    needs = " or ".join(f"{name} ({case.share_of(state.catalogue.get(name)).devices} devices)" for name in case.runners)
    name = "no runner" if state.runner is None else state.runner.name
    return f"needs {needs}; this session runs on {name} ({state.runner_origin})"


def plan_at_setup(item: pytest.Item, state: State) -> None:
    """In plan mode, judge a case with a recipe before anything is set up; a test that is no case is skipped."""
    if not state.is_plan:
        return
    case = item.stash.get(CASE_KEY, None)
    if case is None:
        pytest.skip("not a case: nothing to plan")
    if not is_served(case, state):
        pytest.skip(_not_served(case, state))
    look_at_calls(item)
    if case.recipe is not None:
        plan_case(item, case, case.recipe, state)


def look_at_calls(item: pytest.Item) -> None:
    """Refuse a case whose test calls a check in a way that cannot succeed.

    Raises:
        E2EError: with one text for each call.
    """
    if item.stash.get(CASE_KEY, None) is not None:
        refuse_wrong_calls(item)


def keep_off(item: pytest.Item, state: State, today: dt.date) -> None:
    """Skip a case in quarantine; one whose quarantine is over is red, in a plan too.

    Raises:
        E2EError: the last day of the quarantine has passed.
    """
    quarantine = item.stash.get(QUARANTINE_KEY, None)
    if quarantine is None:
        return
    if quarantine.is_over(today):
        raise E2EError(f"{item.nodeid}: {quarantine}, and that day has passed: mend the case, or decide anew with its owner")
    if not state.is_plan:
        pytest.skip(str(quarantine))
