"""What a session hands to programs that are no pytest: its settings, its cases, and what was found of them, as a JSON file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ..errors import E2EError
from ..files import write_whole
from ..history import History
from ..report import Suite
from ..session import SuiteCase
from .markers import CASE_KEY, QUARANTINE_KEY
from .state import State, today


def export(session: pytest.Session, state: State) -> None:
    """Write the file that `--e2e-export` names, if it names one; a session that collected nothing still leaves one."""
    path: Path | None = session.config.getoption("e2e_export")
    if path is None:
        return
    guard = state.guard
    suite = Suite(
        settings=state.settings.to_plain(),
        cases=tuple(_cases(session.items, state)),
        rows=tuple(guard.rows),
        failures=guard.failures,
        problems=tuple(guard.problems),
        notes=tuple(guard.notes),
    )
    try:
        write_whole(path, suite.to_json())
    except E2EError as error:
        guard.problems.append(f"--e2e-export: {error}")
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def _cases(items: Sequence[pytest.Item], state: State) -> Iterator[SuiteCase]:
    history = None if state.settings.history is None else History(state.settings.history)
    for item in items:
        case = item.stash.get(CASE_KEY, None)
        if case is not None:
            yield SuiteCase.of(case, off=_off(item), history=history)


def _off(item: pytest.Item) -> str:
    """Return why a case is off; one whose quarantine is over counts as one that runs, as it is red then."""
    quarantine = item.stash.get(QUARANTINE_KEY, None)
    return "" if quarantine is None or quarantine.is_over(today()) else str(quarantine)
