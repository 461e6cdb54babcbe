"""Thousands of leases by many processes of which some are killed, and what the log of it proves.

    python benchmarks/leases.py [--cycles 2000] [--processes 16] [--devices 16] [--seed 0] [--log FILE]
    python benchmarks/leases.py --verify FILE

The processes lease one device, a few, or all, hold them for some milliseconds, and give them back; one after another is killed at a
random moment and another takes its place. Each writes down what it asks for, has, and gives back, and this script whom it killed,
into one log. The log is then read: no device may have had two holders at once, every device must be free when all is done, and
a request for all devices must not have been passed by later ones. `--verify` reads a log that is there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.runners import DevicePool, LockDirectory, simulated_slots

HELD_S = 0.004
WAIT_S = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One line of the log: seconds of the host's monotonic clock, the process it is about, what happened, and to which devices.

    `what` is asked (for `count`), waits (behind `ahead` others), has, gives back, killed, or free (at the end, by this script).
    """

    at_s: float
    pid: int
    what: str
    count: int = 0
    devices: tuple[int, ...] = ()
    ahead: int = 0

    def write(self, log: int) -> None:
        """Append it to the log, in one piece."""
        fields = {"at_s": self.at_s, "pid": self.pid, "what": self.what}
        more = {"count": self.count, "devices": self.devices, "ahead": self.ahead}
        os.write(log, json.dumps(fields | {name: value for name, value in more.items() if value}).encode() + b"\n")


def read_log(path: Path) -> list[Event]:
    """Return the events of a log, by time."""
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return sorted((Event(**{**entry, "devices": tuple(entry.get("devices", ()))}) for entry in entries), key=lambda one: one.at_s)


def pool(directory: Path, devices: int) -> DevicePool:
    """Return the pool that all of them share."""
    return DevicePool(slots=simulated_slots(devices), locks=LockDirectory(directory / "locks"), poll_s=0.005)


