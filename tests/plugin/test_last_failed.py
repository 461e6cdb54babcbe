"""`--lf` takes what failed last, also where sessions came between that ran nothing of it."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import PLAIN_AND_XDIST, Host

CASES = """
@npu_nightly(runner='toy-2', recipe=recipe(steps=2))
def test_green(run): run.check_completed()

@npu_nightly(runner='toy-2', recipe=recipe(steps=2, env={'FAKE_TRAINER': 'nan@2'}))
def test_red(run): run.check_completed()
"""
MENDED = CASES.replace("nan@2", "")


def session(host: Host, *args: str) -> pytest.RunResult:
    return host.pytester.runpytest_inprocess("--lf", *args)


@PLAIN_AND_XDIST
def test_what_failed_is_repeated_until_it_passes(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(CASES)
    session(host, "--runner", "toy-2", *workers).assert_outcomes(passed=1, failed=1)

    session(host, "--runner", "toy-2", *workers).assert_outcomes(failed=1)
    host.cases(MENDED)
    session(host, "--runner", "toy-2", *workers).assert_outcomes(passed=1)
    session(host, "--runner", "toy-2", *workers).assert_outcomes(passed=2)


@PLAIN_AND_XDIST
@pytest.mark.parametrize("between", [("--runner", "sim-2"), ("--runner", "toy-2", "--e2e-plan")], ids=["elsewhere", "plan"])
def test_a_session_that_ran_nothing_of_it_forgets_no_failure(
    host: Host, workers: tuple[str, ...], between: tuple[str, ...]
) -> None:
    host.cases(CASES)
    session(host, "--runner", "toy-2").assert_outcomes(passed=1, failed=1)

    session(host, *between, *workers).assert_outcomes(skipped=1)

    session(host, "--runner", "toy-2").assert_outcomes(failed=1)


def test_a_failure_that_is_expected_now_is_forgotten(host: Host) -> None:
    host.cases(CASES)
    session(host, "--runner", "toy-2").assert_outcomes(passed=1, failed=1)
    host.cases(CASES.replace("def test_red", "@pytest.mark.xfail\ndef test_red").replace("\n@npu", "\nimport pytest\n@npu", 1))

    expected = session(host, "--runner", "toy-2")

    expected.assert_outcomes(xfailed=1)
    assert expected.ret == pytest.ExitCode.OK
    session(host, "--runner", "toy-2").assert_outcomes(passed=1, xfailed=1)
