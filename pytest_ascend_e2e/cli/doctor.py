"""`ascend-e2e doctor`: what this host has for the cases, what is missing for which of them, and what to do about each thing.

Must not know: what a single check demands.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from ..errors import E2EError, LeaseError
from ..preflight import Host, HostFinding, host_findings, nearest_there, version_in
from ..report import Suite
from ..runners import (
    Catalogue,
    DevicePool,
    FoundDevices,
    LockDirectory,
    Runner,
    Slot,
    find_devices,
    load_catalogue,
    pick_runner,
    simulated_slots,
)
from ..session import Settings, device_findings, host_of, input_findings
from .collecting import add_selection, collect_suite

SCHEMA = 1
_BARE = "sim-2"  # what a session without devices runs on


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """One finding, and the cases that it concerns; none where it is every case of the runner."""

    finding: HostFinding
    cases: Sequence[str] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**asdict(self.finding), "cases": list(self.cases)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Examination:
    """What a host has: texts by name in each section, and what is missing."""

    runner: str
    cases: Sequence[str]
    sections: Mapping[str, Mapping[str, str]]
    missing: Sequence[Missing]

    @property
    def is_sound(self) -> bool:
        """Tell whether nothing keeps a case from running here."""
        return not any(missing.finding.is_error for missing in self.missing)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `doctor`."""
    parser = subparsers.add_parser(
        "doctor",
        help="show what this host has, what its cases lack, and what to do about it",
        description="Show the devices, versions, places, limits and leases of this host, and what its cases lack: each thing with "
        "the cases that it concerns and what to do. Without NPUs the host is looked at as the simulated runner sim-2.",
    )
    add_selection(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace, stdout: TextIO, _stderr: TextIO) -> int:
    """Print what the host has and lacks, and return 1 if a case cannot run on it.

    Raises:
        E2EError: the cases cannot be collected, the runner is not known, or the training's interpreter cannot be run.
    """
    suite = collect_suite(args, "--collect-only", "--e2e-plan")
    examination = examine(suite, args.runner, os.environ)
    if args.json:
        json.dump(_plain(examination), stdout, indent=1, ensure_ascii=False)
        stdout.write("\n")
    else:
        stdout.writelines(f"{line}\n" for line in _lines(examination))
    return int(not examination.is_sound)


def examine(suite: Suite, name: str | None, environ: Mapping[str, str]) -> Examination:
    """Return what this host has and lacks for the cases of a runner, by default of the one that it is.

    Raises:
        E2EError: the runner is not known, or the training's interpreter cannot be run.
    """
    settings = Settings.from_plain(suite.settings)
    catalogue = load_catalogue(settings.runners_file)
    found = _found(environ)
    runner, missing = (catalogue.get(name), []) if name else _runner_here(catalogue, found)
    cases = [case for case in suite.cases if runner.name in case.runners]
    host = host_of(settings, environ, simulated=runner.simulated)
    missing += [] if runner.simulated else [Missing(finding=finding) for finding in device_findings(runner, environ)]
    missing += [Missing(finding=finding) for finding in host_findings(host)]
    inputs: dict[str, str] = {}
    if not runner.simulated:  # which makes its own
        needed: dict[tuple[str, str], list[str]] = {}
        for case in cases:
            needed.setdefault((case.model, case.dataset), []).append(case.case)
        lacking = {pair: list(input_findings(*pair, settings)) for pair in needed if pair != ("", "")}
        inputs = _inputs(lacking)
        missing += _united(lacking, needed)
    leases: dict[str, str] = {}
    try:
        leases = _leases(simulated_slots(runner.devices) if runner.simulated else found.slots, settings.lock_dir)
    except LeaseError as error:
        missing.append(Missing(finding=HostFinding(check="host.locks", text=str(error))))
    sections = {
        "devices": _devices(runner, found),
        "versions": {**host.versions, "driver": version_in(host.driver / "version.info") or "none"},
        "places": _places(settings),
        "limits": _limits(host),
        **({} if runner.simulated else {"weights and datasets": inputs}),
        "leases": leases,
    }
    ordered = sorted(missing, key=lambda one: not one.finding.is_error)
    return Examination(runner=runner.name, cases=[case.case for case in cases], sections=sections, missing=ordered)


