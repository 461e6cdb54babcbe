"""The cases of a selection as a file: what `ascend-e2e matrix` and `ascend-e2e workflow` make a CI from.

Written by `pytest --collect-only --e2e-list FILE`; a case whose quarantine is over counts as one that runs, as it is red then.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import pytest

from ..session import listed, listed_text
from .markers import CASE_KEY, QUARANTINE_KEY


def write_list(items: Sequence[pytest.Item], path: Path, today: dt.date) -> None:
    """Write what the collected cases need of a CI; tests that are no cases are left out."""
    found = []
    for item in items:
        case = item.stash.get(CASE_KEY, None)
        if case is None:
            continue
        quarantine = item.stash.get(QUARANTINE_KEY, None)
        found.append(listed(case, quarantine, is_off=quarantine is not None and not quarantine.is_over(today)))
    path.write_text(listed_text(found), encoding="utf-8")
