"""The scene of a run that is given up: the stacks of its processes and the state of the devices, kept before anything is ended.

Must not know: why the run is given up. It takes no longer than it is given: a process that hangs in a driver can hang whoever looks
at it, so threads look that nobody waits for, and what was not told in time is said.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from ..deadline import Deadline, format_duration
from .processes import Process
from .run_directory import Command, RunDirectory

# Of one process: a deep stack in a hundred threads has less.
STACK_LIMIT_BYTES = 1 << 18
_AT_ONCE = 8
_COMMAND_LIMIT = 300
_NO_PY_SPY = "no Python stack: py-spy is neither beside the training's Python nor on PATH (pip install py-spy)"


def keep_scene(directory: RunDirectory, processes: Sequence[Process], *, command: Command, limit_s: float) -> None:
    """Write `stacks.txt` and, where the host has the tool, `npu-smi.txt`, in `limit_s` seconds at most.

    Python stacks are py-spy's; what the kernel tells of each process is there without it. A disk that is full keeps nobody from
    ending the run: then there is no file.
    """
    deadline = Deadline.after(limit_s, name="scene")
    path = os.pathsep.join((str(Path(command.argv[0]).parent), command.env.get("PATH", os.defpath)))
    py_spy, npu_smi = shutil.which("py-spy", path=path), shutil.which("npu-smi", path=path)
    devices = _start_npu_smi(npu_smi, directory.npu_smi) if npu_smi else None
    ordered = sorted(processes, key=lambda process: process.started)
    told = _look_at(ordered, py_spy, deadline)
    with contextlib.suppress(OSError), directory.stacks.open("w", encoding="utf-8", errors="replace") as file:
        file.write(f"{len(ordered)} processes of the run, oldest first\n")
        for process in ordered:
            missing = f"not told within the {format_duration(limit_s)} for all processes"
            file.write(f"\n== {process} {told.get(process.pid, missing)}\n")
    if devices is not None:
        _await(devices, directory.npu_smi, deadline)


def _look_at(processes: Sequence[Process], py_spy: str | None, deadline: Deadline) -> dict[int, str]:
    """Return what was told of each process, by number, when the deadline is over or all is told."""
    to_do: queue.SimpleQueue[Process] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
    for process in processes:
        to_do.put(process)

    def look() -> None:
        with contextlib.suppress(queue.Empty):
            while not deadline.is_over():
                process = to_do.get_nowait()
                done.put((process.pid, _describe(process.pid, py_spy, deadline)))

    for _ in range(min(_AT_ONCE, (os.cpu_count() or 1) + 1, len(processes))):
        threading.Thread(target=look, name="scene", daemon=True).start()
    told: dict[int, str] = {}
    with contextlib.suppress(queue.Empty):
        while len(told) < len(processes):
            pid, text = done.get(timeout=deadline.remaining_s())
            told[pid] = text
    return told


def _describe(pid: int, py_spy: str | None, deadline: Deadline) -> str:
    command = _read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()[:_COMMAND_LIMIT]
    return "\n".join((command, *_kernel_facts(pid), _python_stack(pid, py_spy, deadline)))


def _kernel_facts(pid: int) -> list[str]:
    """Return state, threads and memory of a process, what it waits for, and its kernel stack where we may read it."""
    wanted = ("State:", "PPid:", "Threads:", "VmRSS:")
    facts = [" ".join(line.split()) for line in _read(f"/proc/{pid}/status").splitlines() if line.startswith(wanted)]
    waits_in = _read(f"/proc/{pid}/wchan").strip()
    stack = _read(f"/proc/{pid}/stack").strip()
    found = (", ".join(facts) or "gone", f"waits in: {waits_in}" if waits_in.strip("0") else "", stack)
    return [text for text in found if text]


def _python_stack(pid: int, py_spy: str | None, deadline: Deadline) -> str:
    maps = _read(f"/proc/{pid}/maps")
    if "/libpython" not in maps and "/bin/python" not in maps:  # not the command: a process of Ray gives itself another name
        return "no Python in it"
    if py_spy is None:
        return _NO_PY_SPY
    argv = [py_spy, "dump", "--pid", str(pid)]
    try:
        done = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=deadline.remaining_s(), check=False)
    except subprocess.TimeoutExpired:
        return "no Python stack: py-spy did not end in time"
    except OSError as error:
        return f"no Python stack: py-spy could not be started: {error}"
    text = done.stdout[:STACK_LIMIT_BYTES].decode(errors="replace").strip()
    return text or f"no Python stack: py-spy: {done.stderr[-1000:].decode(errors='replace').strip()}"


def _start_npu_smi(npu_smi: str, target: Path) -> subprocess.Popen[bytes] | None:
    with contextlib.suppress(OSError), target.open("wb") as file:
        return subprocess.Popen([npu_smi, "info"], stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    return None


def _await(npu_smi: subprocess.Popen[bytes], target: Path, deadline: Deadline) -> None:
    try:
        npu_smi.wait(timeout=deadline.remaining_s())
    except subprocess.TimeoutExpired:
        npu_smi.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it hangs in the driver: nobody waits for that
            npu_smi.wait(timeout=0.5)
        with contextlib.suppress(OSError), target.open("a", encoding="utf-8") as file:
            file.write(f"\nnpu-smi did not end within {format_duration(deadline.limit_s)}\n")


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # a hundred processes in a moment: no Path objects
            return file.read().decode(errors="replace")
    except OSError:  # gone, or not ours to read
        return ""
