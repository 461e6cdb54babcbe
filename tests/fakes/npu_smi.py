"""An npu-smi for hosts without one: renders the tables of its versions, and installs a tool that prints one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ascend_e2e.runners import NpuDevice


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What differs between the tables of npu-smi's versions and chips."""

    version: str = "25.4.1"
    driver: str = "25.4.1"
    phy: bool = False
    logic: bool = False
    hbm: bool = True
    chip: bool = True
    processes: bool = True
    container_pid: bool = False
    frames: bool = True
    banner: bool = True
    heads: bool = True
    width: int = 0
    newline: str = "\n"


A2 = Layout()
A3 = Layout(phy=True, container_pid=True, version="26.2.0", driver="26.2.0", width=6)
A5 = Layout(chip=False, version="25.9.rc2", driver="25.9.rc2", width=2)
OLD = Layout(hbm=False, logic=True, processes=False, version="22.0.9", driver="22.0.11", width=3)
LAYOUTS = (A2, A3, A5, OLD)


def device(npu: int, chip: int = 0, *, name: str = "910B3", health: str = "OK", phy: int | None = None) -> NpuDevice:
    """Return a device whose other figures follow from its place."""
    at = (npu * 2 + chip) % 200
    return NpuDevice(
        npu=npu,
        chip=chip,
        name=name,
        health=health,
        phy_id=phy,
        bus_id=f"0000:{0x20 + at:02X}:00.0",
        hbm_used_mb=3000 + at,
        hbm_total_mb=65536,
        aicore_pct=at % 101,
    )


def a2_devices(count: int, *, health: Mapping[int, str] | None = None) -> list[NpuDevice]:
    """Return the devices of an A2 host."""
    return [device(npu, health=(health or {}).get(npu, "OK")) for npu in range(count)]


def a3_devices(count: int, *, health: Mapping[int, str] | None = None) -> list[NpuDevice]:
    """Return the dies of an A3 host."""
    states = health or {}
    return [device(phy // 2, phy % 2, name="Ascend910", phy=phy, health=states.get(phy, "OK")) for phy in range(count)]


def render(devices: Sequence[NpuDevice], layout: Layout = A2) -> str:
    """Return what `npu-smi info` prints for these devices."""
    pad = " " * layout.width
    lines: list[str] = []
    if layout.banner:
        lines += ["+-", f"| npu-smi {layout.version}{pad}       Version: {layout.driver}    |", "+-"]
    if layout.heads:
        lines += _heads(layout, pad)
    for one in devices:
        lines += [*_rows(one, layout, pad), "+="]
    if layout.processes:
        lines += _process_rows(devices, layout, pad)
    frame = {"+-": "+" + "-" * 30 + "+" + "-" * 60 + "+", "+=": "+" + "=" * 30 + "+" + "=" * 60 + "+"}
    shown = [frame.get(line, line) for line in lines if layout.frames or line not in frame]
    return layout.newline.join(shown) + layout.newline


def _heads(layout: Layout, pad: str) -> list[str]:
    if not layout.chip:
        return [
            f"| NPU ID | Name {pad} | Health | Power(W)  Temp(C)  Hugepages-Usage(page) |",
            f"|        |      {pad} | Bus-Id | NPU Util(%) Memory-Usage(MB)  HBM-Usage(MB) |",
            "+=",
        ]
    number = "  Phy-ID" if layout.phy else "  Device" if layout.logic else ""
    hbm = "  HBM-Usage(MB)" if layout.hbm else ""
    return [
        f"| NPU   Name{pad}  | Health        | Power(W)    Temp(C){pad}           Hugepages-Usage(page)|",
        f"| Chip{number}{pad}  | Bus-Id        | AICore(%)   {pad}Memory-Usage(MB){hbm}        |",
        "+=",
    ]


def _rows(one: NpuDevice, layout: Layout, pad: str) -> list[str]:
    power = "-" if one.chip else "93.5"
    hbm = f"  {_or(one.hbm_used_mb)}{pad}/ {_or(one.hbm_total_mb)}" if layout.hbm else ""
    number = f"     {one.phy_id}" if layout.phy else f"     {one.logic_id}" if layout.logic else ""
    upper = f"| {one.npu} | {one.name}" if not layout.chip else f"| {one.npu}     {one.name}"
    lower = "| |" if not layout.chip else f"| {one.chip}{number} "
    return [
        f"{upper} | {one.health} | {power}   {pad} 41    {pad}  0    / 0  |",
        f"{lower} | {one.bus_id or 'NA'} | {_or(one.aicore_pct)}  {pad} 0    / 0  {pad}{hbm} |",
    ]


def _process_rows(devices: Sequence[NpuDevice], layout: Layout, pad: str) -> list[str]:
    place, inner = ("NPU ID", "| Process id in container ") if layout.container_pid else ("NPU ID", "")
    place = "NPU     Chip" if layout.chip else place
    lines = ["+-", f"| {place}{pad} | Process id | Process name {pad}| Process memory(MB) {inner}|", "+="]
    for npu in dict.fromkeys(one.npu for one in devices):
        rows = [
            f"| {npu}{f'       {one.chip}' if layout.chip else ''} | {process.pid} | {process.name}{pad} | {_or(process.memory_mb)}"
            f" {'| 77 ' if inner else ''}|"
            for one in devices
            if one.npu == npu
            for process in one.processes
        ]
        lines += [*(rows or [f"| No running processes found in NPU {npu} {pad}|"]), "+="]
    return lines


def _or(value: int | None) -> str:
    return "NA" if value is None else str(value)


def install(directory: Path, text: str, *, status: int = 0, hangs: bool = False) -> dict[str, str]:
    """Put an npu-smi that prints `text` into `directory` and return the environment that finds it."""
    directory.mkdir(parents=True, exist_ok=True)
    saved = directory / "npu-smi.txt"
    saved.write_text(text, encoding="utf-8")
    tool = directory / "npu-smi"
    wait = "exec sleep 60" if hangs else f"exit {status}"
    tool.write_text(f'#!/bin/sh\n[ "$*" = info ] && [ "$LC_ALL" = C ] || exit 99\ncat "{saved}"\n{wait}\n', encoding="utf-8")
    tool.chmod(0o755)
    return {"PATH": f"{directory}{os.pathsep}/usr/bin{os.pathsep}/bin"}
