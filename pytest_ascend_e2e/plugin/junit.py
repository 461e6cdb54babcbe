"""The JUnit XML of a session: complete at every moment, and with the properties of a case where the family's schema has a place.

pytest writes the file at the end of a session, so a session that is killed leaves none, and one that is interrupted or stops at a
failure (-x) leaves out what was not reached and has what was running as passed. Here pytest's own writer is asked again and again
while tests end, on a copy that has what did not end as errors, and each file replaces the one before in one step. The first one
replaces the file of an earlier session before anything is collected, and says that this has not ended; the last one is the same
as those between.

`junit_family=xunit1` has properties inside a test case: they stay with the report. The schema of `xunit2`, pytest's default,
allows them only in the test suite (https://github.com/pytest-dev/pytest/issues/14315): there they are named `<nodeid>:<name>`.

The files of a run are attached in both forms that CI systems read: a line `[[ATTACHMENT|path]]` in the output of the test case, and
properties named `attachment`.
"""

from __future__ import annotations

import contextlib
import copy
import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest

# There is no public way to the XML of a session on an xdist controller: the fixture `record_testsuite_property` does nothing
# there (https://github.com/pytest-dev/pytest/issues/7767). tests/plugin/test_junit.py notices when this moves.
from _pytest.junitxml import LogXML, xml_key

from ..report import COLLECTION, PREFIX, UNFINISHED
from .guard import Guard

ATTACHMENT = "attachment"
_BETWEEN_WRITES_S = 1.0


def place_properties(config: pytest.Config, report: pytest.TestReport) -> None:
    """Move our properties from a test case to the test suite where the schema asks for that."""
    xml = config.stash.get(xml_key, None)
    if xml is None or xml.family != "xunit2":
        return
    ours = [(name, value) for name, value in report.user_properties if name.startswith(PREFIX)]
    report.user_properties = [pair for pair in report.user_properties if pair not in ours]
    if report.when == "teardown":
        for name, value in ours:
            xml.add_global_property(f"{report.nodeid}:{name}", str(value))


class Journal:
    """Keeps the file named by `--junitxml` valid and whole while the session runs; of use in the process that sees every report."""

    def __init__(self, config: pytest.Config, seen: Guard, attachments: Callable[[pytest.TestReport], list[str]]) -> None:
        self._config = config
        self._seen = seen
        self._attachments = attachments
        self._last_write = 0.0
        self._end = "the session ended without a word"

    def write(self, *, at_once: bool) -> None:
        """Write what is known now, the tests that are collected and not finished as errors.

        Unless `at_once`, not more than once a second: a session of thousands of short tests writes as little as one of few cases.
        What a disk that is full for a while keeps from being written now, the next time has.
        """
        xml = self._config.stash.get(xml_key, None)
        if xml is None or not (at_once or time.monotonic() - self._last_write > _BETWEEN_WRITES_S):
            return
        with contextlib.suppress(OSError):
            self._write(xml, self._seen.unfinished(self._config))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Write the first file, after pytest's writer has taken the time: an earlier session's must not pass for this one's.

        Raises:
            pytest.UsageError: no file can be written there, which pytest would find when all has run.
        """
        xml = self._config.stash.get(xml_key, None)
        if xml is None:
            return
        try:
            self._write(xml, {COLLECTION: "was running"})
        except OSError as error:
            del self._config.stash[xml_key]
            self._config.pluginmanager.unregister(xml)
            raise pytest.UsageError(f"--junitxml: {xml.logfile} cannot be written: {error.strerror or error}") from error

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Attach the files of the test's runs when its last report has been taken."""
        if report.when != "teardown":
            return (yield)
        paths = self._attachments(report)
        xml = self._config.stash.get(xml_key, None)
        if xml is None or not paths:
            return (yield)
        if xml.family == "xunit2":
            for path in paths:
                xml.add_global_property(f"{report.nodeid}:{ATTACHMENT}", path)
        else:
            report.user_properties += [(ATTACHMENT, path) for path in paths]
        reporter = xml.node_reporter(report)
        result = yield
        _attach(reporter.to_xml(), paths)
        return result

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Write the last file in the place of pytest's writer: what did not end says why the session did."""
        xml = self._config.stash.get(xml_key, None)
        if xml is None:
            return (yield)
        path, xml.logfile = xml.logfile, os.devnull
        try:
            return (yield)
        finally:
            xml.logfile = path
            self._end = f"the session ended: {session.shouldfail or session.shouldstop or 'interrupted'}"
            try:
                self._write(xml, self._seen.unfinished(self._config))
            except OSError as error:
                self._seen.problems.append(f"--junitxml: the last state of {path} cannot be written: {error.strerror or error}")
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def _write(self, xml: LogXML, unfinished: Mapping[str, str]) -> None:
        """Let pytest's writer write beside its file, and replace that in one step."""
        told = _as_of_now(xml, {nodeid: f"{nodeid} {state} when {self._end}" for nodeid, state in unfinished.items()})
        told.logfile = f"{xml.logfile}.{os.getpid()}.partial"
        partial = Path(told.logfile)
        try:
            told.pytest_sessionfinish()
            partial.replace(xml.logfile)
        finally:
            partial.unlink(missing_ok=True)
        self._last_write = time.monotonic()


