"""Leases: exclusive hold of N devices of one host by one run, first come, first served.

Must not know: what a device is beyond its number, its card and the name of its lock. A lease is held by descriptors: pass
`lease.fds` to the training process (`pass_fds`), and the devices stay held until that process is gone too, even if its starter was
killed.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..deadline import Deadline, format_duration
from ..errors import LeaseError
from .locks import Held, Holder, LockDirectory, free
from .waiting import Waiting, holder_of, tickets_of

_MUTEX = "devices.mutex"
_DEVICE = re.compile(r"(?:npu|sim)-[0-9.]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """One device that can be leased.

    `id` is its number for this process and its children (what ASCEND_RT_VISIBLE_DEVICES takes), `card` groups the dies of one card,
    `lock_name` is the same for everybody on this host who means this device.
    """

    id: int
    card: int
    lock_name: str


@dataclass(kw_only=True, slots=True)
class Lease(Held):
    """Devices held for one run; a context manager that gives them back.

    `device_ids` is ascending, as ASCEND_RT_VISIBLE_DEVICES wants it.
    """

    device_ids: tuple[int, ...]


def simulated_slots(count: int) -> tuple[Slot, ...]:
    """Return the slots of `count` simulated devices: one to a card, under locks of their own."""
    return tuple(Slot(id=number, card=number, lock_name=f"sim-{number}") for number in range(count))


@dataclass(frozen=True, kw_only=True, slots=True)
class DevicePool:
    """The devices of this host that the caller may lease.

    Pools of other processes on the same lock directory may hold more, fewer or other devices: a request waits only for earlier ones
    that could take a device of its own pool.

    `occupied` tells, by id, which devices somebody uses who has no lease, and how; it may take seconds. Such a device is not taken,
    and a request that only waits for such a device lets later ones pass.
    """

    slots: Sequence[Slot]
    locks: LockDirectory = field(default_factory=LockDirectory)
    poll_s: float = 0.2
    occupied: Callable[[], Mapping[int, str]] | None = None
    look_every_s: float = 5.0
    tell_every_s: float = 60.0

    def lease(self, count: int, *, deadline: Deadline, owner: str, tell: Callable[[Waiting], None] | None = None) -> Lease:
        """Return `count` devices as soon as it is this request's turn; none is taken before all are free.

        Whole cards are preferred; single dies come from cards that are in use already. `owner` is what others read who wait; `tell`
        is told what this request waits for, when it begins to and from time to time.

        Raises:
            LeaseError: the pool never has as many, or the deadline passed; the message names who holds and who waits for what.
        """
        if not 0 < count <= len(self.slots):
            ids = ", ".join(str(slot.id) for slot in self.slots) or "none"
            raise LeaseError(f"{count} devices cannot be leased for {owner!r}: the pool has {len(self.slots)} (devices: {ids})")
        self.locks.prepare()
        telling = Deadline.after(0.0, name="telling", clock=deadline.clock)
        with self._ticket(count, deadline, owner) as ticket:
            while True:
                lease, ahead = self._try(ticket, deadline)
                if lease is not None:
                    return lease
                is_over = deadline.is_over()
                if is_over or (tell is not None and telling.is_over()):
                    waiting = self._waiting(ticket, ahead, deadline)
                    if is_over:
                        raise LeaseError(*_refusal(waiting, deadline, owner))
                    if tell is not None:
                        tell(waiting)
                    telling = Deadline.after(self.tell_every_s, name="telling", clock=deadline.clock)
                self.locks.sleep(min(self.poll_s, deadline.remaining_s()))

    def _try(self, ticket: _Ticket, deadline: Deadline) -> tuple[Lease | None, list[Holder | None]]:
        """Return the lease if it is this request's turn and as many devices are free; and who stands before it."""
        with self.locks.mutex(_MUTEX, deadline):
            ahead = self._ahead_of(ticket.name)
            if ahead:
                return None, ahead
            if self.occupied is None:
                return self._take(ticket.count, ticket.owner, without={}), ahead
            idle = self._idle()
        # Outside of the mutex, since it may take seconds. Nobody has a lease of these, so what is seen there is no run of ours.
        self._look(ticket, idle)
        with self.locks.mutex(_MUTEX, deadline):
            ticket.step_aside(is_aside=len(self.slots) - len(ticket.foreign) < ticket.count)
            return self._take(ticket.count, ticket.owner, without=ticket.foreign), ahead

    def _waiting(self, ticket: _Ticket, ahead: Sequence[Holder | None], deadline: Deadline) -> Waiting:
        with self.locks.mutex(_MUTEX, deadline):
            held = self.held()
        return Waiting(count=ticket.count, pool=len(self.slots), held=held, foreign=ticket.foreign, ahead=ahead)

    @contextlib.contextmanager
    def _ticket(self, count: int, deadline: Deadline, owner: str) -> Iterator[_Ticket]:
        """Stand in the queue: a file whose number is the place, and whose lock tells that its holder still waits."""
        with self.locks.mutex(_MUTEX, deadline):
            last = max((number for number, _ in tickets_of(self.locks)), default=0)
            name = f"ticket-{last + 1:010d}-{secrets.token_hex(4)}"
            descriptor = self.locks.lock_new(name)
            among = tuple(slot.lock_name for slot in self.slots)
            looking = Deadline.after(0.0, name="looking", clock=deadline.clock)
            ticket = _Ticket(
                name=name, descriptor=descriptor, owner=owner, count=count, among=among, locks=self.locks, looking=looking
            )
            ticket.write()
        try:
            yield ticket
        finally:
            self.locks.remove(name)
            free(descriptor)

    def _ahead_of(self, ticket: str) -> list[Holder | None]:
        """Return who came earlier, still waits, and could take a device of this pool."""
        own = {slot.lock_name for slot in self.slots}
        ahead = []
        for _, name in tickets_of(self.locks):
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

    def _idle(self) -> tuple[int, ...]:
        """Return the devices that nobody has leased."""
        held = self.held()
        return tuple(slot.id for slot in self.slots if slot.id not in held)

    def _look(self, ticket: _Ticket, idle: tuple[int, ...]) -> None:
        """Find out which of the devices without a lease are in use all the same, when others are idle, or after a while."""
        if not idle:
            ticket.foreign = {}
        elif self.occupied is not None and (idle != ticket.seen_idle or ticket.looking.is_over()):
            occupied = self.occupied()
            ticket.foreign = {number: occupied[number] for number in idle if number in occupied}
            ticket.seen_idle = idle
            ticket.looking = Deadline.after(self.look_every_s, name="looking", clock=ticket.looking.clock)

    def _take(self, count: int, owner: str, *, without: Mapping[int, str]) -> Lease | None:
        """Lock `count` devices if as many are free, else none; under the mutex, so that nobody sees one locked for a try."""
        taken: dict[int, int] = {}
        chosen: tuple[Slot, ...] = ()
        try:
            for slot in self.slots:
                descriptor = None if slot.id in without else self.locks.try_lock(slot.lock_name)
                if descriptor is not None:
                    taken[slot.id] = descriptor
            chosen = choose(count, [slot for slot in self.slots if slot.id in taken], self.slots)
            for slot in chosen:
                self.locks.write_holder(taken[slot.id], owner)
            fds = tuple(taken.pop(slot.id) for slot in chosen)
        finally:
            for descriptor in taken.values():
                free(descriptor)
        return Lease(device_ids=tuple(slot.id for slot in chosen), fds=fds) if chosen else None

    def held(self) -> dict[int, Holder | None]:
        """Return who holds which device now, None for a process that left no name."""
        held: dict[int, Holder | None] = {}
        for slot in self.slots:
            is_held, holder = holder_of(self.locks, slot.lock_name)
            if is_held:
                held[slot.id] = holder
        return held


