"""Leases: exclusive hold of N devices of one host by one run, first come, first served.

Must not know: what a device is beyond its number, its card and the name of its lock. A lease is held by descriptors: pass
`lease.fds` to the training process (`pass_fds`), and the devices stay held until that process is gone too, even if its starter was
killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from ..deadline import Deadline, format_duration
from ..errors import LeaseError
from .locks import Holder, LockDirectory, free

_MUTEX = "devices.mutex"
_TICKET = re.compile(r"ticket-(\d{10,})-[0-9a-f]{8}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """One device that can be leased.

    `id` is its number for this process and its children (what ASCEND_RT_VISIBLE_DEVICES takes), `card` groups the dies of one card,
    `lock_name` is the same for everybody on this host who means this device.
    """

    id: int
    card: int
    lock_name: str


@dataclass(slots=True)
class Lease:
    """Devices held for one run; a context manager that gives them back.

    `device_ids` is ascending, as ASCEND_RT_VISIBLE_DEVICES wants it. `fds` go into `pass_fds` of the training process; no other
    program inherits them.
    """

    device_ids: tuple[int, ...]
    fds: tuple[int, ...] = field(repr=False)

    def __enter__(self) -> Lease:  # noqa: PYI034  # typing.Self came with 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()

    def release(self) -> None:
        """Give the devices back; a training process that still runs with the descriptors keeps them until its end."""
        # Closed, not unlocked: unlocking would free the devices under a training process that outlived us.
        fds, self.fds = self.fds, ()
        for descriptor in fds:
            os.close(descriptor)


def simulated_slots(count: int) -> tuple[Slot, ...]:
    """Return the slots of `count` simulated devices: one to a card, under locks of their own."""
    return tuple(Slot(id=number, card=number, lock_name=f"sim-{number}") for number in range(count))


@dataclass(frozen=True, kw_only=True, slots=True)
class DevicePool:
    """The devices of this host that the caller may lease.

    Pools of other processes on the same lock directory may hold more, fewer or other devices: a request waits only for earlier ones
    that could take a device of its own pool.
    """

    slots: Sequence[Slot]
    locks: LockDirectory = field(default_factory=LockDirectory)
    poll_s: float = 0.2

    def lease(self, count: int, *, deadline: Deadline, owner: str) -> Lease:
        """Return `count` devices as soon as it is this request's turn; none is taken before all are free.

        Whole cards are preferred; single dies come from cards that are in use already. `owner` is what others read who wait.

        Raises:
            LeaseError: the pool never has as many, or the deadline passed; the message names who holds and who waits for what.
        """
        if not 0 < count <= len(self.slots):
            ids = ", ".join(str(slot.id) for slot in self.slots) or "none"
            raise LeaseError(f"{count} devices cannot be leased for {owner!r}: the pool has {len(self.slots)} (devices: {ids})")
        self.locks.prepare()
        with self._ticket(count, deadline, owner) as ticket:
            while True:
                with self.locks.mutex(_MUTEX, deadline):
                    ahead = self._ahead_of(ticket)
                    lease = None if ahead else self._take(count, owner)
                    is_over = lease is None and deadline.is_over()
                    held = self._held() if is_over else {}
                if lease is not None:
                    return lease
                if is_over:
                    raise LeaseError(*self._refusal(count, deadline, owner, held=held, ahead=ahead))
                self.locks.sleep(min(self.poll_s, deadline.remaining_s()))

    @contextlib.contextmanager
    def _ticket(self, count: int, deadline: Deadline, owner: str) -> Iterator[str]:
        """Stand in the queue: a file whose number is the place, and whose lock tells that its holder still waits."""
        with self.locks.mutex(_MUTEX, deadline):
            last = max((number for number, _ in self._tickets()), default=0)
            name = f"ticket-{last + 1:010d}-{secrets.token_hex(4)}"
            descriptor = self.locks.lock_new(name)
            self.locks.write_holder(descriptor, owner, count=count, among=[slot.lock_name for slot in self.slots])
        try:
            yield name
        finally:
            self.locks.remove(name)
            free(descriptor)

    def _tickets(self) -> list[tuple[int, str]]:
        """Return the tickets by place, also those whose holder was killed."""
        matches = (_TICKET.fullmatch(path.name) for path in self.locks.path.iterdir())
        return sorted((int(match[1]), match[0]) for match in matches if match)

    def _ahead_of(self, ticket: str) -> list[Holder | None]:
        """Return who came earlier, still waits, and could take a device of this pool."""
        own = {slot.lock_name for slot in self.slots}
        ahead = []
        for _, name in self._tickets():
            if name == ticket:
                break
            descriptor = self.locks.try_lock(name)
            if descriptor is not None:
                self.locks.remove(name)
                free(descriptor)
                continue
            holder = self.locks.read_holder(name)
            if holder is None or own & set(holder.among):
                ahead.append(holder)
        return ahead

    def _take(self, count: int, owner: str) -> Lease | None:
        """Lock `count` devices if as many are free, else none; under the mutex, so that nobody sees one locked for a try."""
        taken: dict[int, int] = {}
        chosen: tuple[Slot, ...] = ()
        try:
            for slot in self.slots:
                descriptor = self.locks.try_lock(slot.lock_name)
                if descriptor is not None:
                    taken[slot.id] = descriptor
            chosen = choose(count, [slot for slot in self.slots if slot.id in taken], self.slots)
            for slot in chosen:
                self.locks.write_holder(taken[slot.id], owner)
            fds = tuple(taken.pop(slot.id) for slot in chosen)
        finally:
            for descriptor in taken.values():
                free(descriptor)
        return Lease(tuple(slot.id for slot in chosen), fds) if chosen else None

    def _held(self) -> dict[int, Holder | None]:
        held: dict[int, Holder | None] = {}
        for slot in self.slots:
            descriptor = self.locks.try_lock(slot.lock_name)
            if descriptor is None:
                held[slot.id] = self.locks.read_holder(slot.lock_name)
            else:
                free(descriptor)
        return held

    def _refusal(
        self, count: int, deadline: Deadline, owner: str, *, held: Mapping[int, Holder | None], ahead: Sequence[Holder | None]
    ) -> Iterator[str]:
        yield (
            f"{count} of {len(self.slots)} devices could not be leased for {owner!r} within {format_duration(deadline.limit_s)}"
            f" ({deadline.name}): {len(self.slots) - len(held)} free, {len(ahead)} earlier requests waiting;"
            " wait longer, or end what holds them:"
        )
        for number, holder in held.items():
            yield f"device {number}: held by {holder or 'a process that left no name'}"
        for waiting in ahead:
            yield f"waiting for {waiting.count} devices: {waiting}" if waiting else "waiting: a process that left no name"


def choose(count: int, idle: Sequence[Slot], pool: Iterable[Slot]) -> tuple[Slot, ...]:
    """Return `count` of the idle slots, ascending by id, or none if there are too few.

    Whole idle cards first, the rest from cards that are partly in use (fullest first), and only then from breaking up a card.
    """
    if len(idle) < count:
        return ()
    sizes = Counter(slot.card for slot in pool)
    by_card: dict[int, list[Slot]] = {}
    for slot in sorted(idle, key=lambda slot: slot.id):
        by_card.setdefault(slot.card, []).append(slot)
    whole = [slots for card, slots in by_card.items() if len(slots) == sizes[card]]
    broken = sorted((slots for card, slots in by_card.items() if len(slots) < sizes[card]), key=len)
    chosen: list[Slot] = []
    rest: list[list[Slot]] = []
    for slots in whole:
        if len(chosen) + len(slots) <= count:
            chosen += slots
        else:
            rest.append(slots)
    for slots in [*broken, *rest]:
        chosen += slots[: count - len(chosen)]
    return tuple(sorted(chosen, key=lambda slot: slot.id))
