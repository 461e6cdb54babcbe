"""Which cases run where, and that a session in which none ran is red."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.conftest import PLAIN_AND_XDIST, Host

CASES = """
@npu_nightly(runner='toy-2', recipe=recipe(steps=3))
def test_small(run): run.check_completed()

@npu_nightly(runner='toy-4', recipe=recipe(steps=3))
def test_large(run): run.check_completed()
"""


@PLAIN_AND_XDIST
def test_a_case_of_another_runner_is_skipped_with_the_reason(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(CASES)

    result = host.run("--runner", "toy-2", "-rs", *workers)

    result.assert_outcomes(passed=1, skipped=1)
    assert "needs toy-4 (4 devices); this session runs on toy-2" in result.stdout.str()


@PLAIN_AND_XDIST
def test_a_session_with_a_runner_in_which_no_case_ran_is_red(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(CASES)

    result = host.run("--runner", "toy-2", "-k", "test_large", *workers)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "no case ran on toy-2: 1 case(s) selected, all skipped" in result.stdout.str()


def test_without_a_runner_it_is_found_from_the_devices(host: Host) -> None:
    host.cases(CASES)

    result = host.run("-v")

    result.assert_outcomes(passed=1, skipped=1)
    assert "runner: toy-2 (found 2 NPUs)" in result.stdout.str()


def test_an_unknown_runner_is_a_usage_error_that_names_its_source(host: Host) -> None:
    host.cases(CASES)

    result = host.run("--runner", "toy-22")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--runner" in result.stderr.str()
    assert "toy-2" in result.stderr.str()
    assert "Traceback" not in result.stderr.str()


def test_a_setting_that_cannot_be_used_names_the_variable(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cases(CASES)
    monkeypatch.setenv("ASCEND_E2E_RUN_TIMEOUT", "soon")

    result = host.run()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        "ASCEND_E2E_RUN_TIMEOUT: 'soon' cannot be used: expected a positive duration such as 90, 15m or 2h" in result.stderr.str()
    )


def test_the_flag_stands_above_the_variable(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cases(CASES)
    monkeypatch.setenv("ASCEND_E2E_RUNNER", "toy-4")

    result = host.run("--runner", "toy-2", "--collect-only")

    assert "runner: toy-2 (--runner)" in result.stdout.str()
    assert result.stdout.str().count("(--runner)") == 1


@pytest.mark.skipif(any(Path("/dev").glob("davinci*")), reason="needs a host without NPUs")
def test_the_runner_of_a_host_without_npus_and_why_stand_once_in_the_header(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cases("def test_plain(): pass\n")
    monkeypatch.setenv("PATH", "/nowhere")

    result = host.run("--collect-only")

    assert "runner: sim-2 (no NPU on this host: npu-smi is not on PATH" in result.stdout.str()


@PLAIN_AND_XDIST
def test_a_collected_test_without_a_result_is_red(host: Host, workers: tuple[str, ...]) -> None:
    host.cases("def test_swallowed(): pass\ndef test_told(): pass\n")
    host.pytester.makeconftest(
        "import pytest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    return True if item.name == 'test_swallowed' else None\n"
    )

    result = host.run(*workers)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "1 collected test(s) without a result: test_cases.py::test_swallowed" in result.stdout.str()


def test_a_host_whose_npus_are_hidden_is_not_simulated_unasked(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cases(CASES)
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "")

    result = host.run()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "nothing is simulated unasked" in result.stderr.str()
    assert "Traceback" not in result.stderr.str()
