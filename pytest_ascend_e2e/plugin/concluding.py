"""The end of a test that trained: its runs are judged, recorded and reported, whichever way its body ended."""

from __future__ import annotations

import pytest

from ..report import failure_text, properties, retried_line
from ..session import Run
from .fixtures import RUNS_KEY
from .guard import RETRIED_PROPERTY
from .outcomes import CaseFailed


def conclude(item: pytest.Item, *, is_body_passed: bool) -> None:
    """Write the records and properties of the test's runs; raise with the whole report if one is red.

    Where the body itself failed, its own error stays the outcome and the report of the runs stands beside it.

    Raises:
        CaseFailed: a training failed, a check failed, or a run was judged by nothing.
    """
    texts = []
    number = 0
    runs: list[Run] = item.stash.get(RUNS_KEY, [])
    for run in runs:
        record = run.conclude(is_body_passed=is_body_passed)
        if record.retried_as:
            item.user_properties.append((RETRIED_PROPERTY, retried_line(record)))
            continue
        number += 1
        item.user_properties += properties(record, run_number=number)
        if not record.is_passed:
            texts.append(failure_text(record))
    if not texts:
        return
    if is_body_passed:
        raise CaseFailed("\n\n".join(texts))
    item.add_report_section("call", "training", "\n\n".join(texts))
