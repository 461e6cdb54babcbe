"""The processes of a run: finding them all, and ending them all.

A process belongs to a run if it carries the run's tag in its environment, descends from one that does, lives in a session such a
process opened, or writes its output into a place of the run. One sign is not enough: daemons leave the group by `setsid`, orphans
lose their parent, and a process that sets its own title may write it over the environment that /proc shows.

Must not know: what a run is, or why it ends. Standard library only, and no import from outside this room: the keeper loads it bare.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

RUN_ID = "ASCEND_E2E_RUN_ID"
OWNER = "ASCEND_E2E_OWNER"

_ENDED_STATES = frozenset("ZX")
_POLL_S = 0.1
_STUCK_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """One live process as /proc tells it; `started` is in clock ticks since boot and, with `pid`, names it for ever."""

    pid: int
    started: int
    parent: int
    session: int
    name: str

    def __str__(self) -> str:
        return f"{self.name}[{self.pid}]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Signs:
    """How the processes of one run are told from all others.

    `tags` are whole entries of an environment (`b"NAME=value"`), of which one is enough; `places` are files and directories that
    only the run writes its output to; `roots` are processes whose descendants are the run's. `spared` are never found: the keeper.
    """

    tags: frozenset[bytes] = frozenset()
    places: tuple[str, ...] = ()
    roots: tuple[int, ...] = ()
    spared: frozenset[int] = frozenset()


def tag_of(run_id: str) -> bytes:
    """Return the entry of the environment that all processes of this run were started with."""
    return os.fsencode(f"{RUN_ID}={run_id}")


def read_process(pid: int) -> Process | None:
    """Return the process with this number, None if there is none or if it is only waiting to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  # hundreds of them for each look: no Path objects
            text = file.read()
    except OSError:
        return None
    head, _, tail = text.rpartition(b")")
    fields = tail.split()
    if fields[0].decode() in _ENDED_STATES:
        return None
    name = head.partition(b"(")[2].decode(errors="replace")
    return Process(pid=pid, parent=int(fields[1]), session=int(fields[3]), started=int(fields[19]), name=name)


def read_table() -> dict[int, Process]:
    """Return all live processes of this host (or of this container) by number."""
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208  # as above
    return {process.pid: process for process in found if process is not None}


def read_environment(pid: int) -> Mapping[bytes, bytes]:
    """Return the environment a process was started with; empty if it is another user's, gone, or has wiped it."""
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():  # noqa: PTH116  # as above
            return {}
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123  # as above
            entries = file.read().split(b"\0")
    except OSError:
        return {}
    return {name: value for name, separator, value in (entry.partition(b"=") for entry in entries) if separator}


def find(signs: Signs, table: Mapping[int, Process] | None = None) -> list[Process]:
    """Return the live processes that show one of the signs, descendants and sessions included, by number."""
    table = read_table() if table is None else table
    spared = signs.spared | _lineage(os.getpid(), table)
    found = {pid for pid in table if pid not in spared and _shows_sign(pid, signs)}
    own_session = os.getsid(0)
    while True:
        sessions = {table[pid].session for pid in found} - {own_session, 0}
        kin = {
            process.pid
            for process in table.values()
            if process.parent in found or process.parent in signs.roots or process.session in sessions
        }
        if kin - spared <= found:
            return [table[pid] for pid in sorted(found)]
        found |= kin - spared


def end(
    look: Callable[[], Sequence[Process]],
    *,
    grace_s: float,
    reap: Callable[[], None] = lambda: None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Process], list[Process]]:
    """End every process `look` finds: TERM, a grace of `grace_s` seconds, KILL; look again until none is left.

    Returns:
        the processes that were told to end, and those of them that live on all the same (stuck in a driver, for example).
    """
    told: dict[tuple[int, int], Process] = {}
    kill_at = clock() + grace_s
    give_up_at = kill_at + _STUCK_S
    while True:
        reap()
        left = list(look())
        now = clock()
        if not left or now >= give_up_at:
            return list(told.values()), left
        for process in left:
            is_new = (process.pid, process.started) not in told
            told[process.pid, process.started] = process
            if now >= kill_at:
                send(process, signal.SIGKILL)
            elif is_new:
                send(process, signal.SIGTERM)
                send(process, signal.SIGCONT)
        sleep(_POLL_S)


def send(process: Process, number: signal.Signals) -> None:
    """Send a signal to this very process, and to no other that may have got its number since."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone meanwhile; changed its user: then it stays in sight
        try:
            descriptor = os.pidfd_open(process.pid)
        except OSError:  # a kernel before 5.3, or gone: then the number is all there is
            descriptor = None
        try:
            now = read_process(process.pid)
            if now is None or now.started != process.started:
                return
            if descriptor is None:
                os.kill(process.pid, number)
            else:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            if descriptor is not None:
                os.close(descriptor)


def owner_text(pid: int) -> str:
    """Return the name of a process that no later process can have: number and start time."""
    process = read_process(pid)
    return f"{pid}:{process.started if process else 0}"


def is_owner_alive(text: str) -> bool:
    """Tell whether the process named by `owner_text` still lives; text of another form counts as alive, for caution."""
    pid, _, started = text.partition(":")
    if not (pid.isdigit() and started.isdigit()):
        return True
    process = read_process(int(pid))
    return process is not None and process.started == int(started)


def shares_namespace(pid: int) -> bool:
    """Tell whether a process counts processes as we do: in another container the number of its owner means nothing to us."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # no Path objects here
    except OSError:
        return False


def _shows_sign(pid: int, signs: Signs) -> bool:
    if signs.tags:
        environment = read_environment(pid)
        if any(environment.get(name) == value for name, _, value in (tag.partition(b"=") for tag in signs.tags)):
            return True
    return bool(signs.places) and any(_is_within(_output_of(pid, stream), signs.places) for stream in (1, 2))


def _output_of(pid: int, stream: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{stream}")  # noqa: PTH115  # no Path objects here
    except OSError:
        return ""


def _is_within(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(place + "/") for place in places)


def _lineage(pid: int, table: Mapping[int, Process]) -> set[int]:
    line: set[int] = set()
    while pid in table and pid not in line:
        line.add(pid)
        pid = table[pid].parent
    return line
