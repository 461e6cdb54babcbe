"""Attempts: what the machine ended is repeated and told, what the training did is not."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pytest_ascend_e2e.records import RunRecord
from tests.plugin.conftest import PLAIN_AND_XDIST, Host


def case(host: Host, fault: str) -> None:
    host.cases(
        f"@npu_nightly(runner='toy-2', recipe=recipe(steps=8, env={{'FAKE_TRAINER': '{fault}'}}))\n"
        "def test_case(run): run.check_rewards()\n"
    )


def records(host: Host) -> list[dict[str, object]]:
    found = sorted((host.pytester.path / "runs").glob("*/record.json"), key=lambda path: path.stat().st_mtime)
    return sorted((json.loads(path.read_text()) for path in found), key=lambda record: str(record["started_at"]))


@PLAIN_AND_XDIST
def test_a_training_that_the_machine_ended_is_repeated_and_both_attempts_are_told(host: Host, workers: tuple[str, ...]) -> None:
    case(host, "memory-once@3")
    xml = host.pytester.path / "junit.xml"

    result = host.run("--runner", "toy-2", "--e2e-retries", "1", f"--junitxml={xml}", *workers)

    result.assert_outcomes(passed=1)
    first, second = records(host)
    assert first["retried_as"] == second["run_id"]
    assert second["retried_as"] == ""
    told = "training failed: host-oom (infra): ray.exceptions.OutOfMemoryError"
    assert f"repeated after a failure of the machine: test_cases.py::test_case: {told}" in result.stdout.str()
    properties = {node.attrib["name"]: node.attrib["value"] for node in ET.parse(xml).iter("property")}  # noqa: S314  # our own file
    assert properties["test_cases.py::test_case:e2e_retried"].startswith(told)
    assert properties["test_cases.py::test_case:e2e_run_dir"] == second["run_dir"]


def test_the_last_attempt_decides(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    case(host, "memory@3")

    result = host.run("--runner", "toy-2", "--e2e-retries", "2")

    result.assert_outcomes(failed=1)
    assert len(records(host)) == 3
    assert result.stdout.str().count("repeated after a failure of the machine") == 2
    (warning,) = [line for line in result.stdout.str().splitlines() if line.startswith("::warning ")]
    assert warning.count("host-oom (infra)") == 2
    assert "training failed: host-oom (infra)" in result.stdout.str()


@pytest.mark.parametrize("fault", ["crash@3", "flat", "nan@3", "stop@3"])
def test_what_the_training_did_is_never_repeated(host: Host, fault: str) -> None:
    case(host, fault)

    result = host.run("--runner", "toy-2", "--e2e-retries", "2")

    result.assert_outcomes(failed=1)
    assert len(records(host)) == 1


def test_nothing_is_repeated_unasked(host: Host) -> None:
    case(host, "memory-once@3")

    host.run("--runner", "toy-2").assert_outcomes(failed=1)

    assert len(records(host)) == 1


def test_a_number_of_retries_that_is_none_is_refused(host: Host) -> None:
    case(host, "flat")

    result = host.run("--runner", "toy-2", "--e2e-retries", "-1")

    assert "--e2e-retries: '-1' cannot be used: expected a whole number from 0" in result.stderr.str()
    assert not Path(host.pytester.path / "runs").exists()


AGAIN = """
import pytest
from _pytest.runner import runtestprotocol

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for is_last in (False, False, True):
        item._initrequest()
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            is_repeated = report.failed and not is_last
            report.outcome = 'rerun' if is_repeated else report.outcome
            item.ihook.pytest_runtest_logreport(report=report)
            if is_repeated:
                break
        else:
            break
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True

def pytest_report_teststatus(report):
    if report.outcome == 'rerun': return 'rerun', 'R', 'RERUN'
"""


@PLAIN_AND_XDIST
def test_of_a_case_that_another_plugin_repeats_the_last_attempt_decides_and_each_is_told(
    host: Host, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    host.pytester.makeconftest(AGAIN)
    host.cases("""
import itertools

attempt = itertools.count(1)

@npu_nightly(runner='toy-2', recipe=recipe(steps=2))
def test_flaky(run):
    number = next(attempt)
    run.check_rewards(minimum=99 if number == 1 else None, trend=None)
    assert number != 2, f'attempt {number}'
""")

    result = host.run("--runner", "toy-2", "--e2e-report=report", *workers)

    assert result.ret == pytest.ExitCode.OK
    told = "repeated by another plugin after a failure of whatever kind: test_cases.py::test_flaky:"
    result.stdout.fnmatch_lines([f"{told} *checks failed, first rewards.*", f"{told} AssertionError: attempt 2"])
    first, second, third = (RunRecord.from_json(json.dumps(record), origin="record.json") for record in records(host))
    assert [check.name for check in first.failed_checks] == ["rewards.level"]
    assert [check.name for check in second.failed_checks] == ["test.body"]
    assert third.is_passed
    (warning,) = [line for line in result.stdout.lines if line.startswith("::warning ")]
    assert "first rewards." in warning
    assert "attempt 2" in warning
    report = host.pytester.path / "report"
    assert len(list(report.glob("runs/*/record.json"))) == 3
    assert "| `test_flaky` | ✅ passed | toy-2 | 2 |" in (report / "summary.md").read_text()
