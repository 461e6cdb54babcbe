"""Which shared memory is a run's to remove."""

from __future__ import annotations

import mmap
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_ascend_e2e.launch.shared_memory import mapped_segments, remove_segments


@pytest.fixture
def segment() -> Iterator[Path]:
    path = Path("/dev/shm", f"e2e-test-{secrets.token_hex(4)}")  # noqa: S108  # where the kernel keeps them
    path.write_bytes(bytes(4096))
    yield path
    path.unlink(missing_ok=True)


@contextmanager
def mapped(path: Path) -> Iterator[None]:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        yield


def test_a_segment_is_found_while_it_is_mapped(segment: Path) -> None:
    with mapped(segment):
        during = mapped_segments([os.getpid()])

    assert str(segment) in during
    assert str(segment) not in mapped_segments([os.getpid()])


def test_a_segment_without_a_name_is_not_found(segment: Path) -> None:
    with mapped(segment):
        segment.unlink()

        assert not [path for path in mapped_segments([os.getpid()]) if path.startswith(str(segment))]


def test_a_segment_of_nobody_is_removed(segment: Path) -> None:
    removed = remove_segments([str(segment)], in_use=set(), born_after=time.time() - 60)

    assert removed == [str(segment)]
    assert not segment.exists()


def test_a_segment_in_use_stays(segment: Path) -> None:
    remove_segments([str(segment)], in_use={str(segment)}, born_after=time.time() - 60)

    assert segment.exists()


def test_a_segment_older_than_the_run_stays(segment: Path) -> None:
    remove_segments([str(segment)], in_use=set(), born_after=time.time() + 60)

    assert segment.exists()


def test_a_segment_that_is_gone_is_no_error(segment: Path) -> None:
    segment.unlink()

    assert remove_segments([str(segment)], in_use=set(), born_after=0.0) == []
