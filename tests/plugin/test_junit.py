"""The JUnit XML of a session: valid, with the properties of each case, and the same under xdist."""

from __future__ import annotations

import errno
import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import xmlschema

from tests.plugin.conftest import PLAIN_AND_XDIST, Host

XUNIT2 = Path(__file__).parent.parent / "data" / "xunit2.xsd"
CASES = """
@npu_nightly(runner='toy-2', recipe=recipe(steps=8))
def test_one(run): run.check_rewards()

@npu_nightly(runner='toy-2', recipe=recipe(steps=8, env={'FAKE_TRAINER': 'nan@4'}))
def test_two(run): run.check_completed()
"""
EXPECTED = {
    "tier", "runner", "devices", "model", "dataset", "algorithm", "layout", "steps", "reward_first", "reward_last", "reward_mean",
    "rollout_probs_diff_mean", "rollout_pearson", "tokens_per_s_per_device", "step_time_s", "peak_memory_gb", "version_verl",
    "version_vllm", "version_torch", "version_torch_npu", "version_cann", "run_dir", "repeat",
}  # fmt: skip
CHANGING = {"run_dir", "duration_s"}


def write(host: Host, *args: str) -> Path:
    host.cases(CASES)
    xml = host.pytester.path / "junit.xml"
    host.run("--runner", "toy-2", f"--junitxml={xml}", *args)
    return xml


def suite_properties(xml: Path) -> dict[str, dict[str, str]]:
    """Return the properties by test, from the test suite, where xunit2 has them."""
    found: dict[str, dict[str, str]] = {}
    for node in ET.parse(xml).iterfind("testsuite/properties/property"):  # noqa: S314  # our own file
        nodeid, of_case, name = node.attrib["name"].rpartition(":e2e_")
        if of_case:
            found.setdefault(nodeid, {})[name] = node.attrib["value"]
    return found


def test_the_file_is_valid_and_has_every_property_of_every_case(host: Host) -> None:
    xml = write(host)

    xmlschema.XMLSchema(str(XUNIT2)).validate(str(xml))
    found = suite_properties(xml)
    assert set(found) == {"test_cases.py::test_one", "test_cases.py::test_two"}
    assert all(set(properties) >= EXPECTED for properties in found.values())
    assert found["test_cases.py::test_one"]["repeat"] == "pytest test_cases.py::test_one --runner toy-2"
    assert found["test_cases.py::test_one"]["version_torch_npu"] == importlib.metadata.version("torch").partition("+")[0]
    assert Path(found["test_cases.py::test_one"]["run_dir"], "train.log").is_file()


def test_the_properties_are_the_same_with_and_without_xdist(host: Host) -> None:
    plain = suite_properties(write(host))

    parallel = suite_properties(write(host, "-n1"))

    def fixed(found: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        return {test: {name: value for name, value in given.items() if name not in CHANGING} for test, given in found.items()}

    assert fixed(parallel) == fixed(plain)


def test_xunit1_has_the_properties_in_the_test_case(host: Host) -> None:
    xml = write(host, "-o", "junit_family=xunit1")

    cases = ET.parse(xml).iterfind("testsuite/testcase")  # noqa: S314  # our own file

    for case in cases:
        names = {node.attrib["name"].removeprefix("e2e_") for node in case.iterfind("properties/property")}
        assert names >= EXPECTED


def test_a_property_that_is_absent_says_so(host: Host) -> None:
    host.cases(
        "@npu_nightly(runner='toy-2', recipe=recipe(steps=3, env={'FAKE_TRAINER': 'without:perf/throughput'}))\n"
        "def test_case(run): run.check_completed()\n"
    )
    xml = host.pytester.path / "junit.xml"

    host.run("--runner", "toy-2", f"--junitxml={xml}")

    assert suite_properties(xml)["test_cases.py::test_case"]["tokens_per_s_per_device"] == "absent"


@PLAIN_AND_XDIST
def test_only_plain_values_cross_from_a_worker(host: Host, workers: tuple[str, ...]) -> None:
    xml = write(host, *workers)

    values = [value for properties in suite_properties(xml).values() for value in properties.values()]
    assert not any(re.search(r"<\w+ object|PosixPath|dataclass", value) for value in values)
    assert pytest.approx(float(suite_properties(xml)["test_cases.py::test_one"]["rollout_pearson"])) == 0.999


TWELVE = """
import pytest
@pytest.mark.parametrize('number', range(12))
@npu_nightly(runner='toy-2', recipe=recipe(steps=2, env={'FAKE_TRAINER': 'nan@2'}))
def test_many(run, number):
    if number % 2: run.check_completed()
    else: run.check_rewards()
"""


def outcomes(xml: Path) -> dict[str, str]:
    """Return the outcome of each test, and refuse a file that has one twice or is not valid."""
    xmlschema.XMLSchema(str(XUNIT2)).validate(str(xml))
    suite = ET.parse(xml).find("testsuite")  # noqa: S314  # our own file
    assert suite is not None
    found: dict[str, str] = {}
    for case in suite.iterfind("testcase"):
        assert case.attrib["name"] not in found
        bad = [*case.iterfind("error"), *case.iterfind("failure")]
        found[case.attrib["name"]] = bad[0].attrib["message"].partition(":")[0] if bad else "passed"
    assert suite.attrib["tests"] == str(len(found))
    return found


def killed_session(host: Host, xml: Path, *workers: str, when: int) -> None:
    """Start a session of twelve cases in a process of its own, and kill it once they are collected and `when` have an outcome."""
    host.cases(TWELVE)
    session, log = begun_session(host, xml, *workers)
    until = time.monotonic() + 120
    while (
        len(found := outcomes(xml) if xml.is_file() else {}) < 12
        or sum(outcome != "unfinished" for outcome in found.values()) < when
    ):
        assert session.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.02)
    os.killpg(session.pid, signal.SIGKILL)
    session.wait()


