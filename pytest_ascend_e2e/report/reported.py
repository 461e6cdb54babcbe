"""JUnit files read back: which tests a session reported, how each ended, and with which properties.

Must not know: where a file came from, or what its cases are read for. A file of another project's pytest is read as well as ours.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from ..errors import ReportError
from ..nodeids import parts_of
from ..records import RunRecord
from .failure import headline
from .junit import COLLECTION, PREFIX, UNFINISHED, properties

# How pytest marks a test that failed as it was expected to, and the reason of one that it did not even run for that.
_XFAIL = "pytest.xfail"
_NOT_RUN = "[NOTRUN]"


class Outcome(enum.Enum):
    """How a test was reported.

    `XFAILED` is one that ran and failed as it was expected to; `UNFINISHED` is what a file says of a test that did not end.
    """

    PASSED = "passed"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    UNFINISHED = "unfinished"
    ERROR = "error"
    FAILED = "failed"

    @property
    def is_red(self) -> bool:
        """Tell whether a session with such a test is red."""
        return self in (Outcome.UNFINISHED, Outcome.ERROR, Outcome.FAILED)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportedCase:
    """One test of a report.

    `address` are the parts of its name as JUnit tells them: directories, module, classes, test. It is that of a whole module where
    `is_module` says so: one that could not be collected. `properties` are ours, without prefix. `origin` names the file.
    """

    address: tuple[str, ...]
    outcome: Outcome
    message: str
    origin: str
    is_module: bool = False
    time_s: float = 0.0
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the test's own name."""
        return self.address[-1]

    @property
    def is_collection(self) -> bool:
        """Tell whether it stands for the collection of a session that was killed before it knew its tests."""
        return self.address == (COLLECTION,)

    def __str__(self) -> str:
        return ".".join(self.address)


def address_of(nodeid: str) -> tuple[str, ...]:
    """Return the address of a node id, part by part as pytest's JUnit file names it."""
    path, *names = parts_of(nodeid)
    return (*re.sub(r"\.py$", "", path.replace("/", ".")).split("."), *names)


def read_junit(data: bytes, *, origin: str) -> list[ReportedCase]:
    """Return the cases of a JUnit file in their order.

    Raises:
        ReportError: it is not XML, or holds no test suite.
    """
    return [case for case, _ in cases_with_nodes(junit_root(data, origin=origin), origin=origin)]


def cases_with_nodes(root: ET.Element, *, origin: str) -> list[tuple[ReportedCase, ET.Element]]:
    """Return the cases of a JUnit file in their order, each with its element."""
    suites = list(root.iter("testsuite"))
    by_test = _suite_properties(suites)
    return [(_case(node, by_test, origin), node) for suite in suites for node in suite.iterfind("testcase")]


def junit_root(data: bytes, *, origin: str) -> ET.Element:
    """Return the root of a JUnit file.

    Raises:
        ReportError: it is not XML, or another kind of XML. A document type is refused: it could hold entities without end.
    """
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ReportError(f"{origin}: holds a document type; expected a JUnit file, which has none")
    try:
        root = ET.fromstring(data)  # noqa: S314  # without a document type there are no entities to expand
    except ET.ParseError as error:
        raise ReportError(f"{origin}: not XML ({error}); expected a JUnit file, such as pytest writes by --junitxml") from error
    if root.tag not in ("testsuites", "testsuite"):
        raise ReportError(f"{origin}: XML with the root {root.tag!r}; expected a JUnit file with testsuites")
    return root


def own_properties(pairs: Iterable[tuple[str, object]]) -> dict[str, str]:
    """Return those of these properties that are ours, without prefix; what was told twice, such as two retries, is one text."""
    found: dict[str, str] = {}
    for name, value in pairs:
        own = name.removeprefix(PREFIX)
        if own != name:
            found[own] = f"{found[own]}; {value}" if own in found else str(value)
    return found


def from_record(record: RunRecord) -> ReportedCase:
    """Return the case of a run's record, as if a session had reported nothing else of it."""
    return ReportedCase(
        address=address_of(record.case),
        outcome=Outcome.PASSED if record.is_passed else Outcome.FAILED,
        message=headline(record),
        origin=record.run_dir,
        time_s=record.duration_s,
        properties=own_properties(properties(record)),
    )


