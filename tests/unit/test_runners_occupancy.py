"""Devices that somebody uses without a lease: seen, named, waited for, and no hindrance to others."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.errors import LeaseError
from pytest_ascend_e2e.runners import DevicePool, LockDirectory, NpuProcess, Waiting, occupied_devices, simulated_slots
from tests.fakes.npu_smi import A3, a2_devices, a3_devices, install, render


def soon(limit_s: float = 20.0) -> Deadline:
    return Deadline.after(limit_s, name="lease")


class Users:
    """Who uses devices without a lease: an answer for each time one looks, the last one for ever."""

    def __init__(self, *answers: Mapping[int, str]) -> None:
        self._answers = list(answers)
        self.looked = 0

    def __call__(self) -> Mapping[int, str]:
        self.looked += 1
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def pool(directory: Path, devices: int, users: Users) -> DevicePool:
    return DevicePool(
        slots=simulated_slots(devices), locks=LockDirectory(directory), poll_s=0.01, occupied=users, look_every_s=0.02
    )


def test_a_process_is_named_with_pid_command_and_memory(tmp_path: Path) -> None:
    me = psutil.Process()
    dies = a3_devices(4)
    dies[1] = dataclasses.replace(dies[1], processes=(NpuProcess(pid=os.getpid(), name=me.name(), memory_mb=30210),))
    dies[2] = dataclasses.replace(dies[2], processes=(NpuProcess(pid=os.getpid(), name="vllm", memory_mb=None),))

    found = occupied_devices(install(tmp_path, render(dies, A3)))

    assert found.keys() == {1, 2}
    command = " ".join(me.cmdline())[:120]
    assert found[1] == f"in use without a lease by pid {os.getpid()}, {command}, 30210 MB"
    assert found[2] == f"in use without a lease by pid {os.getpid()}, vllm, memory not known", "a pid of another namespace"


def test_memory_without_a_process_counts_and_that_of_an_idle_device_does_not(tmp_path: Path) -> None:
    devices = a2_devices(2)
    devices[1] = dataclasses.replace(devices[1], hbm_used_mb=41000)

    found = occupied_devices(install(tmp_path, render(devices)))

    assert found.keys() == {1}
    assert "41000 MB of its memory are taken" in found[1]


def test_a_device_in_use_is_not_leased(tmp_path: Path) -> None:
    with pool(tmp_path, 3, Users({0: "in use", 1: "in use"})).lease(1, deadline=soon(0), owner="run") as lease:
        assert lease.device_ids == (2,)


def test_a_request_waits_until_the_device_is_idle(tmp_path: Path) -> None:
    users = Users({0: "in use"}, {0: "in use"}, {})

    with pool(tmp_path, 2, users).lease(2, deadline=soon(), owner="run") as lease:
        assert lease.device_ids == (0, 1)

    assert users.looked == 3


def test_a_request_that_gives_up_says_who_uses_the_device(tmp_path: Path) -> None:
    with pytest.raises(LeaseError) as caught:
        pool(tmp_path, 2, Users({1: "in use without a lease by pid 7, python, 9 MB"})).lease(2, deadline=soon(0.05), owner="run")

    first, *others = caught.value.problems
    assert "1 free, 1 in use without a lease, 0 earlier requests waiting" in first
    assert others == ["device 1: in use without a lease by pid 7, python, 9 MB"]


def test_a_request_that_only_foreign_use_holds_up_lets_later_ones_pass(tmp_path: Path) -> None:
    users = Users({1: "in use"})
    later: list[tuple[int, ...]] = []

    def lease_another(waiting: Waiting) -> None:
        assert waiting.foreign == {1: "in use"}
        with pool(tmp_path, 2, users).lease(1, deadline=soon(), owner="later") as lease:
            later.append(lease.device_ids)

    with pytest.raises(LeaseError):
        pool(tmp_path, 2, users).lease(2, deadline=soon(0.05), owner="large", tell=lease_another)

    assert later == [(0,)]


def test_a_device_of_another_lease_is_not_taken_for_one_in_foreign_use(tmp_path: Path) -> None:
    users = Users({0: "the process of the first run"})
    told: list[Waiting] = []

    first = DevicePool(slots=simulated_slots(2), locks=LockDirectory(tmp_path)).lease(1, deadline=soon(), owner="first")
    with first, pytest.raises(LeaseError):
        pool(tmp_path, 2, users).lease(2, deadline=soon(0.05), owner="second", tell=told.append)

    assert told[0].foreign == {}
    assert told[0].held.keys() == {0}
