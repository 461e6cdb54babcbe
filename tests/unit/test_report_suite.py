"""The file of a suite: read as it was written, and refused where it is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ascend_e2e.errors import RecordError
from pytest_ascend_e2e.history import History
from pytest_ascend_e2e.report import Suite
from pytest_ascend_e2e.session import Case, SuiteCase, Tier
from tests.fakes.reports import green_run

CASE = Case(name="tests/test_a.py::test_case", tier=Tier.NIGHTLY, runners=("a3-16", "sim-2"), estimate_s=3600.0)


def test_a_suite_is_read_as_it_was_written(tmp_path: Path) -> None:
    given = Suite(
        cases=(SuiteCase.of(CASE, off="quarantined", history=None),), failures={"tests/test_b.py::test_b": "no"}, problems=("red",)
    )
    (tmp_path / "suite.json").write_text(given.to_json())

    assert Suite.read(tmp_path / "suite.json") == given


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '"x"', '{"schema": 1}', '{"schema": 1, "cases": [{"case": "a"}]}', '{"schema": 2}']
)
def test_a_file_that_is_no_suite_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "cases.json").write_text(text)

    with pytest.raises(RecordError, match=r"cases\.json: "):
        Suite.read(tmp_path / "cases.json")


def test_a_case_is_expected_to_take_as_long_as_it_did_on_that_runner(tmp_path: Path) -> None:
    history = History(tmp_path / "history.sqlite")
    history.add([green_run(tmp_path, case=CASE.name, runner="a3-16", duration_s=1234.0)])

    assert SuiteCase.of(CASE, off="", history=history).expected_s == {"a3-16": 1234.0, "sim-2": 3600.0}
