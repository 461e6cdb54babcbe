"""The ports of one run: the ranges that HCCL listens on, leased so that no other run of this host has them.

Only what has to be told a port is told one. verl, Ray, torchrun and vLLM bind to port 0, so that the kernel gives them a free one,
and tell each other which (verl holds the socket of vLLM's until vLLM takes it); a port chosen here beforehand would be less safe.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..deadline import Deadline
from ..runners import LockDirectory, PortPool

# Of one device: its trainer, its rollout engine, and as many again while one takes the place of another.
_PROCESSES_PER_DEVICE = 4
_UNIT = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPorts:
    """The variables that tell the ports, and the descriptors that keep them as long as a process of the run has them."""

    variables: dict[str, str]
    fds: tuple[int, ...] = ()


@contextmanager
def leased_ports(lock_dir: Path, *, devices: int, owner: str, wait_s: float) -> Iterator[RunPorts]:
    """Hold the ports of a run on so many devices.

    Raises:
        LeaseError: there were not as many free ports in time; the message names what holds them.
    """
    count = devices * _PROCESSES_PER_DEVICE
    deadline = Deadline.after(wait_s, name="waiting for ports")
    with PortPool(locks=LockDirectory(lock_dir), unit=_UNIT).lease(2 * count, deadline=deadline, owner=owner) as lease:
        host, npu = lease.ports[:count], lease.ports[count:]
        variables = {
            "HCCL_HOST_SOCKET_PORT_RANGE": f"{host[0]}-{host[-1]}",
            "HCCL_NPU_SOCKET_PORT_RANGE": f"{npu[0]}-{npu[-1]}",
        }
        yield RunPorts(variables=variables, fds=lease.fds)