def _attach(case: ET.Element, paths: Sequence[str]) -> None:
    """Add the lines of the attachments to what a finished test case has as its output."""
    output = case.find("system-out")
    if output is None:
        output = ET.SubElement(case, "system-out")
    output.text = "\n".join([*filter(None, [output.text]), *(f"[[ATTACHMENT|{path}]]" for path in paths)])


def _as_of_now(xml: LogXML, unfinished: dict[str, str]) -> LogXML:
    """Return a copy of pytest's writer in which each unfinished test is one error with its text, whatever of it was reported."""
    told = copy.copy(xml)
    begun = [reporter for (nodeid, _), reporter in xml.node_reporters.items() if str(nodeid) in unfinished]
    told.stats, told.node_reporters, told.node_reporters_ordered = {}, {}, []
    for nodeid, text in unfinished.items():
        path, _, name = nodeid.partition("::")
        report = pytest.TestReport(nodeid, (path, None, name), {}, "failed", None, "setup")
        reporter = told.node_reporter(report)
        reporter.record_testreport(report)
        reporter._add_simple("error", UNFINISHED, text)  # noqa: SLF001
    ended = [reporter for reporter in xml.node_reporters_ordered if reporter not in begun]
    nodes = _each_once(reporter.to_xml() for reporter in (*ended, *told.node_reporters_ordered))
    told.node_reporters_ordered = [cast("Any", _Node(node)) for node in nodes]
    tags = Counter(_outcome({child.tag for child in node}) for node in nodes)
    told.stats = {key: tags[key] for key in xml.stats}
    told.cnt_double_fail_tests = 0
    return told


class _Node:
    """A test case as pytest's writer asks for it."""

    def __init__(self, node: ET.Element) -> None:
        self._node = node

    def to_xml(self) -> ET.Element:
        return self._node


def _each_once(nodes: Iterable[ET.Element]) -> list[ET.Element]:
    """Return the test cases, each once: pytest tells a failure of a test and the error of its teardown as two."""
    found: dict[tuple[str, str], ET.Element] = {}
    for node in nodes:
        key = node.get("classname", ""), node.get("name", "")
        known = found.get(key)
        if known is None:
            found[key] = node
            continue
        found[key] = both = copy.copy(known)
        both.set("time", f"{float(known.get('time', 0)) + float(node.get('time', 0)):.3f}")
        both.extend(node)
    return list(found.values())


def _outcome(tags: set[str]) -> str:
    return next((tag for tag in ("failure", "error", "skipped") if tag in tags), "passed")