def latest(cases: Iterable[ReportedCase]) -> list[ReportedCase]:
    """Return one case for each address: of several, a red one before a green one, and one that was skipped last of all.

    The shards of a session report a case of another runner as skipped; the one that ran it counts. Of two that are alike the later
    file counts; in one file the first, which is the failure of a test before that of its teardown.
    """
    found: dict[tuple[str, ...], ReportedCase] = {}
    for case in cases:
        known = found.get(case.address)
        if known is None or (_weight(case), case.origin != known.origin) > (_weight(known), False):
            found[case.address] = case
    return list(found.values())


def _weight(case: ReportedCase) -> int:
    return 0 if case.outcome is Outcome.SKIPPED else 2 if case.outcome.is_red else 1


def matches(wanted: Sequence[ReportedCase], nodeids: Iterable[str]) -> dict[str, ReportedCase]:
    """Return for each node id the wanted case that it is, whatever directory either of them was named from.

    Two names are of one case if they end alike from the module on; of several that do, the longest common end decides, and those
    that are as near as each other all count: rather one too many than one too few.
    """
    by_name: dict[str, list[tuple[str, tuple[str, ...], int]]] = {}
    modules: list[tuple[str, tuple[str, ...]]] = []
    for nodeid in nodeids:
        address = address_of(nodeid)
        names = len(parts_of(nodeid)) - 1
        by_name.setdefault(address[-1], []).append((nodeid, address, names + 1))
        modules.append((nodeid, address[: len(address) - names]))
    found: dict[str, ReportedCase] = {}
    for case in wanted:
        candidates = (
            ((nodeid, _common_end(case.address, address), 1) for nodeid, address in modules)
            if case.is_module
            else ((nodeid, _common_end(case.address, address), least) for nodeid, address, least in by_name.get(case.name, ()))
        )
        near = [(nodeid, length) for nodeid, length, least in candidates if length >= least]
        best = max((length for _, length in near), default=0)
        found |= {nodeid: case for nodeid, length in near if length == best}
    return found


def _common_end(one: Sequence[str], other: Sequence[str]) -> int:
    length = 0
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != right:
            break
        length += 1
    return length


def _suite_properties(suites: Sequence[ET.Element]) -> dict[tuple[str, ...], list[tuple[str, str]]]:
    """Return our properties by test: those that stand in the suite as `<node id>:e2e_<name>`."""
    found: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for suite in suites:
        for node in suite.iterfind("properties/property"):
            nodeid, mark, name = node.get("name", "").rpartition(f":{PREFIX}")
            if mark:
                found.setdefault(address_of(nodeid), []).append((PREFIX + name, node.get("value", "")))
    return found


def _case(node: ET.Element, by_test: Mapping[tuple[str, ...], Sequence[tuple[str, str]]], origin: str) -> ReportedCase:
    classname, name = node.get("classname", ""), node.get("name", "")
    is_module = not classname
    address = tuple(name.split(".")) if is_module else (*classname.split("."), name)
    own = [(item.get("name", ""), item.get("value", "")) for item in node.iterfind("properties/property")]
    outcome, message = _outcome(node)
    return ReportedCase(
        address=address,
        outcome=outcome,
        message=message,
        origin=origin,
        is_module=is_module,
        time_s=_seconds(node.get("time", "")),
        properties=own_properties([*by_test.get(address, ()), *own]),
    )


def _outcome(node: ET.Element) -> tuple[Outcome, str]:
    """Return what the worst of a test case's results says, with the first line of its message."""
    for tag in ("failure", "error", "skipped"):
        child = node.find(tag)
        if child is not None:
            message = child.get("message") or (child.text or "").strip()
            return _kind(child, message), next(iter(message.splitlines()), "")
    return Outcome.PASSED, ""


def _kind(result: ET.Element, message: str) -> Outcome:
    if result.tag == "skipped":
        return expected_failure(message) if result.get("type") == _XFAIL else Outcome.SKIPPED
    if result.tag == "error":
        return Outcome.UNFINISHED if message == UNFINISHED else Outcome.ERROR
    return Outcome.FAILED


def expected_failure(reason: str) -> Outcome:
    """Return the outcome of a test that pytest reports as one that failed as expected, from the reason that it gives."""
    return Outcome.SKIPPED if reason.startswith(_NOT_RUN) else Outcome.XFAILED


def _seconds(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Yield what is another than it was, of all that says where and with what a case ran: `runner a3-16 -> sim-2`."""
    for name in (*_PLACE, *sorted({key for key in (*before, *after) if key.startswith("version_")})):
        old, new = before.get(name, ""), after.get(name, "")
        if old and new and old != new:
            yield f"{name.removeprefix('version_')} {old} -> {new}"


_PLACE = ("runner", "device", "devices", "nodes", "layout", "model", "commit", "changed")