def _found(environ: Mapping[str, str]) -> FoundDevices:
    """Return the devices of this host, none with the reason where they cannot be told; a driver that hangs is asked once."""
    try:
        return find_devices(environ)
    except E2EError as error:
        return FoundDevices(devices=(), origin="", reason=str(error))


def _runner_here(catalogue: Catalogue, found: FoundDevices) -> tuple[Runner, list[Missing]]:
    """Return what this host is looked at as; where it has NPUs and is no runner for all that, with what keeps it from being one."""
    bare = catalogue.get(_BARE)
    try:
        if found.devices:
            return pick_runner(catalogue, found), []
        why = "" if found.is_bare else found.reason
    except E2EError as error:
        why = str(error)
    finding = HostFinding(check="host.devices", text=why, remedy=f"until then this host is looked at as {bare.name} alone")
    return bare, [Missing(finding=finding)] if why else []


_Inputs = Mapping[tuple[str, str], Sequence[HostFinding]]


def _inputs(found: _Inputs) -> dict[str, str]:
    """Return of each model and dataset whether it is there."""
    states: dict[str, str] = {}
    for (model, dataset), findings in found.items():
        lacking = {finding.check for finding in findings}
        states[model] = "missing" if "host.weights" in lacking else "there"
        states[dataset] = "missing" if "host.dataset" in lacking else "there"
    return dict(sorted(states.items()))


def _united(found: _Inputs, needed: Mapping[tuple[str, str], Sequence[str]]) -> list[Missing]:
    """Return each finding once, with all cases that it concerns: cases share models and datasets."""
    cases: dict[HostFinding, list[str]] = {}
    for pair, findings in found.items():
        for finding in findings:
            cases.setdefault(finding, []).extend(needed[pair])
    return [Missing(finding=finding, cases=sorted(names)) for finding, names in cases.items()]


def _devices(runner: Runner, found: FoundDevices) -> dict[str, str]:
    if runner.simulated:
        return {str(number): "simulated" for number in range(runner.devices)}
    return {
        str(device.id): f"{device.chip or 'chip not known'}, NPU {device.number}, health {device.health or 'not known'}"
        for device in (*found.devices, *found.unfit)
    }


def _places(settings: Settings) -> dict[str, str]:
    roots = {
        "run directories": settings.run_root,
        "cache": settings.cache_root,
        "models": settings.models_root,
        "datasets": settings.datasets_root,
    }
    return {name: _place(path) for name, path in roots.items()}


def _place(path: Path) -> str:
    there = nearest_there(path)
    free_gb = shutil.disk_usage(there).free / 2**30
    return f"{path}{'' if there == path else ' (not there yet)'}, {free_gb:.0f} GB free"


def _limits(host: Host) -> dict[str, str]:
    shared = shutil.disk_usage(host.shared_memory).free / 2**30 if host.shared_memory.is_dir() else 0.0
    return {"open files": str(host.open_files), str(host.shared_memory): f"{shared:.1f} GB free"}


def _leases(slots: Sequence[Slot], place: Path) -> dict[str, str]:
    """Return who has leased a device; nothing is made where nobody ever leased."""
    locks = LockDirectory(place)
    if not locks.is_there():
        return {}
    locks.prepare()
    held = DevicePool(slots=slots, locks=locks).held()
    return {f"device {number}": f"held by {holder or 'a process that left no name'}" for number, holder in held.items()}


def _plain(examination: Examination) -> dict[str, Any]:
    missing = [one.to_plain() for one in examination.missing]
    return {"schema": SCHEMA, **asdict(examination), "missing": missing, "is_sound": examination.is_sound}


def _lines(examination: Examination) -> Iterator[str]:
    yield f"this host as {examination.runner}, for {len(examination.cases)} cases"
    for title, entries in examination.sections.items():
        yield ""
        yield f"{title}:"
        yield from (f"  {name}: {text}" for name, text in entries.items()) if entries else ("  none",)
    yield ""
    for one in examination.missing:
        yield f"{'missing' if one.finding.is_error else 'note'}: {one.finding}"
        yield from (f"  for {case}" for case in one.cases)
    errors = sum(one.finding.is_error for one in examination.missing)
    yield f"{errors} missing" if errors else "nothing is missing"
