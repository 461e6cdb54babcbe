"""A process that leases devices, as the sessions of several users would; started with `python -m tests.fakes.lease_holder`."""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.runners import DevicePool, LockDirectory, simulated_slots

ROOT = Path(__file__).parents[2]


def start(directory: Path, *words: str) -> subprocess.Popen[str]:
    """Start a holder on the locks in `directory`; its standard output is a pipe."""
    argv = [sys.executable, "-m", "tests.fakes.lease_holder", str(directory), *words]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)


def pool(directory: Path, devices: int, *, poll_s: float = 0.01) -> DevicePool:
    """Return the pool that holders on `directory` share."""
    return DevicePool(slots=simulated_slots(devices), locks=LockDirectory(directory), poll_s=poll_s)


@contextmanager
def evidence(files: dict[int, int], ids: tuple[int, ...], log: int) -> Iterator[None]:
    """Mark devices as in use by another kind of lock, which ends with its process too; two marks are a double allocation."""
    with ExitStack() as stack:
        for number in ids:
            try:
                fcntl.lockf(files[number], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.write(log, f"DOUBLE {number}\n".encode())
            stack.callback(fcntl.lockf, files[number], fcntl.LOCK_UN)
        yield


def cycle(options: argparse.Namespace) -> None:
    """Lease some devices again and again, and write one line to the log for each time."""
    # Opened before any lease: a killed process loses its descriptors in ascending order, so its marks must come first.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    log = os.open(options.directory / "log", flags)
    files = {number: os.open(options.directory / f"evidence-{number}", flags) for number in range(options.devices)}
    chance = random.Random(options.seed)  # noqa: S311  # a test's dice
    devices = pool(options.directory / "locks", options.devices)
    while True:
        count = chance.randint(1, options.most)
        with devices.lease(count, deadline=Deadline.after(60, name="lease"), owner=f"holder {options.seed}") as lease:
            with evidence(files, lease.device_ids, log):
                time.sleep(chance.uniform(0, 0.004))
            os.write(log, f"{options.seed} {count}\n".encode())


def hold(options: argparse.Namespace) -> None:
    """Lease all devices, start a process that inherits them (or does not), say its id, and wait to be ended."""
    devices = pool(options.directory / "locks", options.devices)
    with devices.lease(options.devices, deadline=Deadline.after(20, name="lease"), owner="the first run") as lease:
        child = subprocess.Popen(["/bin/sleep", "300"], pass_fds=lease.fds if options.inherit else (), stdout=subprocess.DEVNULL)
        sys.stdout.write(f"{child.pid}\n")
        sys.stdout.flush()
        child.wait()


def main() -> None:
    """Read the arguments and do what the first word says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("what", choices=("cycle", "hold"))
    parser.add_argument("--devices", type=int, required=True)
    parser.add_argument("--most", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inherit", action="store_true")
    options = parser.parse_args()
    {"cycle": cycle, "hold": hold}[options.what](options)


if __name__ == "__main__":
    main()
