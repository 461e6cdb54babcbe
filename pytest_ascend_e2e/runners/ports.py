"""Port ranges: consecutive TCP ports for one run, exclusive among the runs of this host and free at the time of the lease.

Must not know: what listens on them. The lock keeps other leases away, the bind finds programs that know nothing of leases.
"""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass, field

from ..deadline import Deadline, format_duration
from ..errors import LeaseError
from .locks import Held, Holder, LockDirectory, free

_MUTEX = "ports.mutex"
_LAST_PORT = 65535


@dataclass(kw_only=True, slots=True)
class PortLease(Held):
    """Consecutive ports held for one run; a context manager that gives them back. `ports` is ascending."""

    ports: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PortPool:
    """The ports `first` to `last` of this host; the default lies below the ephemeral ports and above Ray's workers.

    They are locked `unit` by `unit`, and a lease has as many descriptors as units: one for each port would be hundreds for a run.
    All who share a lock directory use the same unit.
    """

    first: int = 21000
    last: int = 28999
    unit: int = 1
    locks: LockDirectory = field(default_factory=LockDirectory)
    poll_s: float = 0.5

    def lease(self, count: int, *, deadline: Deadline, owner: str) -> PortLease:
        """Return a block of `count` consecutive ports that nobody has leased and nothing listens on.

        Raises:
            LeaseError: the range cannot hold as many, or none was free before the deadline.
        """
        size = self.last - self.first + 1
        if not (0 < self.first <= self.last <= _LAST_PORT and 0 < count <= size):
            raise LeaseError(
                f"{count} ports cannot be leased for {owner!r} from {self.first}-{self.last}: expected a range within"
                f" 1-{_LAST_PORT} that holds at least one and as many as are asked for"
            )
        self.locks.prepare()
        while True:
            with self.locks.mutex(_MUTEX, deadline):
                lease, busy = self._take(count, owner)
            if lease is not None:
                return lease
            if deadline.is_over():
                raise LeaseError(
                    f"{count} consecutive ports of {self.first}-{self.last} were not free for {owner!r} within"
                    f" {format_duration(deadline.limit_s)} ({deadline.name}); choose a wider range, or end what holds them:",
                    *(f"port {port}: {holder or 'in use by a program without a lease'}" for port, holder in busy[:20]),
                )
            self.locks.sleep(min(self.poll_s, deadline.remaining_s()))

    def _take(self, count: int, owner: str) -> tuple[PortLease | None, list[tuple[int, Holder | None]]]:
        """Lock the first block that is free; else return what stood in the way."""
        block: dict[int, int] = {}
        busy: list[tuple[int, Holder | None]] = []
        try:
            for port in range(self.first, self.last + 2 - self.unit, self.unit):
                descriptor = self._claim(port, busy)
                if descriptor is None:
                    _free_all(block)
                    continue
                block[port] = descriptor
                if len(block) * self.unit >= count:
                    for held in block.values():
                        self.locks.write_holder(held, owner)
                    start = min(block)
                    lease = PortLease(ports=tuple(range(start, start + count)), fds=tuple(block.values()))
                    block = {}
                    return lease, busy
        finally:
            _free_all(block)
        return None, busy

    def _claim(self, port: int, busy: list[tuple[int, Holder | None]]) -> int | None:
        name = f"port-{port}"
        descriptor = self.locks.try_lock(name)
        if descriptor is None:
            busy.append((port, self.locks.read_holder(name)))
            return None
        used = next((one for one in range(port, port + self.unit) if not is_free(one)), None)
        if used is not None:
            free(descriptor)
            busy.append((used, None))
            return None
        return descriptor


def is_free(port: int) -> bool:
    """Tell whether a program could listen on this TCP port now, on every address of the host."""
    return _can_bind(socket.AF_INET, "0.0.0.0", port) and _can_bind(socket.AF_INET6, "::", port)  # noqa: S104  # never listened on


def _can_bind(family: socket.AddressFamily, address: str, port: int) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind((address, port))
    except OSError as error:
        return error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)  # a host without IPv6
    return True


def _free_all(block: dict[int, int]) -> None:
    for descriptor in block.values():
        free(descriptor)
    block.clear()