def begun_session(host: Host, xml: Path, *workers: str) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a session on the host's cases in a process of its own; return it with the file of its output."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--runner", "toy-2", f"--junitxml={xml}", *workers]
    log = host.root / "session.log"
    with log.open("w") as out:
        return subprocess.Popen(command, cwd=host.pytester.path, stdout=out, stderr=out, start_new_session=True), log


@PLAIN_AND_XDIST
@pytest.mark.parametrize("when", [0, 3])
def test_a_session_that_is_killed_leaves_a_whole_file(host: Host, workers: tuple[str, ...], when: int) -> None:
    xml = host.pytester.path / "junit.xml"

    killed_session(host, xml, *workers, when=when)

    found = outcomes(xml)
    assert set(found) == {f"test_many[{number}]" for number in range(12)}
    ended = [outcome for outcome in found.values() if outcome != "unfinished"]
    assert len(ended) >= when
    assert all("checks failed" in outcome or outcome == "passed" for outcome in ended)
    assert "unfinished" in found.values()


@PLAIN_AND_XDIST
def test_a_session_that_is_killed_while_it_collects_leaves_no_file_of_an_earlier_one(host: Host, workers: tuple[str, ...]) -> None:
    xml = write(host)
    host.pytester.makepyfile(test_endless="import os, signal\nos.killpg(os.getpgid(0), signal.SIGKILL)")

    command = [sys.executable, "-m", "pytest", "--runner", "toy-2", f"--junitxml={xml}", *workers]
    assert subprocess.run(command, cwd=host.pytester.path, start_new_session=True, check=False).returncode == -signal.SIGKILL

    assert outcomes(xml) == {"pytest-collection": "unfinished"}


ENDLESS = """
@npu_nightly(runner='toy-2', recipe=recipe(steps=2))
def test_first(run): run.check_completed()

@npu_nightly(runner='toy-2', recipe=recipe(steps=2))
def test_second(run):
    import pathlib, time
    pathlib.Path('second').touch()
    time.sleep(600)

@npu_nightly(runner='toy-2', recipe=recipe(steps=2))
def test_third(run): run.check_completed()
"""


@PLAIN_AND_XDIST
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_an_interrupted_session_passes_nothing_that_it_did_not_end(host: Host, workers: tuple[str, ...], number: int) -> None:
    host.cases(ENDLESS)
    xml = host.pytester.path / "junit.xml"
    session, log = begun_session(host, xml, *workers)
    until = time.monotonic() + 120
    while not host.pytester.path.joinpath("second").exists() or "passed" not in outcomes(xml).values():
        assert session.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.02)

    session.send_signal(number)

    assert session.wait(60) == pytest.ExitCode.INTERRUPTED, log.read_text()
    assert outcomes(xml) == {"test_first": "passed", "test_second": "unfinished", "test_third": "unfinished"}
    assert "test_cases.py::test_second was running when the session ended: interrupted" in xml.read_text()
    assert [path.name for path in xml.parent.glob("junit.xml*")] == ["junit.xml"]