def hold_again_and_again(directory: Path, devices: int, seed: int) -> None:
    """Lease, hold and give back until somebody kills this process."""
    log = os.open(directory / "log.jsonl", os.O_WRONLY | os.O_APPEND)
    dice, pid = random.Random(seed), os.getpid()

    def note(what: str, *, count: int = 0, held: Sequence[int] = (), ahead: int = 0) -> None:
        Event(at_s=time.monotonic(), pid=pid, what=what, count=count, devices=tuple(held), ahead=ahead).write(log)

    while True:
        count = dice.choices((1, dice.randint(2, max(2, devices // 2)), devices), weights=(8, 2, 1))[0]
        note("asked", count=count)
        with pool(directory, devices).lease(
            count,
            deadline=Deadline.after(WAIT_S, name="lease"),
            owner=f"process {pid}",
            tell=lambda waiting, count=count: note("waits", count=count, ahead=len(waiting.ahead)),  # type: ignore[misc]  # bound now
        ) as lease:
            note("has", count=count, held=lease.device_ids)
            time.sleep(dice.uniform(0, HELD_S))
            note("gives back", held=lease.device_ids)


def double_holders(events: Iterable[Event]) -> list[str]:
    """Return each device that somebody got while another had it.

    A holder's time ends with the line before it gives back, or before it is killed: in truth it had the devices a little longer, so
    an overlap in the log is one in truth.
    """
    holder: dict[int, int] = {}
    problems = []
    for event in events:
        if event.what == "has":
            problems += [
                f"{event.at_s:.6f}: process {event.pid} got device {device}, which process {holder[device]} had"
                for device in event.devices
                if device in holder
            ]
            holder |= dict.fromkeys(event.devices, event.pid)
        elif event.what in {"gives back", "killed"}:
            holder = {device: pid for device, pid in holder.items() if pid != event.pid}
    return problems


def leaks(events: Sequence[Event], devices: int) -> list[str]:
    """Return the devices that were not free when everything was done."""
    at_the_end = {device for event in events[-1:] if event.what == "free" for device in event.devices}
    return [f"device {device} was not free at the end" for device in range(devices) if device not in at_the_end]


def passed_requests(events: Sequence[Event], devices: int, processes: int) -> list[str]:
    """Return each request for all devices that later ones passed.

    While it waits, only those get devices that stood before it; some more lines may stand in between, since a process is not always
    quick to write down what it has: one for each other process at most.
    """
    problems = []
    waiting: dict[int, tuple[float, int, int]] = {}
    for event in events:
        if event.what == "waits" and event.count == devices and event.pid not in waiting:
            waiting[event.pid] = (event.at_s, event.ahead + processes - 1, 0)
        elif event.what == "has":
            waiting.pop(event.pid, None)
            waiting = {pid: (since, allowed, seen + 1) for pid, (since, allowed, seen) in waiting.items()}
            problems += [
                f"{event.at_s:.6f}: process {pid}, waiting since {since:.6f} for all devices, saw {seen} others get theirs"
                for pid, (since, allowed, seen) in waiting.items()
                if seen == allowed + 1
            ]
        elif event.what == "killed":
            waiting.pop(event.pid, None)
    return problems


def verify(events: Sequence[Event], *, devices: int, processes: int) -> list[str]:
    """Return everything that the log shows to be wrong."""
    return [*double_holders(events), *leaks(events, devices), *passed_requests(events, devices, processes)]


def summary(events: Sequence[Event], devices: int) -> str:
    """Return what happened, in one line."""
    what = Counter(event.what for event in events)
    asked: dict[int, Event] = {}
    waits = []
    for event in events:
        if event.what == "asked":
            asked[event.pid] = event
        elif event.what == "has" and event.count == devices:
            waits.append(event.at_s - asked[event.pid].at_s)
    spent = f"{events[-1].at_s - events[0].at_s:.0f} s"
    longest = f"{max(waits, default=0.0):.2f} s"
    return (
        f"{what['has']} leases by {len({event.pid for event in events})} processes, {what['killed']} of them killed, in {spent};"
        f" {len(waits)} for all {devices} devices, which waited {longest} at most"
    )


def run(directory: Path, *, cycles: int, processes: int, devices: int, seed: int) -> list[Event]:
    """Let the processes lease until there were enough leases, and return the log."""
    path = directory / "log.jsonl"
    log = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    dice = random.Random(seed)
    count = 0
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        nonlocal count
        count += 1
        words = ["--holder", str(seed * 1_000_000 + count), "--devices", str(devices), "--directory", str(directory)]
        running.append(subprocess.Popen([sys.executable, __file__, *words]))

    def kill(child: subprocess.Popen[bytes]) -> None:
        Event(at_s=time.monotonic(), pid=child.pid, what="killed").write(log)
        child.send_signal(signal.SIGKILL)
        child.wait()
        running.remove(child)

    try:
        for _ in range(processes):
            start()
        kill_at = 0
        while (seen := path.read_bytes().count(b'"has"')) < cycles:
            if seen >= kill_at:
                if kill_at:
                    kill(dice.choice(running))
                    start()
                kill_at = seen + dice.randint(5, 30)
            if any(child.poll() is not None for child in running):
                sys.exit("a process ended by itself: see above")
            time.sleep(dice.uniform(0, 0.02))
    finally:
        for child in tuple(running):
            kill(child)
    with pool(directory, devices).lease(devices, deadline=Deadline.after(WAIT_S, name="the end"), owner="the end") as lease:
        Event(at_s=time.monotonic(), pid=os.getpid(), what="free", devices=lease.device_ids).write(log)
    os.close(log)
    return read_log(path)


def main() -> int:
    """Run, or read a log; exit status 1 if the log shows something wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--devices", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="keep the log here")
    parser.add_argument("--verify", type=Path, metavar="FILE")
    parser.add_argument("--holder", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.holder is not None:
        hold_again_and_again(args.directory, args.devices, args.holder)
    if args.verify is not None:
        events = read_log(args.verify)
    else:
        with tempfile.TemporaryDirectory(prefix="leases-") as name:
            directory = Path(name)
            sizes = {"cycles": args.cycles, "processes": args.processes, "devices": args.devices}
            events = run(directory, **sizes, seed=args.seed)
            if args.log is not None:
                args.log.write_bytes((directory / "log.jsonl").read_bytes())
    problems = verify(events, devices=args.devices, processes=args.processes)
    print(summary(events, args.devices))
    print("\n".join(problems) or "no device had two holders, none was left held, no request for all devices was passed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
