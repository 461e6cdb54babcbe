"""The output of `npu-smi info` as data: devices, their health and memory, and the processes on them.

Must not know: how the text was come by. Columns are found by the headers of the table, whose number, order and width change with
the version of npu-smi and with the chip: one line pair for each die, columns side by side in one cell, a process table or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import RunnerError


@dataclass(frozen=True, kw_only=True, slots=True)
class NpuProcess:
    """A process on a device: `pid` is the host's, `name` is empty where npu-smi shows none."""

    pid: int
    name: str
    memory_mb: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NpuDevice:
    """One die as npu-smi shows it; None stands for a column that the table lacks or a value that npu-smi does not know.

    `npu` and `chip` are its place, `phy_id` its number on the host (Phy-ID), `logic_id` its number for programs (Device).
    """

    npu: int
    chip: int
    name: str
    health: str
    phy_id: int | None = None
    logic_id: int | None = None
    bus_id: str | None = None
    hbm_used_mb: int | None = None
    hbm_total_mb: int | None = None
    aicore_pct: int | None = None
    processes: tuple[NpuProcess, ...] = ()

    def __str__(self) -> str:
        return f"NPU {self.npu} chip {self.chip}"


@dataclass(frozen=True, kw_only=True, slots=True)
class NpuSmi:
    """What `npu-smi info` showed; `problems` names everything in it that could not be read or is not believable.

    `version` is that of npu-smi itself, not of the driver. Without a `process_table` nothing is known of processes.
    """

    version: str | None
    devices: tuple[NpuDevice, ...]
    process_table: bool
    problems: tuple[str, ...] = ()


def parse_npu_smi(text: str, *, origin: str = "npu-smi info") -> NpuSmi:
    """Return what a whole, cut or copied output of `npu-smi info` shows; `origin` names it in an error.

    Raises:
        RunnerError: the text holds no table of devices; the message says which error of npu-smi it is instead.
    """
    lines = [_ESCAPES.sub("", line).rstrip() for line in text.lstrip("\ufeff").splitlines()]
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        is_last = not any(lines[number:])
        if not reader.read(number, line, is_last=is_last):
            break
    if not reader.has_device_table:
        raise RunnerError(f"{origin}: no table of devices: {_error_of(lines, process_table=reader.has_process_table)}")
    return reader.result()


# What the driver's management interface (DCMI) means by the codes that npu-smi passes on.
_DCMI_ERRORS: Mapping[int, str] = {
    -8002: "no permission: run as root or as a member of the driver's group",
    -8005: "the driver is not loaded, or its device nodes cannot be used here: look at /dev/davinci_manager and the user's groups",
    -8008: "the device does not exist here",
    -8012: "the device is not ready yet: wait for the driver to start",
    -8013: "not possible in a container",
    -8015: "the device is being reset",
    -8017: "the firmware is being upgraded",
    -8020: "the device is used by another container: end that one, or give this one other devices",
}

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f]")
_ERROR_CODE = re.compile(r"\bret(?:urn)?\s*(?:is|=|:)\s*(-\d+)")
_NOTICE = re.compile(r"^\[?(?:WARNING|ERROR)\b|\bret(?:urn)?\s*(?:is|=|:)\s*-?\d+", re.IGNORECASE)
_BANNER = re.compile(r"^npu-smi(?:\s+(?!Version:)(\S+))?.*?(?:\bVersion:|$)")
_RULE = re.compile(r"[-=+:\s]*")
_BUS_ID = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]{1,2}")
_IDLE = re.compile(r"No running process\w* found in NPU\s+(\d+)", re.IGNORECASE)
_ABSENT = frozenset({"", "-", "--", "NA"})

_COLUMN = re.compile(
    r"""(?:
    (?P<container_pid> Process\s+id\s+in\s+container )
    | (?P<pid> Process\s+id )
    | (?P<process> Process\s+name )
    | (?P<memory> Process\s+mem\w*(?:\s?\(\w+\))? )
    | (?P<aicore> AI\s?Core(?:\s?\(%\))? | NPU\s+Util\w*(?:\s?\(%\))? )
    | (?P<hbm> HBM(?:-Usage)?(?:\s?\(\w+\))? )
    | (?P<bus> Bus-Id )
    | (?P<phy> Phy-ID )
    | (?P<logic> Device )
    | (?P<npu> NPU(?:\s+ID)? )
    | (?P<chip> Chip(?:\s+ID)? )
    | (?P<name> Name )
    | (?P<health> Health )
    | (?P<other> \S+(?:\s\([^)]*\))? )
    )(?!\S)""",
    re.VERBOSE | re.IGNORECASE,
)
# A usage such as "512  / 65536" is one value.
_VALUE = re.compile(r"[^\s/]+\s*/\s*[^\s/]+|\S+")

_Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class _Header:
    """The columns of each cell of a header line."""

    cells: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, row: _Row) -> _Header:
        return cls(tuple(tuple(str(match.lastgroup) for match in _COLUMN.finditer(cell)) for cell in row))

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(column for cell in self.cells for column in cell)

    def fields(self, row: _Row) -> dict[str, str]:
        """Return the values of a line by column; the last column of a cell takes what is left of it."""
        fields: dict[str, str] = {}
        for columns, cell in zip(self.cells, row, strict=False):
            values = _VALUE.findall(cell.replace("N/A", "NA"))
            if len(columns) < len(values):
                values[len(columns) - 1 :] = [" ".join(values[len(columns) - 1 :])]
            fields.update(zip(columns, values, strict=False))
        return fields


def _header(text: str) -> _Header:
    return _Header.of(text.split("|"))


# How lines are read whose header is cut off, by their number of cells: all chips but the A5 have a chip column,
# and the number after it may be a Phy-ID or a logical one.
_LOST_HEADERS = {
    3: (_header("NPU Name|Health|Power Temp Huge"), _header("Chip Number|Bus-Id|AICore Mem HBM")),
    4: (_header("NPU|Name|Health|Power Temp Huge"), _header("||Bus-Id|AICore Mem HBM")),
}
_LOST_PROCESS_HEADER = _header("NPU Chip|Process id|Process name|Process memory")


class _Reader:
    """Reads one table line by line, and remembers what does not fit."""

    def __init__(self) -> None:
        self.has_device_table = False
        self.has_process_table = False
        self._version: str | None = None
        self._first: _Header | None = None
        self._second: _Header | None = None
        self._process: _Header | None = None
        self._waiting: tuple[int, dict[str, str]] | None = None
        self._devices: dict[tuple[int, int], NpuDevice] = {}
        self._processes: list[tuple[int, int, NpuProcess]] = []
        self._idle: set[int] = set()
        self._rows = 0
        self._problems: list[str] = []

    def read(self, number: int, line: str, *, is_last: bool) -> bool:
        """Take in one line; tell whether the next one may still belong to the same table."""
        row = _cells(line)
        if row is None:
            self._read_notice(number, line)
            return True
        if is_last and self._rows and not line.endswith("|"):
            self._problems.append(f"line {number}: cut off in the middle: {line.strip()!r}")
            return True
        self._rows += 1
        if banner := _BANNER.match(row[0]):
            return self._read_banner(number, banner[1])
        header = _Header.of(row)
        if {"npu", "name", "health"} <= header.columns:
            return self._start_devices(number, header)
        if "bus" in header.columns:
            self._second = header
        elif {"npu", "pid"} <= header.columns:
            self._process, self.has_process_table = header, True
        elif idle := _IDLE.search(row[0]):
            self._idle.add(int(idle[1]))
            self.has_process_table = True
        elif self._process is None or not self._read_process(row):
            self._read_device(number, row)
        return True

    def result(self) -> NpuSmi:
        """Return all that was read, with the processes on their devices."""
        self._close_waiting()
        if not self._devices:
            self._problems.append("the table holds no complete device")
        devices = tuple(replace(device, processes=self._processes_of(device)) for device in self._devices.values())
        return NpuSmi(
            version=self._version,
            devices=devices,
            process_table=self.has_process_table,
            problems=(*self._problems, *_doubled(devices), *self._lost_processes(), *self._silent(devices)),
        )

    def _read_notice(self, number: int, line: str) -> None:
        if _NOTICE.search(line):
            self._problems.append(f"line {number}: {line.strip()}")
        elif self._rows and line.strip() and not line.strip(".… "):
            self._problems.append(f"line {number}: lines were left out here ({line.strip()!r})")

    def _read_banner(self, number: int, version: str | None) -> bool:
        if self.has_device_table or self.has_process_table:
            return self._stop(number)
        self._version = version
        return True

    def _start_devices(self, number: int, header: _Header) -> bool:
        if self.has_device_table:
            return self._stop(number)
        self.has_device_table = True
        self._first, self._second, self._process = header, None, None
        return True

    def _stop(self, number: int) -> bool:
        self._problems.append(f"line {number}: a second output of npu-smi begins, which is not read")
        return False

    def _read_device(self, number: int, row: _Row) -> None:
        first, second = self._headers(len(row))
        upper, lower = first.fields(row), second.fields(row)
        bus_id, health = lower.get("bus", ""), upper.get("health", "")
        is_second = _BUS_ID.fullmatch(bus_id) or (bus_id in _ABSENT and self._waiting)
        if is_second and len(row) < len(second.cells):
            self._problems.append(f"line {number}: cut off in the middle: {' | '.join(row)!r}")
        elif is_second and _is_number(lower.get("chip", "0")):
            self._read_second(number, lower, second)
        elif _is_number(upper.get("npu")) and health and not (_is_number(health) or is_second):
            self._close_waiting()
            self._waiting = (number, upper)
            self._note_headers(number)
        elif self._process is None and self._read_process(row, _LOST_PROCESS_HEADER):
            pass
        elif self.has_device_table or self.has_process_table:
            self._problems.append(f"line {number}: not understood: {' | '.join(row)!r}")

    def _headers(self, cells: int) -> tuple[_Header, _Header]:
        lost_first, lost_second = _LOST_HEADERS.get(cells, _LOST_HEADERS[3])
        return self._first or lost_first, self._second or lost_second

    def _note_headers(self, number: int) -> None:
        if self._first is None or self._second is None:
            self.has_device_table = True
            text = "the header is lost above the devices: columns are taken as in other outputs of npu-smi"
            if not any(text in problem for problem in self._problems):
                self._problems.append(f"line {number}: {text}")

    def _read_second(self, number: int, lower: Mapping[str, str], header: _Header) -> None:
        if self._waiting is None:
            self._note_headers(number)
            self._problems.append(f"line {number}: the second half of a device whose first half is missing")
            return
        (at, upper), self._waiting = self._waiting, None
        used, total = _usage(lower.get("hbm"))
        device = NpuDevice(
            npu=int(upper["npu"]),
            chip=int(lower.get("chip", "0")),
            name=upper.get("name", ""),
            health=upper["health"],
            phy_id=_number(lower.get("phy")),
            logic_id=_number(lower.get("logic")),
            bus_id=None if lower.get("bus", "") in _ABSENT else lower["bus"],
            hbm_used_mb=used,
            hbm_total_mb=total,
            aicore_pct=_number(lower.get("aicore")),
        )
        self._problems += [f"line {number}: no value for {name}" for name in sorted(header.columns - set(lower) - {"other"})]
        if (device.npu, device.chip) in self._devices:
            self._problems.append(f"line {at}: {device} is there a second time")
            return
        self._devices[device.npu, device.chip] = device

    def _close_waiting(self) -> None:
        if self._waiting is not None:
            number, upper = self._waiting
            self._problems.append(f"line {number}: NPU {upper['npu']} is left out: its second half is missing")
            self._waiting = None

    def _read_process(self, row: _Row, header: _Header | None = None) -> bool:
        fields = (header or self._process or _LOST_PROCESS_HEADER).fields(row)
        if not (_is_number(fields.get("npu")) and _is_number(fields.get("pid"))):
            return False
        self.has_process_table = True
        process = NpuProcess(pid=int(fields["pid"]), name=fields.get("process", ""), memory_mb=_number(fields.get("memory")))
        self._processes.append((int(fields["npu"]), _number(fields.get("chip")) or 0, process))
        return True

    def _processes_of(self, device: NpuDevice) -> tuple[NpuProcess, ...]:
        return tuple(process for npu, chip, process in self._processes if (npu, chip) == (device.npu, device.chip))

    def _lost_processes(self) -> Iterator[str]:
        for npu, chip in sorted({(npu, chip) for npu, chip, _ in self._processes} - set(self._devices)):
            yield f"processes on NPU {npu} chip {chip}, which the table of devices does not show"

    def _silent(self, devices: Sequence[NpuDevice]) -> Iterator[str]:
        if self.has_process_table:
            told = self._idle | {npu for npu, _, _ in self._processes}
            for npu in sorted({device.npu for device in devices} - told):
                yield f"the table of processes says nothing of NPU {npu}"


