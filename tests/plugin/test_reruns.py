"""`--e2e-from`: the cases of an earlier session, taken from its JUnit file or its runs by one command."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from tests.plugin.conftest import PLAIN_AND_XDIST, Host

# Which of them are taken is no matter of training.
CASES = """
def test_green(): pass

def test_red(): assert False, 'as ever'

@npu_nightly(runner='toy-4', recipe=recipe(steps=2))
def test_elsewhere(run): run.check_completed()
"""
TRAINED = CASES.replace(
    "def test_red(): assert False, 'as ever'",
    "@npu_nightly(runner='toy-2', recipe=recipe(steps=2, env={'FAKE_TRAINER': 'nan@2'}))\ndef test_red(run): run.check_completed()",
)


def earlier(host: Host, cases: str = CASES) -> Path:
    """Run the cases once, and return the JUnit file of that session, kept where no other file is."""
    host.cases(cases)
    xml = host.root / "ci" / "junit.xml"
    host.run("--runner", "toy-2", f"--junitxml={xml}").assert_outcomes(passed=1, failed=1, skipped=1)
    return xml


def test_the_failed_training_of_a_junit_file_or_of_run_directories_is_repeated(host: Host) -> None:
    xml = earlier(host, TRAINED)

    by_file = host.run("--runner", "toy-2", f"--e2e-from={xml}")
    by_runs = host.run("--runner", "toy-2", "--e2e-from", "runs")

    by_file.assert_outcomes(failed=1, deselected=2)
    by_file.stdout.fnmatch_lines(
        [
            "repeat: pytest test_cases.py::test_red --runner toy-2",  # which does not name the file
            "test_cases.py::test_red: failed there, failed here",
            "  there: 2 of * checks failed, first completed.finite: *",
        ]
    )
    assert "elsewhere" not in by_file.stdout.str()
    by_runs.assert_outcomes(failed=1, deselected=2)


@PLAIN_AND_XDIST
def test_the_failed_case_of_a_junit_file_is_taken(host: Host, workers: tuple[str, ...]) -> None:
    xml = earlier(host)

    result = host.run("--runner", "toy-2", f"--e2e-from={xml}", *workers)

    result.assert_outcomes(failed=1, deselected=0 if workers else 2)
    result.stdout.fnmatch_lines(["test_cases.py::test_red: failed there, failed here", "  there: *as ever*"])


@PLAIN_AND_XDIST
def test_all_or_named_cases_are_taken(host: Host, workers: tuple[str, ...]) -> None:
    xml = earlier(host)
    take = ("--runner", "toy-2", f"--e2e-from={xml}", *workers, "--e2e-take")

    host.run(*take, "all").assert_outcomes(passed=1, failed=1, skipped=1)
    host.run(*take, "test_gr*").assert_outcomes(passed=1, deselected=0 if workers else 2)


@PLAIN_AND_XDIST
def test_what_was_expected_to_fail_is_told_alike_there_and_here(host: Host, workers: tuple[str, ...]) -> None:
    host.cases("""
import pytest

@pytest.mark.xfail(reason='known')
def test_known(): assert False

def test_called(): pytest.xfail('found out')

