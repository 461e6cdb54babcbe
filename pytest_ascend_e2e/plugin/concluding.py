"""The end of a test that trained: its runs are judged, recorded and reported, whichever way its body ended."""

from __future__ import annotations

import pytest

from ..report import failure_text, properties
from ..session import Run
from .fixtures import RUNS_KEY
from .outcomes import CaseFailed


def conclude(item: pytest.Item, *, is_body_passed: bool) -> None:
    """Write the records and properties of the test's runs; raise with the whole report if one is red.

    Where the body itself failed, its own error stays the outcome and the report of the runs stands beside it.

    Raises:
        CaseFailed: a training failed, a check failed, or a run was judged by nothing.
    """
    texts = []
    runs: list[Run] = item.stash.get(RUNS_KEY, [])
    for number, run in enumerate(runs, start=1):
        record = run.conclude(is_body_passed=is_body_passed)
        item.user_properties += properties(record, run_number=number)
        if not record.is_passed:
            texts.append(failure_text(record))
    if not texts:
        return
    if is_body_passed:
        raise CaseFailed("\n\n".join(texts))
    item.add_report_section("call", "training", "\n\n".join(texts))
