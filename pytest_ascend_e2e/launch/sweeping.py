"""Sweeping: the end of what a run left behind, and of what the runs of dead sessions left behind. Nothing else is touched.

Must not know: the run in progress; its supervisor asks for the sweep.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .processes import (
    OWNER,
    RUN_ID,
    Process,
    Signs,
    end,
    find,
    is_owner_alive,
    read_environment,
    read_table,
    shares_namespace,
    tag_of,
)
from .ray_home import HOMES, orphaned_homes

GRACE_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Leftovers:
    """What runs of other sessions have left on this host.

    `ended` names the processes whose session is dead, which were ended; `closed` the runs whose book was closed, with their
    directory of Ray removed; `others` the runs, with their number of processes, that belong to a live session or to another
    container, which were not touched.
    """

    ended: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def sweep(run_id: str, *, places: Iterable[str | os.PathLike[str]] = (), grace_s: float = GRACE_S) -> list[str]:
    """End every process of this run, those in sessions of their own too; return what had to be ended, as `name[pid]`.

    `places` are files and directories that only this run writes its output to.
    """
    signs = Signs(tags=frozenset({tag_of(run_id)}), places=tuple(os.fspath(place) for place in places))
    told, _ = end(lambda: find(signs), grace_s=grace_s)
    return [str(process) for process in told]


def sweep_dead_sessions(*, grace_s: float = GRACE_S, homes: Path = HOMES) -> Leftovers:
    """End the processes of runs whose session is gone, and close their books; name the runs whose session lives."""
    dead: set[bytes] = set()
    others: Counter[str] = Counter()
    for pid in read_table():
        environment = read_environment(pid)
        run_id = os.fsdecode(environment.get(RUN_ID.encode(), b""))
        if not run_id:
            continue
        owner = os.fsdecode(environment.get(OWNER.encode(), b""))
        if shares_namespace(pid) and not is_owner_alive(owner):
            dead.add(tag_of(run_id))
        else:
            others[run_id] += 1
    ended: list[Process] = []
    if dead:
        ended, _ = end(lambda: find(Signs(tags=frozenset(dead))), grace_s=grace_s)
    closed: list[str] = []
    for book, owner in orphaned_homes(homes):
        if not is_owner_alive(owner) and not find(Signs(tags=frozenset({tag_of(book.run_id)}))):
            book.close("the pytest process and the keeper of the run are gone")
            closed.append(book.run_id)
    return Leftovers(
        ended=tuple(str(process) for process in ended),
        closed=tuple(sorted(closed)),
        others=tuple(f"{run_id}: {count} processes" for run_id, count in sorted(others.items())),
    )
