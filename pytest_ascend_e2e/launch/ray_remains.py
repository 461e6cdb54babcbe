"""What a run's own Ray leaves on the disk: its logs are kept beside the run, the rest is removed.

Must not know: why they are wanted. Standard library only, and no import from outside this room: the keeper loads it bare.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

FILE_LIMIT_BYTES = 1 << 20
TOTAL_LIMIT_BYTES = 64 << 20
# Where verl makes them, and how it names them, whatever TMPDIR says.
WEIGHT_SOCKETS = Path("/tmp")  # noqa: S108  # as above


def job_number(run_id: str) -> int:
    """Return the number of this run's job in Ray: 1 to 2 ** 32 - 1, another one for another run."""
    return zlib.crc32(run_id.encode()) or 1


def remove_weight_sockets(run_id: str, *, place: Path = WEIGHT_SOCKETS) -> None:
    """Remove the sockets that verl, killed while it sends weights, leaves outside of the run's own directories."""
    job_id = job_number(run_id).to_bytes(4, "little").hex()
    for path in place.glob(f"rl-colocate-zmq-{job_id}-*.sock"):
        with contextlib.suppress(OSError):  # gone meanwhile, or another user's
            path.unlink()


def put_away(home: str | Path, *, keep_in: str | Path | None) -> None:
    """Remove Ray's directory of one run; before, keep the logs of its sessions in `keep_in`, if that is given.

    Of a long file the last `FILE_LIMIT_BYTES` are kept, and no more than `TOTAL_LIMIT_BYTES` in all, the latest files first.
    """
    if keep_in is not None:
        _keep_logs(Path(home), Path(keep_in))
    shutil.rmtree(home, ignore_errors=True)


def _keep_logs(home: Path, target: Path) -> None:
    room = TOTAL_LIMIT_BYTES
    for path in sorted(_log_files(home), key=_changed_at, reverse=True):
        with contextlib.suppress(OSError):  # the disk may be full, which may be why the run failed: keep what can be kept
            text = _last_bytes(path, min(FILE_LIMIT_BYTES, room))
            if text:
                kept = target / path.relative_to(home)
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(text)
                room -= len(text)


def _log_files(home: Path) -> Iterator[Path]:
    for session in home.glob("session_*"):
        if session.is_symlink():  # session_latest
            continue
        for directory, _, names in os.walk(session / "logs"):
            for name in names:
                path = Path(directory, name)
                if path.is_file() and not path.is_symlink():
                    yield path


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _last_bytes(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - limit))
        return file.read(limit)
