"""The JUnit files of many jobs made one, and held against the cases that were to run: what did not report is an error.

Must not know: files, or what a CI does with the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from ..errors import ReportError
from ..session import SuiteCase
from .reported import Outcome, ReportedCase, address_of, cases_with_nodes, junit_root, latest, matches

# The name of the root of a merged file, by which it is told from the report of a job.
_MERGED = "ascend-e2e"
_NOT_REPORTED = "not reported"


@dataclass(frozen=True, kw_only=True, slots=True)
class Merged:
    """The merged file, its cases, each once, and what is wrong beyond the cases that are red themselves.

    `reports` names the files that were merged.
    """

    junit: bytes
    reports: tuple[str, ...]
    cases: tuple[ReportedCase, ...]
    problems: tuple[str, ...]

    @property
    def is_red(self) -> bool:
        """Tell whether a case is red, or one that was to run did not."""
        return bool(self.problems) or any(case.outcome.is_red for case in self.cases)


def merge_junit(files: Sequence[tuple[str, bytes]], expected: Sequence[SuiteCase]) -> Merged:
    """Return these JUnit files (name, content) as one, each case once.

    A case of `expected` that is not off must be in one of them, with a result other than skipped; else it is an error of its own
    in the merged file. A case that two jobs ran is a problem as well, since one of the results would be hidden; so is a file that
    cannot be read, whose cases nobody knows, and a workflow that had nothing to run. What an earlier merge wrote is passed over.
    """
    roots, unread = _roots(files)
    found = [pair for name, root in roots for pair in cases_with_nodes(root, origin=name)]
    reported = latest(case for case, _ in found)
    missing, skipped = _missing(expected, reported)
    chosen = [case for case in reported if case not in skipped]
    # Of a test that failed and whose teardown failed too, pytest's file has both, and so has the merged one.
    kept = {(case.origin, case.address) for case in chosen}
    left_out = [node for case, node in found if (case.origin, case.address) not in kept]
    merged = ET.Element("testsuites", name=_MERGED)
    merged.extend(suite for _, root in roots for suite in _suites(root, left_out))
    if missing:
        merged.append(_suite_of(missing))
    ran = {(case.address, case.origin) for case, _ in found if case.outcome is not Outcome.SKIPPED and not case.is_collection}
    jobs = Counter(address for address, _ in sorted(ran))
    problems = [*unread, *([] if any(not case.off for case in expected) else ["no case was to run in this workflow"])]
    problems += [
        f"{'.'.join(address)}: reported by {count} jobs, and may run in one" for address, count in jobs.items() if count > 1
    ]
    problems += [f"{case}: {case.message}" for case in missing]
    junit = ET.tostring(merged, encoding="utf-8", xml_declaration=True)
    return Merged(junit=junit, reports=tuple(name for name, _ in roots), cases=(*chosen, *missing), problems=tuple(problems))


def _roots(files: Sequence[tuple[str, bytes]]) -> tuple[list[tuple[str, ET.Element]], list[str]]:
    """Return the JUnit files of jobs, each with its name, and what is wrong with others.

    A file is one by its content: a job may have uploaded that of `--junitxml` and the copy of it in its report directory.
    """
    roots: list[tuple[str, ET.Element]] = []
    problems: list[str] = []
    first: dict[bytes, str] = {}
    for name, data in files:
        first.setdefault(data, name)
    for data, name in first.items():
        try:
            root = junit_root(data, origin=name)
        except ReportError as error:
            problems += error.problems
        else:
            if root.get("name") != _MERGED:
                roots.append((name, root))
    return roots, problems


def _suites(root: ET.Element, left_out: Sequence[ET.Element]) -> list[ET.Element]:
    """Return the suites of a file that have cases, without those that are left out, counted anew."""
    suites = list(root.iter("testsuite"))
    for suite in suites:
        for node in suite.findall("testcase"):
            if any(node is other for other in left_out):
                suite.remove(node)
        _count(suite)
    return [suite for suite in suites if suite.find("testcase") is not None]


def _count(suite: ET.Element) -> None:
    cases = suite.findall("testcase")
    tags = Counter(next((tag for tag in ("failure", "error", "skipped") if case.find(tag) is not None), "passed") for case in cases)
    suite.attrib |= {
        "tests": str(len(cases)),
        "failures": str(tags["failure"]),
        "errors": str(tags["error"]),
        "skipped": str(tags["skipped"]),
    }


def _missing(expected: Sequence[SuiteCase], reported: Sequence[ReportedCase]) -> tuple[list[ReportedCase], list[ReportedCase]]:
    """Return an error for each case that was to run and has no result, and the skipped ones that such errors replace."""
    results = matches(reported, [case.case for case in expected])
    found, skipped = [], []
    for case in expected:
        result = results.get(case.case)
        if case.off or (result is not None and result.outcome is not Outcome.SKIPPED):
            continue
        if result is not None:
            skipped.append(result)
        why = "no job reported it" if result is None else f"its job skipped it: {result.message}"
        found.append(
            ReportedCase(
                address=address_of(case.case), outcome=Outcome.ERROR, message=f"{_NOT_REPORTED}: {why}", origin="the list of cases"
            )
        )
    return found, skipped


def _suite_of(missing: Sequence[ReportedCase]) -> ET.Element:
    suite = ET.Element("testsuite", name=_NOT_REPORTED)
    for case in missing:
        node = ET.SubElement(suite, "testcase", classname=".".join(case.address[:-1]), name=case.name, time="0.000")
        ET.SubElement(node, "error", message=case.message).text = f"{case} was to run in this workflow. {case.message}"
    _count(suite)
    return suite
