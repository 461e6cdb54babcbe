"""`ascend-e2e devices`: the devices of this host and their leases, or a saved output of npu-smi, as a table or as JSON.

Must not know: how the text of npu-smi is read, or how a lease is taken.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from ..errors import RunnerError
from ..runners import (
    DEFAULT_LOCK_DIR,
    MASK,
    Device,
    Holder,
    LockDirectory,
    NpuDevice,
    NpuSmi,
    Survey,
    devices_of,
    find_devices,
    parse_npu_smi,
    read_npu_smi,
    survey,
)

_HEAD = ("NPU", "chip", "Phy-ID", "name", "health", "bus", "HBM MB", "AI core", "processes")
_LOCK_DIR = "ASCEND_E2E_LOCK_DIR"
_NAMELESS = "a process that left no name"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `devices`."""
    parser = subparsers.add_parser(
        "devices",
        help="show the NPUs of this host and who has leased them, or a saved npu-smi info",
        description="Show a line for each NPU of this host, with health, memory, processes and lease, and who waits for devices; "
        "or read a saved output of npu-smi info, which knows no leases.",
    )
    parser.add_argument(
        "--from", dest="saved", type=Path, metavar="FILE", help="a saved output of npu-smi info (default: ask npu-smi)"
    )
    parser.add_argument(
        "--lock-dir", type=Path, metavar="DIR", help=f"directory of the leases [{_LOCK_DIR}] (default: {DEFAULT_LOCK_DIR})"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Print the devices; what could not be read of them goes into the JSON or to stderr.

    Raises:
        RunnerError: the file cannot be read, there is no device, or npu-smi shows no table of them.
    """
    smi, state = _here(args.lock_dir, os.environ) if args.saved is None else (_read(args.saved), None)
    if args.json:
        json.dump(to_json(smi, state), stdout, indent=1, ensure_ascii=False)
        stdout.write("\n")
        return 0
    stdout.writelines(f"{line}\n" for line in table(smi, state))
    stderr.writelines(f"note: {problem}\n" for problem in smi.problems)
    return 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """The devices as programs of this host number them, and their leases."""

    devices: Sequence[Device]
    survey: Survey

    def device_of(self, die: NpuDevice) -> Device | None:
        """Return the device that a row of npu-smi stands for; a second row for the same one has none."""
        return next((device for device in self.devices if device.die is die), None)

    def lease_of(self, die: NpuDevice) -> str:
        """Return who has leased a device, "-" where nobody has."""
        device = self.device_of(die)
        if device is None or device.lock_name not in self.survey.held:
            return "-"
        return str(self.survey.held[device.lock_name] or _NAMELESS)


def to_json(smi: NpuSmi, state: State | None = None) -> dict[str, Any]:
    """Return the output as plain data: npu_smi_version, devices with their processes, process_table, problems.

    Of this host, each device also has its id and its lease, and waiting holds the requests that wait.
    """
    devices = [dataclasses.asdict(device) for device in smi.devices]
    for device in devices:
        del device["logic_id"]  # a number of one container, which is of no use elsewhere
    found: dict[str, Any] = {
        "npu_smi_version": smi.version,
        "devices": devices,
        "process_table": smi.process_table,
        "problems": list(smi.problems),
    }
    if state is None:
        return found
    for entry, die in zip(devices, smi.devices, strict=True):
        one = state.device_of(die)
        is_leased = one is not None and one.lock_name in state.survey.held
        entry["id"] = None if one is None else one.id
        entry["lease"] = _holder(state.survey.held[one.lock_name]) if one is not None and is_leased else None
    return {**found, "waiting": [_holder(waiting) for waiting in state.survey.waiting]}


def table(smi: NpuSmi, state: State | None = None) -> Iterator[str]:
    """Return the lines of a table, one device to a line; of this host, with ids, leases, and who waits."""
    rows: list[Sequence[str]] = [_HEAD, *(_row(device, process_table=smi.process_table) for device in smi.devices)]
    if state is not None:
        ids = ["id", *("-" if (one := state.device_of(die)) is None else str(one.id) for die in smi.devices)]
        leases = ["lease", *(state.lease_of(die) for die in smi.devices)]
        rows = [(number, *row, lease) for number, row, lease in zip(ids, rows, leases, strict=True)]
    if smi.devices:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if state is not None:
        shown = {device.lock_name for device in state.devices}
        for name, holder in state.survey.held.items():
            if name not in shown:
                yield f"{name}: leased by {holder or _NAMELESS}"
        for waiting in state.survey.waiting:
            yield f"waiting for {waiting.count} devices: {waiting}" if waiting else f"waiting: {_NAMELESS}"


def _row(device: NpuDevice, *, process_table: bool) -> Sequence[str]:
    hbm = f"{_text(device.hbm_used_mb)} / {_text(device.hbm_total_mb)}"
    aicore = _text(device.aicore_pct) + ("" if device.aicore_pct is None else "%")
    processes = ", ".join(f"{process.name or '?'} {process.pid} ({_text(process.memory_mb)} MB)" for process in device.processes)
    return (
        str(device.npu),
        str(device.chip),
        _text(device.phy_id),
        device.name,
        device.health,
        device.bus_id or "-",
        hbm,
        aicore,
        processes or ("none" if process_table else "not shown"),
    )


def _text(value: int | None) -> str:
    return "-" if value is None else str(value)


def _holder(holder: Holder | None) -> Mapping[str, Any]:
    if holder is None:
        return {"owner": None, "pid": None, "since": None, "count": None}
    return {"owner": holder.owner, "pid": holder.pid, "since": holder.since, "count": holder.count or None}


def _here(lock_dir: Path | None, environ: Mapping[str, str]) -> tuple[NpuSmi, State]:
    """Return what npu-smi shows now, else the device nodes, else the simulated devices that are leased."""
    locks = LockDirectory(lock_dir or Path(environ.get(_LOCK_DIR) or DEFAULT_LOCK_DIR))
    leases = survey(locks)
    smi = read_npu_smi(environ)
    if smi is not None:
        devices = devices_of(smi)
    else:
        unmasked = {name: value for name, value in environ.items() if name != MASK}
        devices = tuple(dataclasses.replace(device, die=_bare(device)) for device in find_devices(unmasked).devices)
        if not devices and not leases.held and not leases.waiting:
            raise RunnerError("npu-smi is not on PATH: add its directory, or give a saved output (--from FILE)")
        problems = ("npu-smi is not on PATH: chip, memory, health and processes are not known",)
        dies = tuple(device.die for device in devices if device.die is not None)
        smi = NpuSmi(version=None, devices=dies, process_table=False, problems=problems)
    if MASK in environ:
        smi = dataclasses.replace(smi, problems=(*smi.problems, f"{MASK}={environ[MASK]!r}: cases started here use no other ids"))
    return smi, State(devices=devices, survey=leases)


def _bare(device: Device) -> NpuDevice:
    """Return what is known of a device of which only the node was found."""
    return NpuDevice(npu=device.card, chip=0, name="-", health="-")


def _read(path: Path) -> NpuSmi:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunnerError(f"{path}: cannot be read: {error.strerror}; expected a saved output of npu-smi info") from error
    return parse_npu_smi(data.decode(errors="replace"), origin=str(path))