@pytest.mark.xfail(reason='hangs', run=False)
def test_not_run(): assert False
""")
    host.run("--e2e-report=report")

    result = host.run("--e2e-from=report", "--e2e-take=all", "--e2e-report=again", *workers)

    result.stdout.fnmatch_lines(
        [
            "test_cases.py::test_called: xfailed there, xfailed here",
            "test_cases.py::test_known: xfailed there, xfailed here",
            "test_cases.py::test_not_run: skipped there, skipped here",
        ]
    )
    assert "2 xfailed, 1 skipped" in (host.pytester.path / "again" / "summary.md").read_text()


def test_a_case_is_found_from_another_directory(host: Host) -> None:
    xml = earlier(host)
    sub = host.pytester.mkdir("moved")
    shutil.move(host.pytester.path / "test_cases.py", sub / "test_cases.py")

    result = host.run("--runner", "toy-2", f"--e2e-from={xml}")

    result.stdout.fnmatch_lines(["moved/test_cases.py::test_red: failed there, failed here"])


@PLAIN_AND_XDIST
def test_a_case_that_is_gone_makes_the_session_red(host: Host, workers: tuple[str, ...]) -> None:
    xml = earlier(host)
    host.cases(CASES.replace("test_red", "test_renamed"))

    result = host.run("--runner", "toy-2", f"--e2e-from={xml}", "--e2e-take", "all", *workers)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*1 of 3 case(s) of * are not in this session: test_cases.test_red; they were not collected*"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--e2e-from", "nowhere"), "--e2e-from: 'nowhere' cannot be used: no such file or directory"),
        (("--e2e-take", "all"), "--e2e-take: 'all' is to be taken from nowhere: give the earlier session by --e2e-from"),
        (("--e2e-elsewhere",), "--e2e-elsewhere needs to know where: give a runner by --runner"),
        (("--e2e-from", "empty"), "empty: holds neither a JUnit file nor the record of a run"),
        (("--e2e-from", "green.xml"), "nothing of * is to be repeated (1 passed); --e2e-take all takes all"),
        (("--e2e-from", "killed.xml"), "nothing of * is to be repeated (its session was killed before it had collected a case)"),
        (("--e2e-from", "odd.xml"), "odd.xml: a repeat command in it is none of ours: No closing quotation; name the case itself"),
        (("--e2e-from", "green.xml", "--e2e-take", "test_b"), "--e2e-take: 'test_b' is no case of *green.xml; it has test_a"),
    ],
)
def test_what_cannot_be_taken_is_told_before_anything_runs(host: Host, arguments: tuple[str, ...], told: str) -> None:
    host.cases(CASES)
    host.pytester.mkdir("empty")
    (host.pytester.path / "green.xml").write_text(
        '<testsuites><testsuite><testcase classname="x" name="test_a"/></testsuite></testsuites>'
    )
    (host.pytester.path / "odd.xml").write_text(
        '<testsuites><testsuite><testcase classname="x" name="test_a"><properties><property name="e2e_repeat" value="pytest \'x"/>'
        "</properties><failure/></testcase></testsuite></testsuites>"
    )
    (host.pytester.path / "killed.xml").write_text(
        '<testsuites><testsuite><testcase classname="" name="pytest-collection"><error message="unfinished"/></testcase>'
        "</testsuite></testsuites>"
    )

    result = host.run(*arguments)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{told.replace('[', '[[]')}*"])
    assert "Traceback" not in result.stderr.str()


def test_a_report_elsewhere_is_written_in_one_word_with_its_flag(host: Host) -> None:
    # pytest has lost its ini file then, and with it the runners of this host.
    host.cases(CASES)
    xml = host.root / "junit.xml"
    xml.write_text(
        '<testsuites><testsuite><testcase classname="test_cases" name="test_red"><error/></testcase></testsuite></testsuites>'
    )

    result = host.run("--runner", "sim-2", "--e2e-from", str(xml))

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--e2e-from {xml}: write --e2e-from={xml}, as one word: *"])


def test_a_case_of_another_runner_is_repeated_where_it_is_asked_for_and_says_so(host: Host) -> None:
    xml = earlier(host)
    text = xml.read_text().replace(
        "<testcase ",
        '<properties><property name="test_cases.py::test_elsewhere:e2e_runner" value="toy-4"/></properties><testcase ',
        1,
    )
    xml.write_text(text)

    result = host.run(
        "--runner",
        "toy-2",
        f"--e2e-from={xml}",
        "--e2e-take",
        "test_elsewhere",
        "--e2e-elsewhere",
        "--e2e-history",
        "history.db",
    )

    result.assert_outcomes(passed=1, deselected=2)
    result.stdout.fnmatch_lines(
        ["test_cases.py::test_elsewhere: skipped there, passed here", "  elsewhere than it ran: runner toy-4 -> toy-2"]
    )
    (record,) = (host.pytester.path / "runs").glob("test_elsewhere*/record.json")
    told = json.loads(record.read_text())
    assert told["changed"] == ["runner=toy-2"]
    assert told["rerun_command"].endswith("--runner toy-2 --e2e-history history.db --e2e-elsewhere")
    assert not (host.pytester.path / "history.db").exists()


@PLAIN_AND_XDIST
def test_without_paths_the_files_of_the_cases_are_collected_and_no_others(host: Host, workers: tuple[str, ...]) -> None:
    # The report may lie where this session writes its own.
    host.pytester.makeini(f"{host.pytester.path.joinpath('tox.ini').read_text()}\ntestpaths = elsewhere\n")
    host.pytester.mkdir("elsewhere").joinpath("test_broken.py").write_text("import nothing_of_this_name\n")
    host.cases(CASES)
    host.run("--runner", "toy-2", "--junitxml=junit.xml", "test_cases.py").assert_outcomes(passed=1, failed=1, skipped=1)

    result = host.run("--runner", "toy-2", "--junitxml=junit.xml", "--e2e-from=junit.xml", *workers)

    result.assert_outcomes(failed=1, deselected=0 if workers else 2)


@PLAIN_AND_XDIST
def test_a_case_is_repeated_as_it_was_changed(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(TRAINED)
    change = "actor_rollout_ref.actor.optim.lr=1.0e-5"
    host.run("--runner", "toy-2", "--junitxml=junit.xml", "--e2e-steps", "3", "--e2e-set", change)

    result = host.run("--runner", "toy-2", "--e2e-from=junit.xml", *workers)

    result.assert_outcomes(failed=1, deselected=0 if workers else 2)
    result.stdout.fnmatch_lines(
        [
            f"repeats: 1 case(s) of */junit.xml, with --e2e-steps 3 --e2e-set {change} as there",
            f"repeat: pytest test_cases.py::test_red --runner toy-2 --e2e-steps 3 --e2e-set {change}",
            "test_cases.py::test_red: failed there, failed here",
        ]
    )
    result.stdout.no_fnmatch_line("*elsewhere than it ran*")


def test_a_repeat_command_with_a_path_is_taken_as_it_is_printed(host: Host) -> None:
    host.cases(TRAINED)
    change = "trainer.default_local_dir=/no/place"
    result = host.run("--runner", "toy-2", "--junitxml=junit.xml", "--e2e-steps", "3", "--e2e-set", change, "-k", "red")
    (command,) = {line for line in result.stdout.lines if line.startswith("repeat: pytest ")}

    again = host.run(*shlex.split(command)[2:])

    assert command.endswith(f" --e2e-steps 3 --e2e-set={change}")
    again.assert_outcomes(failed=1)
    assert f"but one with steps=3, {change}" in again.stdout.str()
    host.run("--runner", "toy-2", "--e2e-from=junit.xml").stdout.fnmatch_lines(
        [f"repeats: *, with --e2e-steps 3 --e2e-set {change} as *"]
    )


def test_the_repeat_command_of_a_session_in_a_subdirectory_is_one_for_the_root(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    below = host.pytester.mkdir("below")
    host.cases(TRAINED).rename(below / "test_cases.py")
    shutil.copy(host.root / "runners.yaml", host.pytester.path / "-own runners.yaml")
    host.pytester.path.joinpath("python").symlink_to(host.root / "python")
    monkeypatch.chdir(below)
    words = ("--runner", "toy-2", "--e2e-runners-file=../-own runners.yaml", "--e2e-python=../python", "-k", "red")
    (command,) = {line for line in host.run(*words).stdout.lines if line.startswith("repeat: pytest ")}

    monkeypatch.chdir(host.pytester.path)
    again = host.run(*shlex.split(command)[2:])

    again.assert_outcomes(failed=1)
    assert command in again.stdout.lines


def test_changes_of_this_session_are_told_apart_from_those_there(host: Host) -> None:
    host.cases(TRAINED)
    host.run("--runner", "toy-2", "--junitxml=junit.xml", "--e2e-steps", "3")

    result = host.run("--runner", "toy-2", "--e2e-from=junit.xml", "--e2e-steps", "4")

    result.stdout.fnmatch_lines(["  elsewhere than it ran: changed steps=3 -> steps=4"])


@PLAIN_AND_XDIST
def test_a_case_that_ran_there_and_is_skipped_here_makes_the_session_red(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(CASES)
    xml = host.root / "junit.xml"
    host.run("--runner", "toy-4", f"--junitxml={xml}").assert_outcomes(passed=1, failed=1, errors=1)  # this host has no four

    result = host.run("--runner", "toy-2", f"--e2e-from={xml}", "--e2e-take", "test_elsewhere", *workers)

    result.assert_outcomes(skipped=1, deselected=0 if workers else 2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*test_cases.py::test_elsewhere: error there, and did not run here: needs toy-4 (4 devices); *"])
    host.run(f"--e2e-from={xml}", "--e2e-take", "test_elsewhere", "--e2e-plan").stdout.no_fnmatch_line("*did not run here*")
