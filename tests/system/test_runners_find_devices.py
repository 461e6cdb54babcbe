"""Which devices a host offers, asked from a fake npu-smi in a child process."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ascend_e2e.errors import RunnerError
from pytest_ascend_e2e.runners import MASK, Catalogue, FoundDevices, find_devices, load_catalogue, pick_runner
from tests.fakes.npu_smi import A2, A3, OLD, a2_devices, a3_devices, device, install, render


def nodes(directory: Path, *numbers: int) -> Path:
    directory.mkdir()
    for name in [*(f"davinci{number}" for number in numbers), "davinci_manager", "null"]:
        (directory / name).touch()
    return directory


def ids(found: FoundDevices) -> list[int]:
    return [one.id for one in found.devices]


def test_the_devices_of_npu_smi_are_found(tmp_path: Path) -> None:
    found = find_devices(install(tmp_path, render(a2_devices(4))))

    assert ids(found) == [0, 1, 2, 3]
    assert {(one.chip, one.health, one.memory_gb) for one in found.devices} == {("Ascend910B3", "OK", 64.0)}
    assert (found.unfit, found.reason, found.problems) == ((), "", ())


def test_the_dies_of_one_card_stand_together(tmp_path: Path) -> None:
    found = find_devices(install(tmp_path, render(a3_devices(4), A3)))

    assert [(slot.id, slot.card, slot.lock_name) for slot in found.slots] == [
        (0, 0, "npu-0"),
        (1, 0, "npu-1"),
        (2, 1, "npu-2"),
        (3, 1, "npu-3"),
    ]


def test_ids_count_from_zero_whatever_the_numbers_of_the_boards(tmp_path: Path) -> None:
    boards = [device(npu) for npu in (15, 12, 14)]

    found = find_devices(install(tmp_path, render(boards)))

    assert [(one.id, one.number) for one in found.devices] == [(0, "12"), (1, "14"), (2, "15")]


def test_ids_are_the_logical_numbers_where_npu_smi_tells_them(tmp_path: Path) -> None:
    boards = [replace(device(2144, name="310P3"), logic_id=1), replace(device(2160, name="310P3"), logic_id=0)]

    found = find_devices(install(tmp_path, render(boards, OLD)))

    assert [(one.id, one.number) for one in found.devices] == [(0, "2160"), (1, "2144")]


def test_a_die_shown_twice_is_one_device(tmp_path: Path) -> None:
    twice = [device(0, 0, phy=0), replace(device(0, 1, phy=0), bus_id=device(0, 0).bus_id)]

    found = find_devices(install(tmp_path, render(twice, A3)))

    assert ids(found) == [0]
    assert any("same die" in problem for problem in found.problems)


@pytest.mark.parametrize(("mask", "expected"), [("1,3", [1, 3]), ("3, 1", [1, 3]), ("0", [0])])
def test_the_mask_of_the_caller_limits_what_is_offered(tmp_path: Path, mask: str, expected: list[int]) -> None:
    environ = install(tmp_path, render(a2_devices(4)))

    found = find_devices({**environ, MASK: mask})

    assert ids(found) == expected


def test_an_empty_mask_leaves_no_device_and_says_so(tmp_path: Path) -> None:
    environ = install(tmp_path, render(a2_devices(4)))

    found = find_devices({**environ, MASK: ""})

    assert found.devices == ()
    assert found.reason == f"{MASK}='' leaves no device"


@pytest.mark.parametrize("mask", ["4", "0,9", "0-3", "0;1", "-1", "a", "0,,1", "0,0", ",", "00"])
def test_a_mask_that_cannot_be_used_is_an_error(tmp_path: Path, mask: str) -> None:
    environ = install(tmp_path, render(a2_devices(4)))

    with pytest.raises(RunnerError, match=f"{MASK}=.* cannot be used: .*; expected numbers of 0, 1, 2, 3"):
        find_devices({**environ, MASK: mask})


@pytest.mark.parametrize("health", ["Alarm", "Critical", "UNKNOWN"])
def test_a_sick_device_is_not_offered_and_named(tmp_path: Path, health: str) -> None:
    found = find_devices(install(tmp_path, render(a2_devices(3, health={1: health}))))

    assert ids(found) == [0, 2]
    assert [one.id for one in found.unfit] == [1]
    assert found.problems == (f"device 1 (NPU 1, health {health}) is not used",)


def test_a_device_with_a_warning_is_offered_and_named(tmp_path: Path) -> None:
    found = find_devices(install(tmp_path, render(a2_devices(2, health={1: "Warning"}))))

    assert ids(found) == [0, 1]
    assert found.problems == ("device 1 (NPU 1, health Warning) is used all the same",)


def test_a_host_of_sick_devices_says_why_it_offers_none(tmp_path: Path) -> None:
    found = find_devices(install(tmp_path, render(a2_devices(1, health={0: "Alarm"}))))

    assert found.reason == "no device is fit for use: device 0 (NPU 0, health Alarm)"


def test_the_device_nodes_are_counted_where_there_is_no_npu_smi(tmp_path: Path) -> None:
    found = find_devices({"PATH": str(tmp_path)}, dev_dir=nodes(tmp_path / "dev", 5, 4, 10))

    assert [(one.id, one.number) for one in found.devices] == [(0, "4"), (1, "5"), (2, "10")]
    assert any("npu-smi is not on PATH" in problem for problem in found.problems)


@pytest.mark.parametrize("environ", [{"PATH": "/nowhere"}, {}], ids=["no tool", "no PATH"])
def test_a_host_without_npus_says_so(tmp_path: Path, environ: dict[str, str]) -> None:
    found = find_devices(environ, dev_dir=nodes(tmp_path / "dev"))

    assert found.devices == ()
    assert "no NPU on this host: npu-smi is not on PATH" in found.reason


def test_a_failing_npu_smi_is_an_error_and_never_a_host_without_npus(tmp_path: Path) -> None:
    environ = install(tmp_path, "dcmi module init failed. ret is -8005\n", status=1)

    with pytest.raises(RunnerError, match=r"npu-smi info \(exit status 1\): .*-8005"):
        find_devices(environ, dev_dir=nodes(tmp_path / "dev", 0))


def test_an_npu_smi_that_shows_no_device_is_an_error(tmp_path: Path) -> None:
    environ = install(tmp_path, render([]))

    with pytest.raises(RunnerError, match="it shows no device"):
        find_devices(environ)


def test_an_npu_smi_that_hangs_is_ended_and_is_an_error(tmp_path: Path) -> None:
    environ = install(tmp_path, render(a2_devices(1)), hangs=True)
    started = time.monotonic()

    with pytest.raises(RunnerError, match=r"no answer within 0\.5s"):
        find_devices(environ, timeout_s=0.5)

    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("count", "is_a3", "name"), [(4, False, "a2-4"), (8, False, "a2b3-8"), (8, True, "a3-8"), (16, True, "a3-16")]
)
def test_a_host_is_the_runner_of_its_chip_and_count(tmp_path: Path, count: int, is_a3: bool, name: str) -> None:
    text = render(a3_devices(count), A3) if is_a3 else render(a2_devices(count), A2)

    assert pick_runner(load_catalogue(), find_devices(install(tmp_path, text))).name == name


def test_a_masked_host_is_the_runner_of_what_is_left(tmp_path: Path) -> None:
    environ = {**install(tmp_path, render(a3_devices(16), A3)), MASK: "8,9,10,11,12,13,14,15"}

    assert pick_runner(load_catalogue(), find_devices(environ)).name == "a3-8"


def test_a_host_like_no_runner_is_told_what_it_has_and_what_there_is(tmp_path: Path) -> None:
    found = find_devices(install(tmp_path, render(a3_devices(16, health={3: "Alarm"}), A3)))

    with pytest.raises(RunnerError) as caught:
        pick_runner(load_catalogue(), found)

    for text in ("15 devices", "Ascend910_93", "device 3 (NPU 3, health Alarm)", "a3-16 (16 x Ascend910_93)", "sim-2"):
        assert text in str(caught.value)


def test_a_host_like_two_runners_asks_which_one_is_meant(tmp_path: Path) -> None:
    found = find_devices({"PATH": "/nowhere"}, dev_dir=nodes(tmp_path / "dev", *range(8)))
    runners = tuple(runner for runner in load_catalogue() if runner.name in ("a2b3-8", "a3-8"))

    with pytest.raises(RunnerError, match=r"--runner"):
        pick_runner(Catalogue((runners[0], replace(runners[1], chip=runners[0].chip))), found)
