"""Devices that somebody uses without a lease: by a process that npu-smi shows, or by memory that no process accounts for.

Must not know: leases. Whoever asks about a device that a run has leased is told of that run's own processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import psutil

from .devices import Device, find_devices
from .npu_smi import NpuProcess

# The driver and the firmware alone take 2.9 to 3.5 GB of an idle device, whether it has 32 GB or 64; a model takes more.
IDLE_MB = 5120

_COMMAND_LIMIT = 120


def occupied_devices(environ: Mapping[str, str]) -> dict[int, str]:
    """Return how each device that is in use is used, by id, as npu-smi shows it now; empty where there is no npu-smi.

    Raises:
        RunnerError: npu-smi fails, hangs or shows no device.
    """
    found = find_devices(environ)
    return {device.id: how for device in found.devices if (how := occupation(device))}


def occupation(device: Device, *, command_of: Callable[[NpuProcess], str] | None = None) -> str:
    """Return how a device is used: pid, command and memory of each process, or memory alone; empty where it is idle."""
    describe = _command if command_of is None else command_of
    die = device.die
    if die is None:
        return ""
    if die.processes:
        users = (f"pid {one.pid}, {describe(one)}, {_memory(one.memory_mb)}" for one in die.processes)
        return f"in use without a lease by {'; '.join(users)}"
    if die.hbm_used_mb is not None and die.hbm_used_mb > IDLE_MB:
        return (
            f"in use without a lease: {die.hbm_used_mb} MB of its memory are taken (an idle one has less than {IDLE_MB}),"
            " and npu-smi shows no process of it here; look outside of this container, or reset the device"
        )
    return ""


def _memory(megabytes: int | None) -> str:
    return "memory not known" if megabytes is None else f"{megabytes} MB"


def _command(process: NpuProcess) -> str:
    """Return the command line of a process, or the name that npu-smi gives it: its pid may be one of another namespace."""
    try:
        seen = psutil.Process(process.pid)
        if process.name and seen.name().startswith(process.name[:15]):
            return " ".join(seen.cmdline())[:_COMMAND_LIMIT] or process.name
    except psutil.Error:
        pass  # of another user, of another container, or ended in between
    return process.name or "no name"
