"""What a session leaves for a CI: the page of the job, annotations, a directory to upload, attachments in the JUnit file."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import junitparser
import pytest
import xmlschema

from tests.plugin.conftest import PLAIN_AND_XDIST, Host

XUNIT2 = Path(__file__).parent.parent / "data" / "xunit2.xsd"
CASES = """
from pytest_ascend_e2e import quarantine

@npu_nightly(runner='toy-2', recipe=recipe(steps=2))
def test_green(run): run.check_completed()

@npu_nightly(runner='toy-2', recipe=recipe(steps=2, env={'FAKE_TRAINER': 'nan@2'}))
def test_red(run):
    run.check_throughput(report_only=True)
    run.check_completed()

@quarantine(reason='flakes', owner='me', issue='#1', until='2999-01-01')
@npu_nightly(runner='toy-2', recipe=recipe(steps=2))
def test_off(run): pass

def test_plain():
    value = 1
    assert value == 2, "a, b: 100%"
"""


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


@PLAIN_AND_XDIST
def test_a_ci_gets_a_page_annotations_and_a_directory(
    host: Host, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    path = host.cases(CASES)
    page = host.root / "page.md"
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(host.pytester.path.parent))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))

    result = host.run("--runner", "toy-2", "--e2e-report", "report", *workers)

    result.assert_outcomes(passed=1, failed=2, skipped=1)
    text = result.stdout.str()
    place = f"{host.pytester.path.name}/test_cases.py"
    check, body = line_of(path, "    run.check_completed()"), line_of(path, "    assert value == 2")
    assert f"::error file={place},line={check},title=test_red%3A failed::2 of " in text
    assert f"::error file={place},line={body},title=test_plain%3A failed::AssertionError: a, b: 100%25" in text
    told = page.read_text()
    assert told.startswith("before\n## End-to-end tests on toy-2")
    assert "| `test_green` | ✅ passed | toy-2 | 2 | 0." in told
    assert "- repeat: `pytest test_cases.py::test_red --runner toy-2`" in told
    report = host.pytester.path / "report"
    assert (report / "summary.md").read_text() == told.removeprefix("before\n")
    assert len(list(report.glob("runs/*/record.json"))) == 2
    assert not list(report.glob("runs/*/outputs"))
    again = host.run("--runner", "toy-2", "--e2e-from", "report", "--collect-only", "-q")
    again.stdout.fnmatch_lines(["test_cases.py::test_red", "test_cases.py::test_plain"])
    again.stdout.no_fnmatch_line("*test_green*")


def test_the_junit_file_of_the_report_is_that_which_was_asked_for(host: Host) -> None:
    host.cases(CASES)

    host.run("--runner", "toy-2", "--e2e-report", "report", "--junitxml=asked.xml", "-k", "plain or off")

    assert (host.pytester.path / "report" / "junit.xml").read_bytes() == (host.pytester.path / "asked.xml").read_bytes()


def test_without_a_ci_nothing_is_annotated(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cases(CASES)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    assert "::error" not in host.run("--runner", "toy-2", "-k", "plain").stdout.str()


@pytest.mark.parametrize(("family", "workers"), [("xunit2", ("-n2",)), ("xunit1", ())])
def test_the_files_of_a_run_are_attached_in_both_forms(host: Host, family: str, workers: tuple[str, ...]) -> None:
    host.cases(CASES)
    xml = host.pytester.path / "junit.xml"

    options = (f"--junitxml={xml}", "-o", f"junit_family={family}", "-o", "junit_logging=all", "-k", "not green")
    host.run("--runner", "toy-2", *options, *workers)

    suite = next(iter(junitparser.JUnitXml.fromfile(str(xml))))
    cases = {case.name: case for case in suite}
    assert {name: type(case.result[0]).__name__ if case.result else "passed" for name, case in cases.items()} == {
        "test_red": "Failure", "test_off": "Skipped", "test_plain": "Failure",
    }  # fmt: skip
    lines = [line for line in (cases["test_red"].system_out or "").splitlines() if line.startswith("[[ATTACHMENT|")]
    paths = [Path(line.removeprefix("[[ATTACHMENT|").removesuffix("]]")) for line in lines]
    assert [path.name for path in paths] == ["train.log", "metrics.jsonl", "record.json"]
    assert all((host.pytester.path / path).is_file() for path in paths)
    assert "[[ATTACHMENT" not in (cases["test_plain"].system_out or "")
    named = ET.parse(xml).iter("property")  # noqa: S314  # our own file
    name = "test_cases.py::test_red:attachment" if family == "xunit2" else "attachment"
    values = [node.attrib["value"] for node in named if node.attrib["name"] == name]
    assert set(map(str, paths)) <= set(values)
    if family == "xunit2":
        xmlschema.XMLSchema(str(XUNIT2)).validate(str(xml))


def test_a_case_that_is_off_is_marked(host: Host) -> None:
    host.cases(CASES)
    xml = host.pytester.path / "junit.xml"

    host.run("--runner", "toy-2", f"--junitxml={xml}", "-k", "off")

    properties = {node.attrib["name"]: node.attrib["value"] for node in ET.parse(xml).iter("property")}  # noqa: S314  # our own file
    assert properties["test_cases.py::test_off:e2e_quarantine"].startswith("quarantined until 2999-01-01 by me: flakes")


def test_a_plan_has_a_page_too(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cases(CASES)
    page = host.root / "page.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))

    host.run("--runner", "toy-2", "--e2e-plan", "-k", "green")

    assert "| `test_cases.py::test_green` | toy-2 | 2 | - | FSDP2 SP1: dp 2 on 2 devices | ✅ can work |" in page.read_text()


def test_what_else_makes_a_plan_red_is_on_its_page(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cases(CASES)
    host.pytester.makepyfile(test_broken="import nothing_of_this_name")
    page = host.root / "page.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))

    host.run("--runner", "toy-2", "--e2e-plan", "-k", "green", "--continue-on-collection-errors", "--e2e-budget", "0.001")

    told = page.read_text()
    assert "`test_broken`**: cannot be collected: ModuleNotFoundError: " in told
    assert "| `test_cases.py::test_green` |" in told


@PLAIN_AND_XDIST
def test_a_file_that_cannot_be_collected_is_on_the_page(
    host: Host, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    host.pytester.makepyfile(test_broken="import nothing_of_this_name")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")

    result = host.run("--e2e-report", "report", "--runner", "toy-2", *workers)

    told = "cannot be collected: ModuleNotFoundError: No module named 'nothing_of_this_name'"
    assert f"test_broken.py,line=1,title=test_broken.py%3A error::{told}" in result.stdout.str()
    assert "1 error" in (host.pytester.path / "report" / "summary.md").read_text()


@PLAIN_AND_XDIST
def test_a_green_session_says_once_where_its_runs_lie(host: Host, workers: tuple[str, ...]) -> None:
    case = "@npu_nightly(runner='toy-2', recipe=recipe(steps=2))\ndef test_{name}(run): run.check_completed()\n\n"
    host.cases(case.format(name="one") + case.format(name="two"))

    both = host.run("--runner", "toy-2", *workers).stdout.str()
    one = host.run("--runner", "toy-2", "-k", "two", *workers).stdout.str()

    assert both.count("e2e report") == both.count("runs: runs; see them: ascend-e2e report runs\n") == 1
    (found,) = re.findall(r"^run: (runs/test_two-\S+); see it: ascend-e2e report \1$", one, re.MULTILINE)
    assert (host.pytester.path / found / "record.json").is_file()


def test_a_session_that_trained_nothing_names_no_runs(host: Host) -> None:
    host.cases("def test_plain(): pass\n")

    assert "see them" not in host.run().stdout.str()


@PLAIN_AND_XDIST
def test_a_directory_that_cannot_be_written_is_refused_at_the_start(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(CASES)
    host.pytester.path.joinpath("taken").touch()

    result = host.run("--runner", "toy-2", "--e2e-report", "taken/report", *workers)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --e2e-report: */taken/report/summary.md: cannot be written: *"])
    assert "Traceback" not in result.stderr.str()
    assert not host.pytester.path.joinpath("runs").exists()


def test_a_directory_that_cannot_be_written_is_told_with_where_it_was_given(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cases(CASES)
    host.pytester.path.joinpath("taken").touch()
    monkeypatch.setenv("ASCEND_E2E_REPORT", "taken")

    host.run("--runner", "toy-2").stderr.fnmatch_lines(["ERROR: ASCEND_E2E_REPORT: */taken/summary.md: cannot be written: *"])


def test_a_report_without_the_plugin_for_junit_files(host: Host) -> None:
    host.cases(CASES)

    result = host.run("-p", "no:junitxml", "--runner", "toy-2", "--e2e-report", "report", "-k", "green")

    assert result.ret == pytest.ExitCode.OK
    report = host.pytester.path / "report"
    assert (report / "report.html").is_file()
    assert not (report / "junit.xml").exists()


def test_a_report_that_cannot_be_ended_makes_the_session_red(host: Host) -> None:
    host.cases("def test_plain(): import pathlib; pathlib.Path('report/report.html').mkdir()\n")

    result = host.run("--e2e-report", "report")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "ascend-e2e: the report is not whole: " in result.stdout.str()
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


INTERRUPTED = """
@npu_nightly(runner='toy-2', recipe=recipe(steps=2))
def test_first(run):
    run.check_completed()
    raise KeyboardInterrupt

