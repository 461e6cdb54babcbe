"""The benchmark of leases in small, and that its reader sees what is wrong in a log."""

from __future__ import annotations

import dataclasses
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "leases.py"
DEVICES, PROCESSES = 4, 4


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_of_leases", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its data classes look for their names
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def events(bench: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The log of a hundred leases by four processes, some of them killed."""
    directory = tmp_path_factory.mktemp("leases")
    made: list[Any] = bench.run(directory, cycles=100, processes=PROCESSES, devices=DEVICES, seed=20261130)
    return made


def index_of(events: list[Any], what: str, *, devices: int = 1) -> int:
    return next(number for number, event in enumerate(events) if event.what == what and len(event.devices) >= devices)


def problems(bench: ModuleType, events: list[Any]) -> list[str]:
    found: list[str] = bench.verify(sorted(events, key=lambda one: one.at_s), devices=DEVICES, processes=PROCESSES)
    return found


def test_the_log_of_real_processes_shows_nothing_wrong(bench: ModuleType, events: list[Any]) -> None:
    assert problems(bench, events) == []
    assert sum(event.what == "has" for event in events) >= 100
    assert sum(event.what == "killed" for event in events) > PROCESSES, "some were killed while others went on"
    assert any(event.what == "has" and len(event.devices) == DEVICES for event in events)


def test_a_device_that_is_given_twice_is_seen(bench: ModuleType, events: list[Any]) -> None:
    at = index_of(events, "has")
    stolen = dataclasses.replace(events[at], pid=1, at_s=events[at].at_s + 1e-9)

    found = problems(bench, [*events, stolen])

    assert any(f"process 1 got device {events[at].devices[0]}, which process {events[at].pid} had" in one for one in found)


def test_a_lease_whose_end_is_missing_is_seen(bench: ModuleType, events: list[Any]) -> None:
    at = index_of(events, "gives back")

    assert any("got device" in one for one in problems(bench, [*events[:at], *events[at + 1 :]]))


def test_a_device_that_is_not_free_at_the_end_is_seen(bench: ModuleType, events: list[Any]) -> None:
    last = dataclasses.replace(events[-1], devices=(0, 1, 3))

    assert problems(bench, [*events[:-1], last]) == ["device 2 was not free at the end"]


def test_a_log_that_breaks_off_is_seen(bench: ModuleType, events: list[Any]) -> None:
    assert len(problems(bench, events[:-1])) == DEVICES


def test_a_request_for_all_devices_that_others_pass_is_seen(bench: ModuleType) -> None:
    def small(number: int) -> list[Any]:
        has = bench.Event(at_s=1.0 + number, pid=10 + number % 3, what="has", count=1, devices=(0,))
        return [has, dataclasses.replace(has, at_s=1.5 + number, what="gives back")]

    waits = bench.Event(at_s=0.5, pid=99, what="waits", count=DEVICES, ahead=1)
    free = bench.Event(at_s=100.0, pid=1, what="free", devices=tuple(range(DEVICES)))

    fair = [waits, *(event for number in range(4) for event in small(number)), free]
    starved = [waits, *(event for number in range(30) for event in small(number)), free]

    assert problems(bench, fair) == []
    assert problems(bench, starved) == ["5.000000: process 99, waiting since 0.500000 for all devices, saw 5 others get theirs"]


def test_a_doctored_log_on_disk_is_exit_status_1(events: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        for event in events[:-1]:
            event.write(file.fileno())

    words = ["--verify", str(path), "--devices", str(DEVICES), "--processes", str(PROCESSES)]
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "device 0 was not free at the end" in done.stdout
    assert "Traceback" not in done.stderr
