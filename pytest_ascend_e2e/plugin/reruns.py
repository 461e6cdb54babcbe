"""Cases of an earlier session taken again: what `--e2e-from` reads, what of it is selected, and how each did then and now.

The controller of xdist collects nothing itself; what it says of the selection it reads from the ids that its workers collected. It
alone reads the report: by the time that a worker could, the session may have written its own in that place.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ..errors import SettingsError
from ..nodeids import name_of_test
from ..report import Outcome, ReportedCase, differences, matches, reported_cases
from .guard import SHOWN, Guard
from .options import Setting
from .results import Results

FAILED, ALL = "failed", "all"
_LONGEST_MESSAGE = 160
# The options that make a case another training.
_CHANGES = ("steps", "set")


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """What is taken from an earlier session.

    `files` hold its cases here, empty where they are not known: then all is collected. `changes` are the flags, with their values,
    by which all of them were changed there. `unknown` counts the sessions that were killed before they knew their cases.
    """

    origin: str
    wanted: Sequence[ReportedCase]
    files: Sequence[str] = ()
    changes: Sequence[tuple[str, str]] = ()
    unknown: int = 0

    def apply(self, config: pytest.Config, found: Mapping[str, Setting]) -> None:
        """Collect the files of the cases, and change the cases as they were, as if both had been typed."""
        if self.files:
            config.args[:] = self.files
        for name in _CHANGES:
            option = found[name].option
            values = [value for flag, value in self.changes if flag == option.flag]
            if values:
                setattr(config.option, option.ini, values if option.is_repeatable else values[0])

    def to_plain(self) -> dict[str, Any]:
        """Return what a worker of xdist needs of it, as plain values."""
        cases = [(list(case.address), case.is_module) for case in self.wanted]
        return {"origin": self.origin, "cases": cases, "files": list(self.files), "changes": list(self.changes)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Selection:
        """Return it as far as a worker of xdist needs it."""
        wanted = [
            ReportedCase(address=tuple(address), outcome=Outcome.FAILED, message="", origin=plain["origin"], is_module=is_module)
            for address, is_module in plain["cases"]
        ]
        changes = [(flag, value) for flag, value in plain["changes"]]
        return cls(origin=plain["origin"], wanted=wanted, files=plain["files"], changes=changes)


class Reruns:
    """The cases that are taken from an earlier session; a plugin of its own, registered where `--e2e-from` is given."""

    def __init__(self, selection: Selection, *, guard: Guard, results: Results, is_plan: bool) -> None:
        self._origin = selection.origin
        self._wanted = selection.wanted
        self._changes = selection.changes
        self._unknown = selection.unknown
        self._guard = guard
        self._results = results
        self._is_plan = is_plan

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave what was not taken out, before -k and -m look."""
        taken = matches(self._wanted, [item.nodeid for item in items])
        left_out = [item for item in items if item.nodeid not in taken]
        items[:] = [item for item in items if item.nodeid in taken]
        if left_out:
            config.hook.pytest_deselected(items=left_out)

    def pytest_report_header(self) -> list[str]:
        """Say what is taken from where."""
        changes = shlex.join(word for change in self._changes for word in change)
        lines = [f"repeats: {len(self._wanted)} case(s) of {self._origin}{f', with {changes} as there' if changes else ''}"]
        if self._unknown:
            lines.append(f"not known: the cases of {self._unknown} session(s) of it, killed before they had collected")
        return lines

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Turn a session red in which a case that it was to repeat is missing or did not run."""
        found = matches(self._wanted, self._guard.collected)
        addresses = {case.address for case in found.values()}
        missing = [str(case) for case in self._wanted if case.address not in addresses]
        if missing:
            self._guard.problems.append(
                f"{len(missing)} of {len(self._wanted)} case(s) of {self._origin} are not in this session: {_few(missing)}; "
                "they were not collected (name their files on the command line), or left out by -k or -m (--e2e-take NAME narrows)"
            )
        if not self._is_plan:
            self._guard.problems += self._skipped()

    def _skipped(self) -> list[str]:
        """Return a problem for each case that ran there and was skipped here."""
        results = self._results.found
        return [
            f"{nodeid}: {before.outcome.value} there, and did not run here: {results[nodeid].message}"
            for nodeid, before in matches(self._wanted, results).items()
            if results[nodeid].outcome is Outcome.SKIPPED and before.outcome is not Outcome.SKIPPED
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell of each case how it ended then and now, and what was another."""
        results = self._results.found
        found = matches(self._wanted, results)
        if not found:
            return
        terminalreporter.section(f"repeated from {self._origin}")
        for nodeid, before in sorted(found.items()):
            now = results[nodeid]
            terminalreporter.write_line(f"{nodeid}: {before.outcome.value} there, {now.outcome.value} here")
            if before.message:
                terminalreporter.write_line(f"  there: {_shortened(before.message)}")
            others = list(differences(before.properties, now.properties))
            if others:
                terminalreporter.write_line(f"  elsewhere than it ran: {', '.join(others)}", yellow=True)


