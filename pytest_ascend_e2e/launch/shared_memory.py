"""Shared memory that a killed run leaves in /dev/shm: nobody else removes it before the next boot, and the next run needs the room.

A segment carries no name of a run. It is the run's if one of its processes was seen to map it, and it is younger than the run.
Must not know: what is in it. Standard library only, and no import from outside this room: the keeper loads it bare.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable

PLACE = "/dev/shm/"  # noqa: S108  # where the kernel keeps them
_MAPPED = re.compile(rb" (" + re.escape(PLACE.encode()) + rb"[^\n]+)\n")
_GONE = b" (deleted)"


def mapped_segments(pids: Iterable[int]) -> set[str]:
    """Return the paths of the segments that these processes map and that still have a name."""
    found: set[bytes] = set()
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as file:  # noqa: PTH123  # gone, or another user's
            found.update(_MAPPED.findall(file.read()))
    return {os.fsdecode(path) for path in found if not path.endswith(_GONE)}


def remove_segments(segments: Iterable[str], *, in_use: set[str], born_after: float) -> list[str]:
    """Remove the segments that nobody maps any more; return their paths.

    `in_use` are paths that live processes map. A segment that was there before `born_after` (seconds since the epoch), or that
    belongs to another user, was not made by the run.
    """
    removed: list[str] = []
    for path in sorted(set(segments) - in_use):
        with contextlib.suppress(OSError):  # removed by its owner meanwhile
            status = os.lstat(path)
            if status.st_uid == os.geteuid() and _birth(status) >= born_after:
                os.unlink(path)  # noqa: PTH108  # the keeper loads as little as it can
                removed.append(path)
    return removed


def _birth(status: os.stat_result) -> float:
    # No birth is told here, but neither time is before it; the older of them rules out most of what was there before.
    return min(status.st_mtime, status.st_ctime)