@npu_nightly(runner='toy-2', recipe=recipe(steps=2))
def test_second(run): run.check_completed()
"""


def test_the_run_of_an_interrupted_test_is_kept_and_its_page_calls_nothing_passed(host: Host) -> None:
    host.cases(INTERRUPTED)

    host.pytester.runpytest_subprocess("-p", "no:cacheprovider", "--runner", "toy-2", "--e2e-report", "report")

    report = host.pytester.path / "report"
    assert len(list(report.glob("runs/test_first-*/train.log"))) == 1
    page = (report / "summary.md").read_text()
    assert "2 unfinished" in page
    assert "**`test_first`**: was running when the session ended" in page
    assert "**`test_second`**: had not begun when the session ended" in page


def test_a_test_that_is_interrupted_in_its_setup_was_running(host: Host) -> None:
    host.cases(
        "import pytest\n\n@pytest.fixture\ndef trained(): pytest.exit('enough')\n\n"
        "def test_first(trained): pass\n\ndef test_second(): pass\n"
    )

    host.pytester.runpytest_subprocess("-p", "no:cacheprovider", "--e2e-report", "report")

    page = (host.pytester.path / "report" / "summary.md").read_text()
    assert "**`test_first`**: was running when the session ended" in page
    assert "**`test_second`**: had not begun when the session ended" in page


def test_the_run_of_a_test_whose_worker_crashed_is_kept_and_no_other(host: Host) -> None:
    host.cases(CASES)
    host.run("--runner", "toy-2", "-k", "green").assert_outcomes(passed=1)
    host.cases(INTERRUPTED.replace("raise KeyboardInterrupt", "__import__('os')._exit(3)"))

    host.pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "--runner", "toy-2", "-n1", "--e2e-report", "report", "-k", "first"
    )

    report = host.pytester.path / "report"
    assert [path.parent.name.partition("-")[0] for path in report.glob("runs/*/train.log")] == ["test_first"]
    assert "test_first" in (report / "report.html").read_text()


@PLAIN_AND_XDIST
def test_a_run_that_cannot_be_kept_stays_where_it_is_and_the_session_goes_on(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(
        "@npu_nightly(runner='toy-2', recipe=recipe(steps=2))\n"
        "def test_first(run):\n"
        "    run.check_completed()\n"
        "    __import__('pathlib').Path('report/runs').write_text('in the way')\n\n"
        "def test_second(): pass\n"
    )

    result = host.run("--runner", "toy-2", "--e2e-report", "report", *workers)

    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in result.stdout.str()
    result.stdout.fnmatch_lines(
        ["ascend-e2e: --e2e-report: */runs/test_first-*: cannot be kept: *; it stays in */runs/test_first-*"]
    )
    assert "[[ATTACHMENT|runs/test_first-" in (host.pytester.path / "report" / "junit.xml").read_text()


def test_an_interrupted_run_that_cannot_be_kept_costs_the_report_nothing_else(host: Host) -> None:
    host.cases(
        INTERRUPTED.replace("    raise KeyboardInterrupt", "    open('report/runs', 'w').close()\n    raise KeyboardInterrupt")
    )

    result = host.pytester.runpytest_subprocess("-p", "no:cacheprovider", "--runner", "toy-2", "--e2e-report", "report")

    text = result.stdout.str()
    assert "ascend-e2e: the report is not whole: --e2e-report: " in text
    assert "cannot be kept: " in text
    assert all((host.pytester.path / "report" / name).is_file() for name in ("junit.xml", "summary.md", "report.html"))


@PLAIN_AND_XDIST
def test_a_test_that_another_plugin_repeats_is_told_and_counts_once(host: Host, workers: tuple[str, ...]) -> None:
    host.pytester.makeconftest(
        "import pytest\n"
        "@pytest.hookimpl(wrapper=True)\n"
        "def pytest_runtest_makereport(item, call):\n"
        "    report = yield\n"
        "    if report.when == 'call' and report.failed: report.outcome = 'rerun'\n"
        "    return report\n"
        "def pytest_report_teststatus(report):\n"
        "    if report.outcome == 'rerun': return 'rerun', 'R', 'RERUN'\n"
    )
    host.pytester.makepyfile("def test_flaky(): assert 1 == 2\n")

    result = host.run("--e2e-report", "report", *workers)

    assert "INTERNALERROR" not in result.stdout.str()
    assert "repeated by another plugin after a failure of whatever kind: " in result.stdout.str()
    assert "test_flaky: " in result.stdout.str()


def test_an_export_that_cannot_be_written_makes_the_session_red(host: Host) -> None:
    host.cases(CASES)
    host.pytester.path.joinpath("taken").touch()

    result = host.run("--runner", "toy-2", "-k", "green", "--e2e-export", "taken/suite.json")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["ascend-e2e: --e2e-export: */taken/suite.json: cannot be written: *"])
    assert "INTERNALERROR" not in result.stdout.str()