def select(config: pytest.Config, found: Mapping[str, Setting]) -> Selection | None:
    """Return what is to be taken from an earlier session, None where no session is named.

    Raises:
        ReportError: the report cannot be read.
        SettingsError: nothing of it is to be taken, or it has no case of a name that is asked for.
    """
    place, take = found["from"], found["take"]
    if not isinstance(place.value, Path):
        if take.source != "default":
            raise SettingsError(f"{take.source}: {take.text!r} is to be taken from nowhere: give the earlier session by --e2e-from")
        return None
    reported = reported_cases(place.value)
    cases = [case for case in reported if not case.is_collection]
    unknown = [which for which in take.texts if which not in (FAILED, ALL) and not any(_is_taken(case, which) for case in cases)]
    if unknown:
        known = _few(sorted({case.name for case in cases}))
        raise SettingsError(*(f"{take.source}: {which!r} is no case of {place.value}; it has {known}" for which in unknown))
    wanted = [case for case in cases if any(_is_taken(case, which) for which in take.texts)]
    if not wanted:
        counts = Counter(case.outcome.value for case in cases)
        none = "it has no case" if cases == reported else "its session was killed before it had collected a case"
        told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items()) or none
        raise SettingsError(f"{place.source}: nothing of {place.value} is to be repeated ({told}); --e2e-take all takes all")
    is_open = not config.getoption("file_or_dir")
    is_as_there = all(found[name].source == "default" for name in _CHANGES)
    return Selection(
        origin=str(place.value),
        wanted=wanted,
        files=_files(wanted, config.rootpath) if is_open else (),
        changes=_changes(wanted, [found[name].option.flag for name in _CHANGES], origin=place.value) if is_as_there else (),
        unknown=len(reported) - len(cases),
    )


def _files(wanted: Sequence[ReportedCase], root: Path) -> Sequence[str]:
    """Return the files of the cases as their session named them from its root, none if one of them is not there."""
    files = []
    for case in wanted:
        ends = [len(case.address)] if case.is_module else range(1, len(case.address))
        paths = (Path(f"{root.joinpath(*case.address[:end])}.py") for end in ends)
        files.append(next((str(path) for path in paths if path.is_file()), ""))
    return list(dict.fromkeys(files)) if all(files) else ()


def _changes(wanted: Sequence[ReportedCase], flags: Sequence[str], *, origin: Path) -> Sequence[tuple[str, str]]:
    """Return what all of the cases were changed by, as their repeat commands tell; nothing where they were changed differently."""
    commands = [case.properties["repeat"] for case in wanted if case.properties.get("repeat", "").startswith("pytest ")]
    try:
        changes = {tuple(pair for pair in pairwise(shlex.split(command)) if pair[0] in flags) for command in commands}
    except ValueError as error:
        raise SettingsError(f"{origin}: a repeat command in it is none of ours: {error}; name the case itself") from error
    return changes.pop() if len(changes) == 1 else ()


def _is_taken(case: ReportedCase, which: str) -> bool:
    if which == ALL:
        return True
    if which == FAILED:
        return case.outcome.is_red
    name = name_of_test(which)
    return case.name == name or any(fnmatchcase(own, name) for own in (case.name, case.name.partition("[")[0]))


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}..."
