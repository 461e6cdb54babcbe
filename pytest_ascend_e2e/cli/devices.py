"""`ascend-e2e devices`: the devices of this host, or of a saved output of npu-smi, as a table or as JSON.

Must not know: how the text of npu-smi is read.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from ..errors import RunnerError
from ..runners import NpuDevice, NpuSmi, parse_npu_smi, read_npu_smi

_HEAD = ("NPU", "chip", "Phy-ID", "name", "health", "bus", "HBM MB", "AI core", "processes")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `devices`."""
    parser = subparsers.add_parser("devices", help="show the NPUs of this host, or of a saved output of npu-smi info")
    parser.add_argument(
        "--from", dest="saved", type=Path, metavar="FILE", help="a saved output of npu-smi info (default: ask npu-smi)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Print the devices; what could not be read of them goes into the JSON or to stderr.

    Raises:
        RunnerError: the file cannot be read, there is no npu-smi, or it shows no table of devices.
    """
    smi = _ask() if args.saved is None else _read(args.saved)
    if args.json:
        json.dump(to_json(smi), stdout, indent=1, ensure_ascii=False)
        stdout.write("\n")
        return 0
    stdout.writelines(f"{line}\n" for line in table(smi))
    stderr.writelines(f"note: {problem}\n" for problem in smi.problems)
    return 0


def to_json(smi: NpuSmi) -> dict[str, Any]:
    """Return the output as plain data: npu_smi_version, devices with their processes, process_table, problems."""
    devices = [dataclasses.asdict(device) for device in smi.devices]
    for device in devices:
        del device["logic_id"]  # a number of one container, which is of no use elsewhere
    return {
        "npu_smi_version": smi.version,
        "devices": devices,
        "process_table": smi.process_table,
        "problems": list(smi.problems),
    }


def table(smi: NpuSmi) -> Iterator[str]:
    """Return the lines of a table, one device to a line."""
    rows: list[Sequence[str]] = [_HEAD, *(_row(device, process_table=smi.process_table) for device in smi.devices)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


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


def _ask() -> NpuSmi:
    smi = read_npu_smi(os.environ)
    if smi is None:
        raise RunnerError("npu-smi is not on PATH: add its directory, or give a saved output (--from FILE)")
    return smi


def _read(path: Path) -> NpuSmi:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunnerError(f"{path}: cannot be read: {error.strerror}; expected a saved output of npu-smi info") from error
    return parse_npu_smi(data.decode(errors="replace"), origin=str(path))
