"""Every concluded run goes into the history, green or red, plain and under xdist; where it cannot, the test is red."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.history import History
from tests.plugin.conftest import PLAIN_AND_XDIST, Host

CASES = """
@npu_nightly(runner='toy-2', recipe=recipe(steps=8))
def test_one(run): run.check_completed()

@npu_nightly(runner='toy-2', recipe=recipe(steps=8, env={'FAKE_TRAINER': 'nan@4'}))
def test_two(run): run.check_completed()
"""


@PLAIN_AND_XDIST
def test_each_run_is_kept_with_its_verdict(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(CASES)

    host.run("--runner", "toy-2", *workers).assert_outcomes(passed=1, failed=1)

    kept = {
        record.case.rpartition("::")[2]: record for record in History(host.pytester.path / "e2e-runs" / "history.sqlite").runs()
    }
    assert {name: record.is_passed for name, record in kept.items()} == {"test_one": True, "test_two": False}
    assert kept["test_one"].device == "Ascend910B"


def test_a_run_whose_test_failed_by_itself_is_no_green_run(host: Host) -> None:
    host.cases(
        "@npu_nightly(runner='toy-2', recipe=recipe(steps=8))\n"
        "def test_one(run):\n    run.check_completed()\n    assert run.record.last_step == 9, 'too short'\n"
    )

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(failed=1)
    assert "checks failed" not in result.stdout.str(), "the body's own error is the report"
    (kept,) = History(host.pytester.path / "e2e-runs" / "history.sqlite").runs()
    (body,) = [check for check in kept.checks if check.is_failed]
    assert (body.name, kept.is_passed) == ("test.body", False)
    assert "AssertionError: too short" in body.message
    assert [asked.group for asked in kept.asked] == ["completed"]


def test_a_history_that_cannot_be_written_makes_the_test_red(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = host.root / "broken"
    broken.mkdir()
    monkeypatch.setenv("ASCEND_E2E_HISTORY", str(broken))
    host.cases(CASES.partition("@npu_nightly(runner='toy-2', recipe=recipe(steps=8, env")[0])

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(failed=1)
    assert "the run is not in the history" in result.stdout.str()
    assert "Traceback" not in result.stdout.str()