@dataclass(slots=True, kw_only=True)
class _Ticket:
    """A place in the queue, and what its holder has seen of the devices."""

    name: str
    descriptor: int
    owner: str
    count: int
    among: tuple[str, ...]
    locks: LockDirectory
    looking: Deadline
    is_aside: bool = False
    seen_idle: tuple[int, ...] = ()
    foreign: Mapping[int, str] = field(default_factory=dict)

    def write(self) -> None:
        """Write down what this request waits for; nobody waits for one that stands aside."""
        self.locks.write_holder(self.descriptor, self.owner, count=self.count, among=() if self.is_aside else self.among)

    def step_aside(self, *, is_aside: bool) -> None:
        """Let later requests pass, or no longer; the place is kept."""
        if is_aside != self.is_aside:
            self.is_aside = is_aside
            self.write()


def _refusal(waiting: Waiting, deadline: Deadline, owner: str) -> Iterator[str]:
    yield (
        f"{waiting.count} of {waiting.pool} devices could not be leased for {owner!r} within"
        f" {format_duration(deadline.limit_s)} ({deadline.name}): {waiting.head};"
        " wait longer, or end what holds them:"
    )
    yield from waiting.lines()


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """Who has leased what, by the names of the locks, and who waits, the first in the queue first; None left no readable name."""

    held: Mapping[str, Holder | None]
    waiting: Sequence[Holder | None]


def survey(locks: LockDirectory) -> Survey:
    """Return what is leased and waited for now; nothing is where nobody ever leased.

    Raises:
        LeaseError: another process has stopped in the middle of a lease, or the directory is not to be used.
    """
    if not locks.is_there():
        return Survey(held={}, waiting=())
    locks.prepare()
    names = sorted(path.name for path in locks.path.iterdir() if _DEVICE.fullmatch(path.name))
    with locks.mutex(_MUTEX, Deadline.after(0.0, name="looking at the leases")):
        found = {name: holder_of(locks, name) for name in (*names, *(name for _, name in tickets_of(locks)))}
    return Survey(
        held={name: found[name][1] for name in names if found[name][0]},
        waiting=[holder for name, (is_held, holder) in found.items() if is_held and name not in names],
    )


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