def _cells(line: str) -> _Row | None:
    """Return the cells of a table line, also where something (a prompt, a time stamp) stands before it; None for other lines."""
    _, bar, content = line.partition("|")
    if not bar:
        return None
    cells = [cell.strip() for cell in content.removesuffix("|").split("|")]
    return None if all(_RULE.fullmatch(cell) for cell in cells) else cells


def _is_number(text: str | None) -> bool:
    return text is not None and text.isascii() and text.isdigit()


def _number(text: str | None) -> int | None:
    match = re.match(r"\d+", text or "")
    return int(match[0]) if match else None


def _usage(text: str | None) -> tuple[int | None, int | None]:
    used, _, total = (text or "").partition("/")
    return _number(used.strip()), _number(total.strip())


def _doubled(devices: Sequence[NpuDevice]) -> Iterator[str]:
    """Name the devices that are one die, as a container with a part of a card can show it."""
    seen: dict[object, NpuDevice] = {}
    for device in devices:
        for key in (device.bus_id, device.phy_id):
            if key is not None and seen.setdefault(key, device) is not device:
                yield f"{device} is the same die as {seen[key]} (bus {device.bus_id}, Phy-ID {device.phy_id})"
                break


def _error_of(lines: Sequence[str], *, process_table: bool) -> str:
    if process_table:
        return "only the table of processes is there; save the whole output of: npu-smi info"
    for line in lines:
        if code := _ERROR_CODE.search(line):
            return f"{line.strip()!r}; {_DCMI_ERRORS.get(int(code[1]), 'an error of the driver')}"
    text = next((line.strip() for line in lines if line.strip()), "")
    return f"it begins with {text[:200]!r}" if text else "it is empty"
