"""The end of a run whose pytest process is gone: its note, its record, its files outside of the run directory.

Whoever is left does it: the keeper, or the next session on this host. Must not know: how the run came to its end. Standard library
only, and no import from outside this room: the keeper loads it bare.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from .ray_remains import put_away, remove_weight_sockets

ENDING_SCHEMA = 1
# The reason in a record that was written before its run had ended.
UNFINISHED = "not ended yet, or ended together with its session, which could not write more"


@dataclass(frozen=True, kw_only=True, slots=True)
class Book:
    """What there is of a run: its id, its directory, and its directory of Ray (empty for none); text, as it goes over a line."""

    run_id: str
    run_dir: str
    ray_home: str = ""

    def close(self, reason: str, *, status: int | None = None, duration_s: float | None = None) -> None:
        """Complete a record that was left unfinished, write `ending.json`, keep Ray's logs and remove its directory.

        `status` is the exit status of the training, negative for a signal, None where nobody knows.
        """
        run_dir = Path(self.run_dir)
        if run_dir.is_dir():  # it may be gone with the session
            _complete(run_dir / "record.json", reason, status, duration_s)
            ending = run_dir / "ending.json"
            if not ending.exists():
                _write(ending, {"schema": ENDING_SCHEMA, "reason": reason, "status": status})
        remove_weight_sockets(self.run_id)
        if self.ray_home:
            put_away(self.ray_home, keep_in=run_dir / "ray-logs" if run_dir.is_dir() else None)


def _complete(record: Path, reason: str, status: int | None, duration_s: float | None) -> None:
    try:
        data = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none, or no record of ours
        return
    if not isinstance(data, dict) or data.get("end_reason") != UNFINISHED:
        return
    number = -status if status is not None and status < 0 else None
    name = None if number is None else next((known.name for known in signal.Signals if known == number), f"signal {number}")
    how = "" if status is None else f"; the training ended by {name}" if name else f"; the training ended with exit status {status}"
    data |= {"end_reason": f"{reason}{how}", "signal": name, "exit_status": status if name is None else None}
    if duration_s is not None:
        data["duration_s"] = duration_s
    _write(record, data)


def _write(target: Path, content: object) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    with contextlib.suppress(OSError):  # a disk that is full: the note that there is stays whole
        temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(target)
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