@PLAIN_AND_XDIST
@pytest.mark.parametrize("stop", ["-x", "--maxfail=1"])
def test_a_session_that_stops_at_a_failure_names_what_it_did_not_reach(host: Host, workers: tuple[str, ...], stop: str) -> None:
    host.cases("import pytest\n@pytest.mark.parametrize('number', range(6))\ndef test_plain(number): assert number != 1\n")
    xml = host.pytester.path / "junit.xml"

    host.run(stop, f"--junitxml={xml}", *workers)

    found = outcomes(xml)
    assert set(found) == {f"test_plain[{number}]" for number in range(6)}
    assert found["test_plain[0]"] == "passed"
    assert found["test_plain[1]"].startswith("assert 1 != 1")
    assert found["test_plain[5]"] == "unfinished"
    if not workers:
        assert "test_plain[5] had not begun when the session ended: stopping after 1 failures" in xml.read_text()


def test_a_session_that_cannot_collect_a_module_names_what_it_did_not_begin(host: Host) -> None:
    host.pytester.makepyfile(test_broken="import nothing_of_this_name", test_sound="def test_plain(): pass")
    xml = host.pytester.path / "junit.xml"

    host.run(f"--junitxml={xml}")

    assert outcomes(xml) == {"test_broken": "collection failure", "test_plain": "unfinished"}


def test_a_test_whose_worker_crashes_is_in_the_file_once(host: Host) -> None:
    host.pytester.makepyfile("import os\ndef test_first(): pass\ndef test_crashes(): os._exit(3)\ndef test_last(): pass\n")
    xml = host.pytester.path / "junit.xml"

    host.run("-n1", f"--junitxml={xml}")

    found = outcomes(xml)
    assert set(found) == {"test_first", "test_crashes", "test_last"}
    assert (found["test_first"], found["test_last"]) == ("passed", "passed")
    assert "crashed while running" in xml.read_text()


@PLAIN_AND_XDIST
def test_a_failure_and_the_error_of_its_teardown_are_one_test_of_the_file(host: Host, workers: tuple[str, ...]) -> None:
    host.pytester.makepyfile(
        "import pytest\n@pytest.fixture\ndef broken():\n    yield\n    raise ValueError('teardown')\n"
        "def test_both(broken): raise ValueError('call')\ndef test_teardown(broken): pass\n"
    )
    xml = host.pytester.path / "junit.xml"

    host.run(f"--junitxml={xml}", *workers)

    assert outcomes(xml) == {
        "test_both": 'failed on teardown with "ValueError',
        "test_teardown": 'failed on teardown with "ValueError',
    }
    suite = ET.parse(xml).find("testsuite")  # noqa: S314  # our own file
    assert suite is not None
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("1", "1")
    assert [node.attrib["message"] for node in suite.iter("failure")] == ["ValueError: call"]


def test_only_collecting_leaves_nothing_unfinished(host: Host) -> None:
    xml = write(host, "--collect-only")

    assert outcomes(xml) == {}


def test_a_last_file_that_cannot_be_written_makes_the_session_red(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.pytester.makepyfile("def test_first(): pass\n")
    real = Path.replace

    def full(self: Path, target: Path) -> Path:
        if self.name.startswith("junit.xml") and "unfinished" not in self.read_text():
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", full)
    xml = host.pytester.path / "junit.xml"

    result = host.run(f"--junitxml={xml}")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["ascend-e2e: --junitxml: the last state of */junit.xml cannot be written: No space left on device"]
    )
    assert outcomes(xml) == {"test_first": "unfinished"}
    assert [path.name for path in xml.parent.glob("junit.xml*")] == ["junit.xml"]


def test_a_session_that_ends_leaves_one_file_and_nothing_unfinished(host: Host) -> None:
    xml = write(host)

    assert "unfinished" not in outcomes(xml).values()
    assert [path.name for path in xml.parent.glob("junit.xml*")] == ["junit.xml"]


@PLAIN_AND_XDIST
def test_a_file_that_cannot_be_written_is_told_before_anything_runs(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(CASES)
    host.pytester.path.joinpath("taken").write_text("a file")

    result = host.run("--runner", "toy-2", "--junitxml=taken/junit.xml", *workers)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --junitxml: */taken/junit.xml cannot be written: *"])
    assert "Traceback" not in result.stderr.str()
    assert not host.pytester.path.joinpath("runs").exists()


def test_a_disk_that_is_full_for_a_while_stops_no_session(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.replace

    def full(self: Path, target: Path) -> Path:
        if self.name.startswith("junit.xml") and "test_two" in self.read_text():
            monkeypatch.setattr(Path, "replace", real)
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", full)

    xml = write(host)

    assert Path.replace is real
    assert set(outcomes(xml)) == {"test_one", "test_two"}
    assert "unfinished" not in outcomes(xml).values()


def test_a_module_that_cannot_be_collected_stays_in_the_file(host: Host) -> None:
    host.pytester.makepyfile(test_broken="import nothing_of_this_name")

    xml = write(host, "--continue-on-collection-errors")

    assert len(outcomes(xml)) == 3
