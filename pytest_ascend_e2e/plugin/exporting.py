"""What a session hands to programs that are no pytest: its settings, its cases, and what was found of them, as a JSON file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ..report import Suite, SuiteCase
from .markers import CASE_KEY
from .state import State


def export(session: pytest.Session, state: State) -> None:
    """Write the file that `--e2e-export` names, if it names one; a session that collected nothing still leaves one."""
    path: Path | None = session.config.getoption("e2e_export")
    if path is None:
        return
    guard = state.guard
    suite = Suite(
        settings=state.settings.to_plain(),
        cases=tuple(_cases(session)),
        rows=tuple(guard.rows),
        failures=guard.failures,
        problems=tuple(guard.problems),
        notes=tuple(guard.notes),
    )
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(suite.to_json(), encoding="utf-8")
    temporary.replace(path)


def _cases(session: pytest.Session) -> list[SuiteCase]:
    cases = [item.stash.get(CASE_KEY, None) for item in session.items]
    return [
        SuiteCase(
            case=case.name,
            tier=case.tier.value,
            runners=case.runners,
            nodes=case.nodes,
            model="" if case.recipe is None else case.recipe.model,
            dataset="" if case.recipe is None else case.recipe.dataset,
        )
        for case in cases
        if case is not None
    ]
