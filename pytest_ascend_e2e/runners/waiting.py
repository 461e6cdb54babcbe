"""Who holds which lock, and who waits for what: as data, and as lines for people.

Must not know: how a lock is taken in turn (`leases.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .locks import Holder, LockDirectory, free

_TICKET = re.compile(r"ticket-(\d{10,})-[0-9a-f]{8}")
_NAMELESS = "a process that left no name"


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """What a request for `count` of the `pool` devices waits for.

    `held` tells by id who has leased a device, `foreign` how a device without a lease is in use, `ahead` who came earlier.
    """

    count: int
    pool: int
    held: Mapping[int, Holder | None]
    foreign: Mapping[int, str]
    ahead: Sequence[Holder | None]

    @property
    def head(self) -> str:
        """How many are free, and how many requests stand before this one."""
        occupied = f"{len(self.foreign)} in use without a lease, " if self.foreign else ""
        free_now = self.pool - len(self.held.keys() | self.foreign.keys())
        return f"{free_now} free, {occupied}{len(self.ahead)} earlier requests waiting"

    def lines(self) -> Iterator[str]:
        """Yield a line for each device that is not free, and for each earlier request."""
        for number, holder in self.held.items():
            yield f"device {number}: held by {holder or _NAMELESS}"
        for number, how in self.foreign.items():
            if number not in self.held:
                yield f"device {number}: {how}"
        for waiting in self.ahead:
            yield f"waiting for {waiting.count} devices: {waiting}" if waiting else f"waiting: {_NAMELESS}"


def tickets_of(locks: LockDirectory) -> list[tuple[int, str]]:
    """Return the tickets by place, also those whose holder was killed."""
    matches = (_TICKET.fullmatch(path.name) for path in locks.path.iterdir())
    return sorted((int(match[1]), match[0]) for match in matches if match)


def holder_of(locks: LockDirectory, name: str) -> tuple[bool, Holder | None]:
    """Tell whether somebody holds the lock `name`, and who, if he left a name."""
    descriptor = locks.try_lock(name)
    if descriptor is None:
        return True, locks.read_holder(name)
    free(descriptor)
    return False, None
