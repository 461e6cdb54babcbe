"""The devices of this host: which ones the caller may use, which are not fit for use, and which runner of the catalogue this is.

Must not know: who holds a device (`leases.py`). Nothing here loads torch_npu: a parent that has touched the driver cannot fork.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import RunnerError
from .catalogue import Catalogue, Runner
from .leases import Slot
from .npu_smi import NpuDevice, NpuSmi, parse_npu_smi

MASK = "ASCEND_RT_VISIBLE_DEVICES"

# npu-smi's other words are Alarm, Critical and UNKNOWN. A warning (a hot board, a corrected error) does not stop a training.
_FIT = frozenset({"OK", "Warning"})
_NO_TOOL = "npu-smi is not on PATH: chip, memory and health are not known"
_NODE = re.compile(r"davinci(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """One NPU as a program of this process would see it.

    `id` is what ASCEND_RT_VISIBLE_DEVICES takes. `number` names the die on the whole host, `card` groups the dies of a card. `chip`
    and `health` are empty, `memory_gb` and `die`, what npu-smi showed, are None where only a device node was found.
    """

    id: int
    number: str
    card: int
    chip: str = ""
    health: str = ""
    memory_gb: float | None = None
    die: NpuDevice | None = None

    @property
    def lock_name(self) -> str:
        """The name of its lock, which is the same in every container of the host."""
        return f"npu-{self.number}"

    @property
    def is_fit(self) -> bool:
        """Tell whether a training may use it: healthy or with a warning, or of a health that nobody tells."""
        return not self.health or self.health in _FIT

    def __str__(self) -> str:
        return f"device {self.id} (NPU {self.number}, health {self.health or 'not known'})"


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundDevices:
    """What this host offers to the caller: `devices` may be leased, `unfit` may not; both ascend and lie within the caller's mask.

    `is_bare` tells a host without any NPU from one whose NPUs are hidden or unfit. `origin` says how they were found, `reason` why
    there is none, `problems` what a user should be told either way.
    """

    devices: tuple[Device, ...]
    origin: str
    unfit: tuple[Device, ...] = ()
    reason: str = ""
    problems: tuple[str, ...] = ()
    is_bare: bool = False

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The devices as a pool takes them."""
        return tuple(Slot(id=device.id, card=device.card, lock_name=device.lock_name) for device in self.devices)


def find_devices(environ: Mapping[str, str], *, dev_dir: Path = Path("/dev"), timeout_s: float = 30.0) -> FoundDevices:
    """Return the devices of this host, asked from npu-smi or, where there is no npu-smi, from the device nodes.

    The caller's ASCEND_RT_VISIBLE_DEVICES is a limit: what it hides is never offered.

    Raises:
        RunnerError: npu-smi is there but fails, hangs or shows no device, or the mask cannot be used.
    """
    smi = read_npu_smi(environ, timeout_s=timeout_s)
    origin = f"{dev_dir}/davinci*" if smi is None else "npu-smi info"
    found = _from_nodes(dev_dir) if smi is None else devices_of(smi)
    problems = (_NO_TOOL,) if smi is None else smi.problems
    if not found and smi is not None:
        raise RunnerError(f"npu-smi info: it shows no device: {'; '.join(problems)}")
    if not found:
        return FoundDevices(
            devices=(), origin=origin, is_bare=True, reason=f"no NPU on this host: npu-smi is not on PATH, and there is no {origin}"
        )
    visible = _within(environ.get(MASK), found)
    fit = tuple(device for device in visible if device.is_fit)
    unfit = tuple(device for device in visible if not device.is_fit)
    warned = tuple(f"{device} is used all the same" for device in fit if device.health not in ("", "OK"))
    return FoundDevices(
        devices=fit,
        unfit=unfit,
        origin=origin,
        reason="" if fit else _reason(environ, unfit),
        problems=(*problems, *(f"{device} is not used" for device in unfit), *warned),
    )


def read_npu_smi(environ: Mapping[str, str], *, timeout_s: float = 30.0) -> NpuSmi | None:
    """Return what `npu-smi info` shows now, or None where PATH has no npu-smi.

    Raises:
        RunnerError: it cannot be started, fails, hangs or prints no table of devices.
    """
    tool = shutil.which("npu-smi", path=environ.get("PATH", ""))
    if tool is None:
        return None
    status, text = _output_of([tool, "info"], {**environ, "LC_ALL": "C", "LANG": "C"}, timeout_s=timeout_s)
    return parse_npu_smi(text, origin="npu-smi info" if status == 0 else f"npu-smi info (exit status {status})")


def pick_runner(catalogue: Catalogue, found: FoundDevices) -> Runner:
    """Return the runner of the catalogue that this host is: as many devices, of its chip, with as many dies to a card.

    Of several, the one that names the chip most closely is meant (Ascend910B3 before Ascend910B).

    Raises:
        RunnerError: none fits, or several do; the message says what was found and what would have fitted.
    """
    fitting = [runner for runner in catalogue if not runner.simulated and _is_fitting(runner, found.devices)]
    closest = max((len(runner.chip) for runner in fitting), default=0)
    fitting = [runner for runner in fitting if len(runner.chip) == closest]
    if len(fitting) == 1:
        return fitting[0]
    here = _description(found)
    if fitting:
        names = " and ".join(runner.name for runner in fitting)
        raise RunnerError(f"{here}: the runners {names} are all like this; say which one is meant (--runner)")
    known = ", ".join(f"{runner.name} ({runner.devices} x {runner.chip})" for runner in catalogue if not runner.simulated)
    simulated = ", ".join(runner.name for runner in catalogue if runner.simulated)
    raise RunnerError(
        f"{here}: no runner of the catalogue is like this; it has {known or 'no real one'}. Add it in a catalogue of your own,"
        f" name one of them (--runner), or simulate ({simulated or 'no simulated one'})"
    )


