"""What `ascend-e2e devices` prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ascend_e2e.cli import main
from pytest_ascend_e2e.runners import NpuProcess
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


def test_a_host_without_npu_smi_is_told_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    status = main(["devices"])

    assert status == 2
    assert "npu-smi is not on PATH" in capsys.readouterr().err
