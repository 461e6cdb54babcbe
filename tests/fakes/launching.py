"""Supervised runs of the fake trainer, and a look at what is left of them."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from pytest_ascend_e2e.launch import RUN_ID, Command, Limits, RunDirectory, Supervisor, build_environment

TRAINER = Path(__file__).with_name("trainer.py")


def trainer_argv(*actions: str) -> tuple[str, ...]:
    return (sys.executable, "-S", str(TRAINER), *actions)


def limits(**changes: float | None) -> Limits:
    """Short ones, without a scene, and a total that only a test of the total meets."""
    return Limits(**{"total_s": 60.0, "fatal_s": 0.5, "scene_s": 0.0, "grace_s": 0.5, "leave_s": 0.3, **changes})  # type: ignore[arg-type]  # a test's own


class FakeRun:
    """One run of the fake trainer under a supervisor."""

    def __init__(self, root: Path, *actions: str, env: Mapping[str, str] | None = None, **more: object) -> None:
        self.run_id = f"test_fake-20261130T150405-{secrets.token_hex(4)}"
        path = root / self.run_id
        variables = build_environment(os.environ, extra={"VERL_FILE_LOGGER_PATH": str(path / "metrics.jsonl"), **(env or {})})
        self.command = Command(argv=trainer_argv(*actions), env=variables, cwd=root)
        self.directory = RunDirectory.create(path, env=variables)
        self.supervisor = Supervisor(self.command, self.directory, run_id=self.run_id, **{"limits": limits(), **more})  # type: ignore[arg-type]  # a test's own

    @property
    def log(self) -> str:
        return self.directory.log.read_text(encoding="utf-8", errors="replace")


def living(run_id: str) -> list[str]:
    """Return the live processes that carry the tag, found by other means than the code under test."""
    return [str(process) for process in psutil.process_iter() if _is_alive(process) and _tag_of(process) == run_id]


def sleepers(kind: str) -> list[str]:
    """Return the daemons of the fake trainer with this word at the end of their command line."""
    return [str(process) for process in psutil.process_iter() if _is_alive(process) and _last_word(process) == kind]


def wait_until(is_so: Callable[[], object], *, limit_s: float = 20.0) -> bool:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.05)
    return False


def stranger(*, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a process that belongs to nobody's run, or to the run that `env` says."""
    return subprocess.Popen(
        [sys.executable, "-S", "-c", "import time; time.sleep(120)"],
        env=None if env is None else {**os.environ, **env},
        start_new_session=True,
    )


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _tag_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(RUN_ID)
    except (psutil.Error, OSError):
        return None


def _last_word(process: psutil.Process) -> str | None:
    try:
        return [None, *process.cmdline()][-1]
    except psutil.Error:
        return None
