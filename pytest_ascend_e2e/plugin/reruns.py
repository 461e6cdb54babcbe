"""Cases of an earlier session taken again: what `--e2e-from` reads, what of it is selected, and how each did then and now.

The controller of xdist collects nothing itself; what it says of the selection it reads from the ids that its workers collected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from ..errors import SettingsError
from ..report import ReportedCase, differences, matches, reported_cases
from .guard import SHOWN, Guard
from .options import Setting
from .results import Results

FAILED, ALL = "failed", "all"
_LONGEST_MESSAGE = 160


class Reruns:
    """The cases that are taken from an earlier session; a plugin of its own, registered where `--e2e-from` is given."""

    def __init__(self, origin: Path, wanted: Sequence[ReportedCase], *, guard: Guard, results: Results) -> None:
        self._origin = origin
        self._wanted = wanted
        self._guard = guard
        self._results = results

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave what was not taken out, before -k and -m look."""
        taken = matches(self._wanted, [item.nodeid for item in items])
        left_out = [item for item in items if item.nodeid not in taken]
        items[:] = [item for item in items if item.nodeid in taken]
        if left_out:
            config.hook.pytest_deselected(items=left_out)

    def pytest_report_header(self) -> str:
        """Say what is taken from where."""
        return f"repeats: {len(self._wanted)} case(s) of {self._origin}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Turn a session red in which a case that it was to repeat is missing."""
        found = matches(self._wanted, self._guard.collected)
        addresses = {case.address for case in found.values()}
        missing = [str(case) for case in self._wanted if case.address not in addresses]
        if missing:
            self._guard.problems.append(
                f"{len(missing)} of {len(self._wanted)} case(s) of {self._origin} are not in this session: {_few(missing)}; "
                "they were not collected (name their files on the command line), or left out by -k or -m (--e2e-take NAME narrows)"
            )

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


def make_reruns(place: Setting, take: Setting, *, guard: Guard, results: Results) -> Reruns | None:
    """Return what is to be taken from an earlier session, None where no session is named.

    Raises:
        ReportError: the report cannot be read.
        SettingsError: nothing of it is to be taken, or it has no case of a name that is asked for.
    """
    if not isinstance(place.value, Path):
        if take.source != "default":
            raise SettingsError(f"{take.source}: {take.text!r} is to be taken from nowhere: give the earlier session by --e2e-from")
        return None
    cases = reported_cases(place.value)
    unknown = [which for which in take.texts if which not in (FAILED, ALL) and not any(_is_taken(case, which) for case in cases)]
    if unknown:
        known = _few(sorted({case.name for case in cases}))
        raise SettingsError(*(f"{take.source}: {which!r} is no case of {place.value}; it has {known}" for which in unknown))
    wanted = [case for case in cases if any(_is_taken(case, which) for which in take.texts)]
    if not wanted:
        counts = Counter(case.outcome.value for case in cases)
        told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items()) or "it has no case"
        raise SettingsError(f"{place.source}: nothing of {place.value} is to be repeated ({told}); --e2e-take all takes all")
    return Reruns(place.value, wanted, guard=guard, results=results)


def _is_taken(case: ReportedCase, which: str) -> bool:
    if which == ALL:
        return True
    if which == FAILED:
        return case.outcome.is_red
    name = which.rpartition("::")[2]
    return case.name == name or any(fnmatchcase(own, name) for own in (case.name, case.name.partition("[")[0]))


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}..."