def _is_fitting(runner: Runner, devices: Sequence[Device]) -> bool:
    chips = {device.chip for device in devices}
    if len(devices) != runner.devices or not all(not chip or chip.startswith(runner.chip) for chip in chips):
        return False
    return chips == {""} or max(Counter(device.card for device in devices).values()) <= runner.dies_per_card


def _description(found: FoundDevices) -> str:
    chips = " and ".join(sorted({device.chip or "unknown chip" for device in found.devices}))
    text = f"this host offers {len(found.devices)} devices"
    details = [f"{chips}, by {found.origin}" if chips else found.reason, *map(str, found.unfit)]
    return f"{text} ({'; not fit: '.join(details[:2])}{''.join(f', {item}' for item in details[2:])})"


def devices_of(smi: NpuSmi) -> tuple[Device, ...]:
    """Return the dies by ascending id; a die that a container shows twice is one device."""
    dies: dict[object, NpuDevice] = {}
    for device in smi.devices:
        dies.setdefault(device.bus_id or (device.npu, device.chip), device)
    ordered = sorted(dies.values(), key=lambda die: (die.npu, die.chip) if die.phy_id is None else (die.phy_id, 0))
    cards = Counter(die.npu for die in ordered)
    logic_ids = [die.logic_id for die in ordered]
    # Programs count the dies that they see from 0, whatever their numbers on the host: four cards 4 to 7 are 0 to 3.
    has_logic_ids = None not in logic_ids and len(set(logic_ids)) == len(ordered)
    devices = (
        Device(
            id=die.logic_id if has_logic_ids and die.logic_id is not None else rank,
            number=_host_number(die, has_several=cards[die.npu] > 1),
            card=die.npu,
            chip=_chip(die),
            health=die.health,
            memory_gb=None if die.hbm_total_mb is None else die.hbm_total_mb / 1024,
            die=die,
        )
        for rank, die in enumerate(ordered)
    )
    return tuple(sorted(devices, key=lambda device: device.id))


def _host_number(die: NpuDevice, *, has_several: bool) -> str:
    if die.phy_id is not None:
        return str(die.phy_id)
    return f"{die.npu}.{die.chip}" if has_several or die.chip else str(die.npu)


def _chip(die: NpuDevice) -> str:
    """Return the chip in the catalogue's words: npu-smi says 910B3 for Ascend910B3, and a bare Ascend910 of a two-die card.

    Only the tables of two-die cards have a Phy-ID.
    """
    name = die.name if die.name.startswith("Ascend") else f"Ascend{die.name}"
    return "Ascend910_93" if name == "Ascend910" and die.phy_id is not None else name


def _from_nodes(dev_dir: Path) -> tuple[Device, ...]:
    with contextlib.suppress(FileNotFoundError):
        matches = (_NODE.fullmatch(path.name) for path in dev_dir.iterdir())
        numbers = sorted(int(match[1]) for match in matches if match)
        return tuple(Device(id=rank, number=str(number), card=number) for rank, number in enumerate(numbers))
    return ()


def _within(mask: str | None, devices: Sequence[Device]) -> tuple[Device, ...]:
    """Return the devices that the mask leaves, ascending: the runtime drops what follows a descent."""
    if mask is None:
        return tuple(devices)
    words = [word.strip() for word in mask.split(",")] if mask.strip() else []
    by_id = {str(device.id): device for device in devices}
    wrong = [word for word in words if word not in by_id]
    if wrong or len(set(words)) < len(words):
        what = f"{wrong[0]!r} is no device of this host" if wrong else "a device is there twice"
        raise RunnerError(
            f"{MASK}={mask!r} cannot be used: {what}; expected numbers of {', '.join(by_id)}, separated by commas"
            " (counted from 0 over the devices that this host or container shows)"
        )
    return tuple(device for device in devices if str(device.id) in words)


def _reason(environ: Mapping[str, str], unfit: Sequence[Device]) -> str:
    if unfit:
        return f"no device is fit for use: {', '.join(map(str, unfit))}"
    return f"{MASK}={environ.get(MASK)!r} leaves no device"


def _output_of(argv: Sequence[str], environ: Mapping[str, str], *, timeout_s: float) -> tuple[int, str]:
    """Return exit status and output of a short command; a driver that hangs must not hang the caller, so its end is not awaited."""
    with tempfile.TemporaryFile() as file:
        try:
            child = subprocess.Popen(
                argv, env=dict(environ), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise RunnerError(f"{argv[0]}: cannot be started: {error.strerror}") from error
        try:
            status = child.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise RunnerError(
                f"{' '.join(argv)}: no answer within {timeout_s:g}s, so the driver may hang; look at dmesg, or restart the host"
            ) from error
        finally:
            if child.returncode is None:
                _end(child)
        file.seek(0)
        return status, file.read().decode(errors="replace")


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended in between
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # a process inside the driver cannot be ended by anybody
        child.wait(1.0)
