"""What is read from the tables of npu-smi."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ascend_e2e.errors import RunnerError
from pytest_ascend_e2e.runners import NpuDevice, NpuProcess, parse_npu_smi
from tests.fakes.npu_smi import A2, A3, A5, LAYOUTS, OLD, Layout, a2_devices, a3_devices, device, render

WORKER = NpuProcess(pid=40417, name="ray::Worker", memory_mb=31007)


@st.composite
def hosts(draw: st.DrawFn) -> tuple[Layout, list[NpuDevice]]:
    """A host of any layout, its boards in any order, and a table as narrow or wide as any version prints it."""
    layout = replace(
        draw(st.sampled_from(LAYOUTS)),
        width=draw(st.integers(0, 12)),
        frames=draw(st.booleans()),
        banner=draw(st.booleans()),
        newline=draw(st.sampled_from(["\n", "\r\n"])),
    )
    cards = draw(st.lists(st.integers(0, 3000), min_size=1, max_size=6, unique=True))
    devices: list[NpuDevice] = []
    for npu in cards:
        for chip in range(draw(st.integers(1, 2)) if layout.chip else 1):
            processes = st.builds(
                NpuProcess,
                pid=st.integers(1, 4194304),
                name=st.sampled_from(["", "python3.11", "VLLM::EngineCore", "ray::IDLE", "a b"]),
                memory_mb=st.none() | st.integers(0, 65536),
            )
            devices.append(
                replace(
                    device(npu, chip),
                    name=draw(st.sampled_from(["910B4", "Ascend910", "310P3", "910A", "310"])),
                    health=draw(st.sampled_from(["OK", "Warning", "Alarm", "Critical", "UNKNOWN"])),
                    bus_id=draw(st.none() | st.just(f"0000:{len(devices):02X}:00.0")),
                    phy_id=len(devices) if layout.phy else None,
                    logic_id=len(devices) if layout.logic else None,
                    hbm_used_mb=draw(st.none() | st.integers(0, 131072)) if layout.hbm else None,
                    hbm_total_mb=131072 if layout.hbm else None,
                    aicore_pct=draw(st.none() | st.integers(0, 100)),
                    processes=tuple(draw(st.lists(processes, max_size=3))) if layout.processes else (),
                )
            )
    return layout, devices


@settings(max_examples=60, deadline=None)
@given(hosts())
def test_every_layout_is_read_back_as_it_was_printed(host: tuple[Layout, list[NpuDevice]]) -> None:
    layout, devices = host

    smi = parse_npu_smi(render(devices, layout))

    assert smi.devices == tuple(devices)
    assert smi.process_table is layout.processes
    assert smi.problems == ()
    assert smi.version == (layout.version if layout.banner else None)


@settings(max_examples=60, deadline=None)
@given(hosts(), st.data())
def test_a_text_cut_anywhere_gives_no_device_that_is_not_there(host: tuple[Layout, list[NpuDevice]], data: st.DataObject) -> None:
    layout, devices = host
    text = render(devices, layout)
    cut = text[: data.draw(st.integers(0, len(text)))]

    try:
        found = parse_npu_smi(cut).devices
    except RunnerError:
        found = ()

    whole = [replace(one, processes=()) for one in devices]
    assert [replace(one, processes=()) for one in found] == whole[: len(found)]


def test_a_device_whose_second_line_is_cut_off_between_two_cells_is_left_out() -> None:
    devices = a2_devices(2)
    text = render(devices, A2)
    place = text.index(str(devices[1].bus_id))

    smi = parse_npu_smi(text[: text.index("|", place) + 1])

    assert [device.npu for device in smi.devices] == [0]
    assert any("cut off in the middle" in problem for problem in smi.problems)


def test_version_is_that_of_npu_smi_and_not_of_the_driver() -> None:
    smi = parse_npu_smi(render(a2_devices(1), replace(A2, version="24.1.rc9", driver="24.1.0")))

    assert smi.version == "24.1.rc9"


def test_pid_is_the_host_s_and_not_the_container_s() -> None:
    smi = parse_npu_smi(render([replace(device(0), processes=(WORKER,))], replace(A2, container_pid=True)))

    assert smi.devices[0].processes == (WORKER,)


def test_phy_id_is_told_only_where_the_table_has_the_column() -> None:
    smi = parse_npu_smi(render([replace(device(2144), logic_id=3)], OLD))

    assert (smi.devices[0].phy_id, smi.devices[0].logic_id) == (None, 3)


def test_ddr_memory_is_not_taken_for_hbm() -> None:
    smi = parse_npu_smi(render([replace(device(1), logic_id=0)], OLD))

    assert (smi.devices[0].hbm_used_mb, smi.devices[0].hbm_total_mb) == (None, None)


@pytest.mark.parametrize("devices", [a2_devices(2), a3_devices(4)], ids=["A2", "A3"])
def test_devices_are_read_where_the_header_is_lost_and_that_is_named(devices: list[NpuDevice]) -> None:
    layout = replace(A3 if devices[0].phy_id is not None else A2, heads=False, banner=False)

    smi = parse_npu_smi(render(devices, layout))

    assert smi.devices == tuple(replace(one, phy_id=None) for one in devices)
    assert ["header is lost" in problem for problem in smi.problems] == [True]


def test_devices_of_a_table_without_chips_are_read_where_the_header_is_lost() -> None:
    devices = [device(0, name="Ascend950DT"), device(3, name="Ascend950DT")]

    smi = parse_npu_smi(render(devices, replace(A5, heads=False, banner=False)))

    assert smi.devices == tuple(devices)


def test_a_device_without_its_second_half_is_left_out_and_named() -> None:
    lines = render(a2_devices(3), replace(A2, processes=False)).splitlines()
    del lines[next(number for number, line in enumerate(lines) if line.startswith("| 1 ")) + 1]

    smi = parse_npu_smi("\n".join(lines))

    assert [one.npu for one in smi.devices] == [0, 2]
    assert any("NPU 1 is left out" in problem for problem in smi.problems)


def test_a_second_half_without_its_device_is_named() -> None:
    lines = render(a2_devices(3), replace(A2, processes=False)).splitlines()
    del lines[next(number for number, line in enumerate(lines) if line.startswith("| 1 "))]

    smi = parse_npu_smi("\n".join(lines))

    assert [one.npu for one in smi.devices] == [0, 2]
    assert any("first half is missing" in problem for problem in smi.problems)


def test_a_die_shown_twice_by_a_container_is_named() -> None:
    twice = [device(0, 0, phy=0), replace(device(0, 1, phy=0), bus_id=device(0, 0).bus_id)]

    smi = parse_npu_smi(render(twice, A3))

    assert len(smi.devices) == 2
    assert any("same die" in problem for problem in smi.problems)


def test_processes_of_a_device_that_is_not_shown_are_named() -> None:
    text = render([replace(device(4), processes=(WORKER,))], A2).replace("| 4     910B3", "| 5     910B3")

    smi = parse_npu_smi(text)

    assert any("NPU 4 chip 0" in problem for problem in smi.problems)


def test_lines_left_out_by_a_copyist_are_named() -> None:
    text = render(a2_devices(2), replace(A2, processes=False))

    smi = parse_npu_smi(text.replace("| 1     910B3", "...\n| 1     910B3"))

    assert any("left out" in problem for problem in smi.problems)


def test_a_second_output_in_the_same_text_is_not_mixed_in() -> None:
    text = render(a2_devices(2)) + render([replace(one, hbm_used_mb=60000) for one in a2_devices(3)])

    smi = parse_npu_smi(text)

    assert smi.devices == tuple(a2_devices(2))
    assert any("second output" in problem for problem in smi.problems)


def test_a_prompt_a_byte_order_mark_and_colours_do_not_hide_the_table() -> None:
    text = "\ufeff[root@node-7 ~]# npu-smi info | cat\n" + render(a2_devices(1)).replace("OK", "\x1b[32mOK\x1b[0m")

    smi = parse_npu_smi(text)

    assert (smi.devices, smi.problems) == (tuple(a2_devices(1)), ())


def test_a_time_stamp_before_each_line_does_not_hide_the_table() -> None:
    text = "".join(f"2026-03-04T05:06:07.8Z {line}\n" for line in render(a2_devices(2)).splitlines())

    smi = parse_npu_smi(text)

    assert (smi.devices, smi.problems) == (tuple(a2_devices(2)), ())


def test_a_notice_of_the_driver_beside_the_table_is_named() -> None:
    smi = parse_npu_smi(render(a2_devices(1)) + "[WARNING]The driver may be installed in part.\n")

    assert any("installed in part" in problem for problem in smi.problems)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("DrvMngGetConsoleLogLevel failed. (ret=4)\ndcmi module init failed. ret is -8005\n", "driver is not loaded"),
        ("dcmi model init failed, because the device is in use. ret is -8020\n", "used by another container"),
        ("something of the driver failed. ret is -9999\n", "an error of the driver"),
        ("Invalid card id.\nUsage: npu-smi info\n", "Invalid card id."),
        ("bash: npu-smi: command not found\n", "command not found"),
        ("", "empty"),
        ("\n \n", "empty"),
    ],
)
def test_a_text_without_devices_is_an_error_that_says_why(text: str, named: str) -> None:
    with pytest.raises(RunnerError, match="no table of devices") as caught:
        parse_npu_smi(text)

    assert named in str(caught.value)
    assert len(caught.value.problems) == 1


def test_a_table_of_processes_alone_is_an_error() -> None:
    text = render([replace(device(0), processes=(WORKER,))], A2)

    with pytest.raises(RunnerError, match="only the table of processes"):
        parse_npu_smi(text[text.index("| NPU     Chip") :])
