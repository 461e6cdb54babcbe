"""What the host has left while a run trains: memory, shared memory, disk. Four small files are read for a moment's figures.

Must not know: which process took what; neighbours are in the figures, as they are in the machine.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..deadline import Clock
from ..records import HostUse

EVERY_S = 2.0
MOST_SAMPLES = 64
SHORT_OF = 0.95
_SHM = Path("/dev/shm")  # noqa: S108  # where the kernel keeps it
_GB = float(1 << 30)


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """Bytes in use, and how many there are in all; both 0 where that is not known."""

    used: int = 0
    total: int = 0

    @property
    def is_short(self) -> bool:
        """Tell whether next to nothing is left."""
        return self.total > 0 and self.used >= SHORT_OF * self.total


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """The figures of one moment, `at_s` seconds after the start."""

    at_s: float
    memory: Space
    shm: Space
    disk: Space

    def merged(self, later: Sample) -> Sample:
        """Return one sample for two: of each figure the worse."""
        return Sample(
            at_s=self.at_s,
            memory=max(self.memory, later.memory, key=lambda space: space.used),
            shm=max(self.shm, later.shm, key=lambda space: space.used),
            disk=max(self.disk, later.disk, key=lambda space: space.used),
        )


class HostWatch:
    """Samples the host every two seconds; of a long run the samples are merged two by two, so that they stay few."""

    def __init__(self, place: Path, *, clock: Clock = time.monotonic, read: Callable[[Path, float], Sample] | None = None) -> None:
        self._place = place
        self._clock = clock
        self._read = read_sample if read is None else read
        self._began_at = clock()
        self._next_at = clock()
        self._every_s = EVERY_S
        self._samples: list[Sample] = []

    def look(self) -> None:
        """Take a sample, if it is time for one."""
        now = self._clock()
        if now < self._next_at:
            return
        self._samples.append(self._read(self._place, round(now - self._began_at, 1)))
        if len(self._samples) >= MOST_SAMPLES:
            pairs = zip(self._samples[::2], self._samples[1::2], strict=True)
            self._samples = [first.merged(second) for first, second in pairs]
            self._every_s *= 2
        self._next_at = now + self._every_s

    @property
    def use(self) -> HostUse:
        """All that was seen so far."""
        samples = self._samples
        return HostUse(
            at_s=tuple(sample.at_s for sample in samples),
            memory_gb=tuple(_gb(sample.memory.used) for sample in samples),
            shm_gb=tuple(_gb(sample.shm.used) for sample in samples),
            disk_free_gb=tuple(_gb(sample.disk.total - sample.disk.used) for sample in samples),
            memory_total_gb=_gb(samples[-1].memory.total) if samples else 0.0,
            shm_total_gb=_gb(samples[-1].shm.total) if samples else 0.0,
        )

    def shortage(self) -> str:
        """Return what of the host was used up at the worst moment, as one clause; empty if there was enough of everything."""
        worst = None
        for sample in self._samples:
            worst = sample if worst is None else worst.merged(sample)
        if worst is None:
            return ""
        named = (("memory", worst.memory), (str(_SHM), worst.shm), ("the disk of the run directory", worst.disk))
        short = [f"{name} ({_gb(of.used):g} of {_gb(of.total):g} GB)" for name, of in named if of.is_short]
        return f"the host was nearly out of {' and '.join(short)} meanwhile" if short else ""


def read_sample(place: Path, at_s: float) -> Sample:
    """Return the figures of this moment; `place` lies on the disk that is meant."""
    return Sample(at_s=at_s, memory=read_memory(), shm=_filesystem(_SHM), disk=_filesystem(place))


def read_memory(*, root: Path = Path("/")) -> Space:
    """Return the memory in use: of the container (cgroup v2 or v1) if it has a limit below the host's, else of the host."""
    host = _host_memory(root)
    for directory, limit, used, cache in (
        ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        with contextlib.suppress(OSError, ValueError):  # not this version, or "max": no limit
            group = root / directory
            total = int((group / limit).read_text())
            if not host.total or total < host.total:
                # Pages of files that nobody uses are given back before anything is ended.
                return Space(used=int((group / used).read_text()) - _table(group / "memory.stat").get(cache, 0), total=total)
    return host


def _host_memory(root: Path) -> Space:
    with contextlib.suppress(OSError, KeyError):
        table = _table(root / "proc/meminfo")
        return Space(used=(table["MemTotal:"] - table["MemAvailable:"]) * 1024, total=table["MemTotal:"] * 1024)
    return Space()


def _table(path: Path) -> dict[str, int]:
    lines = (line.split() for line in path.read_text(encoding="ascii", errors="replace").splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _filesystem(path: Path) -> Space:
    try:
        found = os.statvfs(path)
    except OSError:
        return Space()
    total = found.f_blocks * found.f_frsize
    return Space(used=total - found.f_bavail * found.f_frsize, total=total)


def _gb(count: int) -> float:
    return round(count / _GB, 3)
