"""The reports of many jobs as one: valid, each case once, and a case that did not report makes it red."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import junitparser
import pytest
import xmlschema

from pytest_ascend_e2e.cli import main
from pytest_ascend_e2e.report import Merged, Outcome, Suite, merge_junit
from pytest_ascend_e2e.session import SuiteCase

XUNIT2 = Path(__file__).parent.parent / "data" / "xunit2.xsd"
CASE = SuiteCase(
    case="", tier="npu_nightly", runners=("a3-16",), nodes=1, model="", dataset="", rollout="vllm", timeout_s=None,
    expected_s={"a3-16": 1800.0},
)  # fmt: skip
GREEN = '<testcase classname="tests.test_a" name="{}" time="1.000"><system-out>[[ATTACHMENT|log]]</system-out></testcase>'
SKIPPED = '<testcase classname="tests.test_a" name="{}" time="0.000"><skipped message="needs a3-16"/></testcase>'
RED = '<testcase classname="tests.test_a" name="{}" time="2.000"><failure message="2 of 9 checks failed">text</failure></testcase>'
LOST = '<testcase classname="tests.test_a" name="{}" time="0.000"><error message="unfinished">was running</error></testcase>'


def junit(*cases: str) -> bytes:
    counts = f'errors="0" failures="0" skipped="0" tests="{len(cases)}"'
    properties = '<properties><property name="tests/test_a.py::test_one:e2e_run_dir" value="r/1"/></properties>'
    return f'<testsuites><testsuite name="pytest" {counts}>{properties}{"".join(cases)}</testsuite></testsuites>'.encode()


def expected(*names: str) -> list[SuiteCase]:
    return [replace(CASE, case=f"tests/test_a.py::{name}") for name in names]


def merged(*files: bytes, names: tuple[str, ...] = ("test_one", "test_two")) -> Merged:
    return merge_junit([(f"job{number}/junit.xml", data) for number, data in enumerate(files)], expected(*names))


def read_back(found: Merged, tmp_path: Path) -> dict[str, str]:
    """Return the outcomes as junitparser reads them, of a file that the schema accepts."""
    path = tmp_path / "junit.xml"
    path.write_bytes(found.junit)
    xmlschema.XMLSchema(str(XUNIT2)).validate(str(path))
    suites = list(junitparser.JUnitXml.fromfile(str(path)))
    assert all(suite.tests == len(list(suite)) for suite in suites)
    assert all(suite.errors + suite.failures + suite.skipped == sum(bool(case.result) for case in suite) for suite in suites)
    return {case.name: type(case.result[0]).__name__ if case.result else "passed" for suite in suites for case in suite}


def test_all_that_reported_is_in_one_file(tmp_path: Path) -> None:
    found = merged(junit(GREEN.format("test_one")), junit(GREEN.format("test_two")))

    assert read_back(found, tmp_path) == {"test_one": "passed", "test_two": "passed"}
    assert not found.is_red
    assert found.cases[0].properties == {"run_dir": "r/1"}


@pytest.mark.parametrize(("red", "result"), [(RED, "Failure"), (LOST, "Error")])
def test_a_red_case_makes_it_red(tmp_path: Path, red: str, result: str) -> None:
    found = merged(junit(GREEN.format("test_one")), junit(red.format("test_two")))

    assert read_back(found, tmp_path)["test_two"] == result
    assert found.is_red


def test_a_case_that_vanished_is_an_error(tmp_path: Path) -> None:
    found = merged(junit(GREEN.format("test_one")))

    assert read_back(found, tmp_path) == {"test_one": "passed", "test_two": "Error"}
    assert found.is_red
    assert found.problems == ("tests.test_a.test_two: not reported: no job reported it",)


def test_a_case_that_its_job_skipped_is_an_error_and_there_once(tmp_path: Path) -> None:
    found = merged(junit(GREEN.format("test_one"), SKIPPED.format("test_two")))

    assert found.problems == ("tests.test_a.test_two: not reported: its job skipped it: needs a3-16",)
    assert read_back(found, tmp_path)["test_two"] == "Error"
    assert [case.name for case in found.cases].count("test_two") == 1


def test_a_case_that_is_off_may_be_missing() -> None:
    off = [replace(case, off="quarantined until 2027-01-31") for case in expected("test_off")]

    found = merge_junit([("junit.xml", junit(GREEN.format("test_one")))], [*expected("test_one"), *off])

    assert not found.is_red


def test_a_case_that_one_job_skipped_and_another_ran_is_there_once(tmp_path: Path) -> None:
    found = merged(junit(GREEN.format("test_one"), SKIPPED.format("test_two")), junit(GREEN.format("test_two")))

    assert read_back(found, tmp_path) == {"test_one": "passed", "test_two": "passed"}
    assert not found.is_red


def test_a_file_and_its_copy_are_one_report() -> None:
    both = junit(GREEN.format("test_one"), GREEN.format("test_two"))

    found = merged(both, both)

    assert not found.is_red
    assert found.reports == ("job0/junit.xml",)


def test_a_case_that_two_jobs_ran_is_a_problem() -> None:
    found = merged(junit(GREEN.format("test_one"), GREEN.format("test_two")), junit(RED.format("test_two")))

    assert found.problems == ("tests.test_a.test_two: reported by 2 jobs, and may run in one",)
    assert [case.outcome for case in found.cases] == [Outcome.PASSED, Outcome.FAILED]


def test_jobs_that_were_killed_before_they_knew_their_cases_are_red_each_and_are_no_case_of_two_jobs() -> None:
    killed = (
        '<testcase classname="" name="pytest-collection" time="0.000"><error message="unfinished">was running</error></testcase>'
    )
    found = merged(junit(killed), junit(killed), names=("test_one",))

    assert found.problems == ("tests.test_a.test_one: not reported: no job reported it",)
    assert found.is_red


def test_the_command_writes_file_and_summary_and_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reports" / "job").mkdir(parents=True)
    (tmp_path / "reports" / "job" / "junit.xml").write_bytes(junit(GREEN.format("test_one"), RED.format("test_two")))
    (tmp_path / "reports" / "coverage.xml").write_text("<coverage/>")
    (tmp_path / "cases.json").write_text(Suite(cases=tuple(expected("test_one", "test_two", "test_gone"))).to_json())
    page = tmp_path / "page.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    words = ["merge", str(tmp_path / "reports"), "--cases", str(tmp_path / "cases.json"), "--output", str(tmp_path / "out")]

    status = main(words)

    assert status == 1
    told = capsys.readouterr()
    assert "junit.xml: 1 passed, 1 failed, 1 error" in told.out
    assert "tests.test_a.test_gone: not reported: no job reported it" in told.err
    assert page.read_text() == (tmp_path / "out" / "summary.md").read_text()
    assert "**`test_two`**: 2 of 9 checks failed" in page.read_text()


def test_without_the_list_of_cases_the_command_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", str(tmp_path), "--cases", str(tmp_path / "none.json")]) == 2

    assert "without the list of cases nobody knows what is missing" in capsys.readouterr().err


def run_merge(tmp_path: Path, *names: str, **files: bytes) -> int:
    """Run the command on jobs with these JUnit files, into a directory below that of the jobs."""
    for job, data in files.items():
        (tmp_path / "reports" / job).mkdir(parents=True, exist_ok=True)
        (tmp_path / "reports" / job / "junit.xml").write_bytes(data)
    (tmp_path / "cases.json").write_text(Suite(cases=tuple(expected(*names))).to_json())
    output = tmp_path / "reports" / "merged"
    return main(["merge", str(tmp_path / "reports"), "--cases", str(tmp_path / "cases.json"), "--output", str(output)])


@pytest.mark.parametrize(
    ("bad", "told"), [(b"<testsuites><testsuite", "not XML"), (b"", "not XML"), (b"<coverage/>", "XML with the root 'coverage'")]
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_merged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: bytes, told: str
) -> None:
    status = run_merge(tmp_path, "test_one", good=junit(GREEN.format("test_one")), bad=bad)

    assert status == 1
    errors = capsys.readouterr().err
    assert f"bad/junit.xml: {told}" in errors
    assert "test_one" not in errors
    assert b'name="test_one"' in (tmp_path / "reports" / "merged" / "junit.xml").read_bytes()


OF_ANOTHER_SHAPE = (
    '{"schema": 1, "checks": [], "diagnosis": null, "ending": "exited", "device_ids": [], "problems": [], "host": []}'
)


@pytest.mark.parametrize("text", ["{", OF_ANOTHER_SHAPE, "[" * 100_000], ids=["cut-off", "of-another-shape", "nested"])
def test_a_record_that_cannot_be_read_is_named_and_the_report_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "reports" / "job" / "runs" / "r").mkdir(parents=True)
    (tmp_path / "reports" / "job" / "runs" / "r" / "record.json").write_text(text)

    status = run_merge(tmp_path, "test_one", job=junit(GREEN.format("test_one")))

    assert status == 1
    assert "record.json" in capsys.readouterr().err
    assert (tmp_path / "reports" / "merged" / "report.html").is_file()


def test_merging_again_reads_nothing_of_the_merge_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statuses = [run_merge(tmp_path, "test_one", job=junit(GREEN.format("test_one"))) for _ in range(2)]

    assert statuses == [0, 0]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("output", [".", "reports", "reports/job", "reports/merged", "elsewhere"])
def test_wherever_a_merge_is_written_the_reports_of_jobs_are_read_and_kept(tmp_path: Path, output: str) -> None:
    assert run_merge(tmp_path, "test_one", a=junit(GREEN.format("test_one"))) == 0
    words = ["merge", str(tmp_path / "reports"), "--cases", str(tmp_path / "cases.json"), "--output", str(tmp_path / output)]

    assert [main(words), main(words)] == [0, 0]


def test_the_report_of_a_job_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = junit(GREEN.format("test_one"))
    run_merge(tmp_path, "test_one", job=report)
    words = ["merge", str(tmp_path / "reports"), "--cases", str(tmp_path / "cases.json")]

    assert main([*words, "--output", str(tmp_path / "reports" / "job")]) == 2

    assert "job/junit.xml is what a job reported, and would be overwritten: choose" in capsys.readouterr().err
    assert (tmp_path / "reports" / "job" / "junit.xml").read_bytes() == report


@pytest.mark.parametrize(("name", "data"), [("nightly.xml", b""), ("junit.xml", None)])
def test_an_empty_file_and_one_that_cannot_be_opened_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes | None
) -> None:
    bad = tmp_path / "reports" / "bad" / name
    bad.parent.mkdir(parents=True)
    if data is None:
        bad.symlink_to("gone.xml")
    else:
        bad.write_bytes(data)

    assert run_merge(tmp_path, "test_one", good=junit(GREEN.format("test_one"))) == 1

    told = capsys.readouterr()
    assert f"{bad}: " in told.err
    assert "junit.xml: 1 passed" in told.out


def test_a_failure_and_the_error_of_its_teardown_are_of_one_job(tmp_path: Path) -> None:
    teardown = '<testcase classname="tests.test_a" name="test_one" time="0.000"><error message="teardown">text</error></testcase>'
    found = merged(junit(RED.format("test_one"), teardown), names=("test_one",))

    assert found.problems == ()
    assert [case.outcome for case in found.cases] == [Outcome.FAILED]
    assert read_back(found, tmp_path)
    assert found.junit.count(b'message="2 of 9 checks failed"') == found.junit.count(b'message="teardown"') == 1


def test_a_test_that_failed_as_expected_reported(tmp_path: Path) -> None:
    expected_failure = (
        '<testcase classname="tests.test_a" name="test_one" time="0.000"><skipped type="pytest.xfail" message="x"/></testcase>'
    )
    found = merged(junit(expected_failure), names=("test_one",))

    assert not found.is_red
    assert read_back(found, tmp_path) == {"test_one": "Skipped"}


def test_a_workflow_that_had_nothing_to_run_is_not_green(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "reports").mkdir()

    assert run_merge(tmp_path) == 1

    assert "no case was to run in this workflow" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_or_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "merged").write_text("a file")

    assert run_merge(tmp_path, "test_one") == 2
    assert main(["merge", str(tmp_path / "nowhere"), "--cases", str(tmp_path / "cases.json")]) == 2

    first, second = capsys.readouterr().err.splitlines()
    assert "cannot be written" in first
    assert "nowhere: no directory" in second
