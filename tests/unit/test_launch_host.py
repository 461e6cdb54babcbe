"""What the host had while a run trained: the figures of a moment, and few of them however long the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ascend_e2e.launch.host import EVERY_S, MOST_SAMPLES, HostWatch, Sample, Space, read_memory, read_sample

GB = 1 << 30
MEMINFO = f"MemTotal: {64 * GB // 1024} kB\nMemFree: 1 kB\nMemAvailable: {60 * GB // 1024} kB\nHugePages_Total: 0\n"


class Host:
    """A clock, and a host whose memory in use is what the test says."""

    def __init__(self, tmp_path: Path) -> None:
        self.now = 0.0
        self.used_gb = 1.0
        self.watch = HostWatch(tmp_path, clock=lambda: self.now, read=self.sample)

    def sample(self, _: Path, at_s: float) -> Sample:
        return Sample(
            at_s=at_s,
            memory=Space(used=int(self.used_gb * GB), total=64 * GB),
            shm=Space(used=GB, total=32 * GB),
            disk=Space(used=GB, total=8 * GB),
        )


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def files(root: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_sample_is_taken_at_once_and_then_every_two_seconds(host: Host) -> None:
    for now in (0.0, 0.2, 1.9, 2.0, 3.0, 4.1):
        host.now = now
        host.watch.look()

    assert host.watch.use.at_s == (0.0, 2.0, 4.1)


def test_a_long_run_has_few_samples_and_keeps_its_peak(host: Host) -> None:
    for second in range(3 * 3600):
        host.now = float(second)
        host.used_gb = 63.0 if 5000 <= second < 5300 else 2.0
        host.watch.look()

    use = host.watch.use
    assert len(use.at_s) < MOST_SAMPLES
    assert len(use.at_s) == len(use.memory_gb) == len(use.shm_gb) == len(use.disk_free_gb)
    assert list(use.at_s) == sorted(use.at_s)
    assert use.at_s[-1] > 2.5 * 3600
    assert (use.peak_memory_gb, use.peak_shm_gb, use.least_disk_free_gb, use.memory_total_gb) == (63.0, 1.0, 7.0, 64.0)


def test_a_short_peak_survives_the_merging(host: Host) -> None:
    for look in range(MOST_SAMPLES):
        host.now = look * EVERY_S
        host.used_gb = 50.0 if look == 5 else 2.0
        host.watch.look()

    assert host.watch.use.peak_memory_gb == 50.0
    assert len(host.watch.use.at_s) == MOST_SAMPLES // 2


def test_a_host_that_was_full_is_told(host: Host) -> None:
    host.used_gb = 63.5
    host.watch.look()

    assert host.watch.shortage() == "the host was nearly out of memory (63.5 of 64 GB) meanwhile"


def test_a_host_with_room_is_not_told_of(host: Host) -> None:
    host.watch.look()

    assert host.watch.shortage() == ""


def test_before_the_first_look_there_is_nothing(host: Host) -> None:
    assert (host.watch.use.peak_memory_gb, host.watch.use.least_disk_free_gb, host.watch.shortage()) == (0.0, None, "")


def test_the_memory_of_a_host_is_what_is_not_available(tmp_path: Path) -> None:
    root = files(tmp_path, {"proc/meminfo": MEMINFO, "sys/fs/cgroup/memory.max": "max\n"})

    assert read_memory(root=root) == Space(used=4 * GB, total=64 * GB)


def test_the_memory_of_a_container_is_that_of_its_limit_without_idle_files(tmp_path: Path) -> None:
    group = {"memory.max": f"{8 * GB}", "memory.current": f"{5 * GB}", "memory.stat": f"anon 1\ninactive_file {2 * GB}\n"}
    root = files(tmp_path, {"proc/meminfo": MEMINFO, **{f"sys/fs/cgroup/{name}": text for name, text in group.items()}})

    assert read_memory(root=root) == Space(used=3 * GB, total=8 * GB)


def test_the_older_files_of_a_container_are_read_too(tmp_path: Path) -> None:
    group = {"limit_in_bytes": f"{8 * GB}", "usage_in_bytes": f"{5 * GB}", "stat": f"total_inactive_file {GB}\n"}
    root = files(tmp_path, {"proc/meminfo": MEMINFO, **{f"sys/fs/cgroup/memory/memory.{name}": of for name, of in group.items()}})

    assert read_memory(root=root) == Space(used=4 * GB, total=8 * GB)


def test_a_container_without_a_limit_of_its_own_has_the_hosts_memory(tmp_path: Path) -> None:
    unlimited = {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}
    root = files(tmp_path, {"proc/meminfo": MEMINFO, **unlimited})

    assert read_memory(root=root).total == 64 * GB


def test_this_host_is_read(tmp_path: Path) -> None:
    sample = read_sample(tmp_path, 1.5)

    assert 0 < sample.memory.used <= sample.memory.total
    assert 0 < sample.disk.used <= sample.disk.total
    assert sample.shm.used <= sample.shm.total


def test_a_full_disk_is_short() -> None:
    assert Space(used=96, total=100).is_short
    assert not Space(used=94, total=100).is_short
    assert not Space().is_short
