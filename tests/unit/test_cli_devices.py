"""What `ascend-e2e devices` prints."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ascend_e2e.cli import main
from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.errors import LeaseError
from pytest_ascend_e2e.runners import DevicePool, LockDirectory, NpuProcess, Slot, Waiting, simulated_slots
from tests.fakes.npu_smi import A3, a2_devices, a3_devices, device, install, render


def saved(directory: Path, text: str) -> str:
    path = directory / "saved.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_json_holds_every_device_with_its_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = NpuProcess(pid=912, name="python3", memory_mb=None)
    file = saved(tmp_path, render([replace(device(6, 1, phy=13, name="Ascend910"), processes=(process,))], A3))

    status = main(["devices", "--from", file, "--json"])

    assert status == 0
    assert json.loads(capsys.readouterr().out) == {
        "npu_smi_version": "26.2.0",
        "devices": [
            {
                "npu": 6,
                "chip": 1,
                "phy_id": 13,
                "name": "Ascend910",
                "health": "OK",
                "bus_id": "0000:2D:00.0",
                "hbm_used_mb": 3013,
                "hbm_total_mb": 65536,
                "aicore_pct": 13,
                "processes": [{"pid": 912, "name": "python3", "memory_mb": None}],
            }
        ],
        "process_table": True,
        "problems": [],
    }


def test_the_table_has_one_line_for_each_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["devices", "--from", saved(tmp_path, render(a3_devices(2), A3))])

    assert status == 0
    assert capsys.readouterr().out.splitlines() == [
        "NPU  chip  Phy-ID  name       health  bus           HBM MB        AI core  processes",
        "0    0     0       Ascend910  OK      0000:20:00.0  3000 / 65536  0%       none",
        "0    1     1       Ascend910  OK      0000:21:00.0  3001 / 65536  1%       none",
    ]


def test_what_could_not_be_read_is_noted_beside_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = render(a2_devices(2)).replace("| 1     910B3", "...\n| 1     910B3")

    status = main(["devices", "--from", saved(tmp_path, text)])

    assert status == 0
    assert capsys.readouterr().err.startswith("note: line ")


@pytest.mark.parametrize(
    "text", ["dcmi module init failed. ret is -8005\n", "", "| NPU Chip | Process id | Process name | Process memory(MB) |\n"]
)
def test_a_text_without_devices_is_one_line_on_stderr_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    status = main(["devices", "--from", saved(tmp_path, text), "--json"])

    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith(f"ascend-e2e devices: {tmp_path}")
    assert err.count("\n") == 1


def test_a_file_that_is_not_there_is_one_line_on_stderr_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["devices", "--from", str(tmp_path / "none.txt")])

    err = capsys.readouterr().err
    assert status == 2
    assert "none.txt: cannot be read: No such file or directory" in err
    assert err.count("\n") == 1


def test_without_a_file_npu_smi_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", install(tmp_path, render(a2_devices(2)))["PATH"])

    status = main(["devices", "--json"])

    assert status == 0
    assert [one["npu"] for one in json.loads(capsys.readouterr().out)["devices"]] == [0, 1]


def test_of_this_host_ids_leases_and_waiting_requests_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", install(tmp_path / "bin", render(a3_devices(3)[1:], A3))["PATH"])
    locks = LockDirectory(tmp_path / "locks", now=lambda: 1767225600.0)
    slots = [Slot(id=number, card=0, lock_name=f"npu-{number + 1}") for number in range(2)]
    devices = DevicePool(slots=slots, locks=locks, poll_s=0.01)
    words = ["devices", "--lock-dir", str(tmp_path / "locks")]
    seen = []

    def look(_: Waiting) -> None:
        seen.append(main(words))
        seen.append(main([*words, "--json"]))

    with devices.lease(1, deadline=Deadline.after(20, name="lease"), owner="case A"), pytest.raises(LeaseError):
        devices.lease(2, deadline=Deadline.after(0.05, name="lease"), owner="case B", tell=look)

    who = f"pid {os.getpid()}, since 2026-01-01T00:00:00+00:00"
    table, _, data = capsys.readouterr().out.partition("{")
    assert seen == [0, 0]
    lines = [" ".join(line.split()) for line in table.splitlines()]
    assert lines[0] == "id NPU chip Phy-ID name health bus HBM MB AI core processes lease"
    assert lines[1] == f"0 0 1 1 Ascend910 OK 0000:21:00.0 3001 / 65536 1% none 'case A', {who}"
    assert lines[2].startswith("1 1 0 2 ")
    assert lines[2].endswith(" none -")
    assert lines[3:] == [f"waiting for 2 devices: 'case B', {who}"]
    found = json.loads("{" + data)
    since = "2026-01-01T00:00:00+00:00"
    assert [one["id"] for one in found["devices"]] == [0, 1]
    assert [one["lease"] for one in found["devices"]] == [
        {"owner": "case A", "pid": os.getpid(), "since": since, "count": None},
        None,
    ]
    assert found["waiting"] == [{"owner": "case B", "pid": os.getpid(), "since": since, "count": 2}]


def test_leases_of_simulated_devices_are_shown_where_there_is_no_npu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    devices = DevicePool(slots=simulated_slots(2), locks=LockDirectory(tmp_path / "locks"))

    with devices.lease(1, deadline=Deadline.after(20, name="lease"), owner="case A"):
        status = main(["devices", "--lock-dir", str(tmp_path / "locks")])

    assert status == 0
    assert capsys.readouterr().out.startswith("sim-0: leased by 'case A', pid ")


def test_a_place_of_locks_that_is_a_link_or_out_of_sight_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in install(tmp_path, render(a2_devices(2))).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "link").symlink_to(tmp_path)

    assert main(["devices", "--lock-dir", str(tmp_path / "link")]) == 2
    assert capsys.readouterr().err.startswith(f"ascend-e2e devices: {tmp_path / 'link'}: not a directory that this user can write")
    assert main(["devices", "--lock-dir", str(tmp_path / ("long" * 99))]) == 0


def test_a_host_without_npu_smi_is_told_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ASCEND_E2E_LOCK_DIR", str(tmp_path / "locks"))

    status = main(["devices"])

    assert status == 2
    assert "npu-smi is not on PATH" in capsys.readouterr().err
