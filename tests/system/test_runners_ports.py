"""Leases of ports, checked against programs that listen."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.errors import LeaseError
from pytest_ascend_e2e.runners import LockDirectory, PortPool
from pytest_ascend_e2e.runners.ports import is_free
from pytest_ascend_e2e.session.run_ports import RunPorts, leased_ports

SIZE = 6


def soon(limit_s: float = 10.0) -> Deadline:
    return Deadline.after(limit_s, name="ports")


@pytest.fixture
def ports(tmp_path: Path) -> PortPool:
    """A range of six ports on which nothing listens now."""
    first = next(port for port in range(22000, 28000, SIZE) if all(is_free(port + offset) for offset in range(SIZE)))
    return PortPool(first=first, last=first + SIZE - 1, locks=LockDirectory(tmp_path), poll_s=0.01)


@pytest.fixture(params=["127.0.0.1", "0.0.0.0", "::1"])  # noqa: S104  # a test's listener
def busy(request: pytest.FixtureRequest, ports: PortPool) -> Iterator[int]:
    """The second port of the range, on which a program listens that knows of no lease."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.socket(family) as listener:
        listener.bind((request.param, ports.first + 1))
        listener.listen()
        yield ports.first + 1


def test_leased_ports_are_consecutive_and_exclusive(ports: PortPool) -> None:
    with ports.lease(3, deadline=soon(), owner="a") as a, ports.lease(3, deadline=soon(), owner="b") as b:
        leased = [*a.ports, *b.ports]

    assert leased == list(range(ports.first, ports.last + 1))


def test_a_port_on_which_a_program_listens_is_passed_over(ports: PortPool, busy: int) -> None:
    with ports.lease(2, deadline=soon(), owner="a") as lease:
        assert lease.ports == (busy + 1, busy + 2)


def test_a_leased_port_can_be_bound_by_the_run(ports: PortPool) -> None:
    with ports.lease(1, deadline=soon(), owner="a") as lease, socket.socket() as server:
        server.bind(("127.0.0.1", lease.ports[0]))


def test_ports_given_back_are_leased_again(ports: PortPool) -> None:
    ports.lease(SIZE, deadline=soon(), owner="a").release()

    with ports.lease(SIZE, deadline=soon(0), owner="b") as lease:
        assert len(lease.ports) == SIZE


def test_a_deadline_names_what_holds_the_ports(ports: PortPool, busy: int) -> None:
    with ports.lease(1, deadline=soon(), owner="case A"), pytest.raises(LeaseError) as caught:
        ports.lease(SIZE - 1, deadline=soon(0.05), owner="case B")

    first, *others = caught.value.problems
    assert f"{SIZE - 1} consecutive ports of {ports.first}-{ports.last} were not free for 'case B' within" in first
    assert others[0].startswith(f"port {ports.first}: 'case A', pid ")
    assert others[1:] == [f"port {busy}: in use by a program without a lease"]


@pytest.mark.parametrize(
    ("first", "last", "count"), [(22000, 22003, 5), (22000, 22003, 0), (0, 10, 1), (65000, 70000, 1), (9, 8, 1)]
)
def test_a_range_that_cannot_hold_the_ports_is_refused(tmp_path: Path, first: int, last: int, count: int) -> None:
    with pytest.raises(LeaseError, match=f"{count} ports cannot be leased for 'run' from {first}-{last}"):
        PortPool(first=first, last=last, locks=LockDirectory(tmp_path)).lease(count, deadline=soon(), owner="run")


def test_a_lease_of_units_has_a_descriptor_for_each_and_starts_where_a_unit_does(ports: PortPool) -> None:
    units = dataclasses.replace(ports, unit=3)

    with units.lease(2, deadline=soon(), owner="a") as a, units.lease(2, deadline=soon(), owner="b") as b:
        assert (a.ports, b.ports) == ((ports.first, ports.first + 1), (ports.first + 3, ports.first + 4))
        assert (len(a.fds), len(b.fds)) == (1, 1)


def test_a_unit_in_which_a_program_listens_is_passed_over(ports: PortPool, busy: int) -> None:
    with dataclasses.replace(ports, unit=3).lease(2, deadline=soon(), owner="a") as lease:
        assert lease.ports == (busy + 2, busy + 3)


def test_two_runs_have_hccl_ranges_of_their_own(tmp_path: Path) -> None:
    def ranges(held: RunPorts) -> list[set[int]]:
        texts = [held.variables[f"HCCL_{side}_SOCKET_PORT_RANGE"].split("-") for side in ("HOST", "NPU")]
        return [set(range(int(first), int(last) + 1)) for first, last in texts]

    with (
        leased_ports(tmp_path, devices=16, owner="a", wait_s=10) as a,
        leased_ports(tmp_path, devices=1, owner="b", wait_s=10) as b,
    ):
        four = [*ranges(a), *ranges(b)]

    assert [len(one) for one in four] == [64, 64, 4, 4]
    assert len(set().union(*four)) == sum(map(len, four)), "no port is in two of them"
