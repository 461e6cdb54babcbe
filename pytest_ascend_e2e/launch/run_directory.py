"""The directory of one run: its name, its files, each written whole or not at all.

Must not know: what the training does with its files, or what a record says.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ..errors import LaunchError
from ..nodeids import name_of_test
from .redaction import REDACTED, Redactor
from .script import write_script

ENVIRONMENT_SCHEMA = 1
COMMAND_SCHEMA = 1
_CASE_LIMIT = 48
_TOKEN = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """What is run: arguments, the whole environment, and the directory it starts in."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


def new_run_id(case: str, *, now: datetime, token: str) -> str:
    """Return the name of a run: the case's, the time, and `token`, which makes it unique (letters and digits, from `secrets`).

    It is a safe file name of at most 48 + 17 + len(token) characters: `test_grpo_qwen3_8b-20261130T150405-9f3a1c`.
    """
    if not _TOKEN.fullmatch(token):
        raise ValueError(f"token {token!r} cannot be used: expected letters and digits, such as '9f3a1c'")
    slug = re.sub(r"[^A-Za-z0-9_]+", "_", name_of_test(case)).strip("_")[:_CASE_LIMIT].strip("_") or "run"
    return f"{slug}-{now:%Y%m%dT%H%M%S}-{token}"


class RunDirectory:
    """The files of one run, by name. `RunDirectory(path)` names those of a run that exists; `create` makes a new one."""

    def __init__(self, path: Path, *, redactor: Redactor | None = None) -> None:
        self.path = path.absolute()
        self._redactor = Redactor() if redactor is None else redactor

    @classmethod
    def create(cls, path: Path, *, env: Mapping[str, str]) -> RunDirectory:
        """Make the directory, parents included, for a run whose environment is `env` (its secrets are kept out of all files).

        Raises:
            LaunchError: it is there already, or cannot be made.
        """
        if path.exists():
            raise LaunchError(f"run directory {str(path)!r} is there already; each run needs one of its own")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir()
        except OSError as error:
            raise LaunchError(
                f"run directory {str(path)!r} cannot be made: {error}; choose a directory you can write to"
            ) from error
        return cls(path, redactor=Redactor(env))

    @property
    def command_script(self) -> Path:
        """`command.sh`: repeats the run by hand."""
        return self.path / "command.sh"

    @property
    def checkpoints(self) -> Path:
        """`checkpoints/`: where verl saves unless `trainer.default_local_dir` says otherwise."""
        return self.path / "checkpoints"

    @property
    def command(self) -> Path:
        """`command.json`: the arguments and the directory of the run's Ray, for a program that repeats it."""
        return self.path / "command.json"

    @property
    def config(self) -> Path:
        """`config.yaml`: the composed configuration."""
        return self.path / "config.yaml"

    @property
    def environment(self) -> Path:
        """`environment.json`: the environment of the training, without secrets."""
        return self.path / "environment.json"

    @property
    def log(self) -> Path:
        """`train.log`: all that the training printed, as it was."""
        return self.path / "train.log"

    @property
    def metrics(self) -> Path:
        """`metrics.jsonl`: one line a step, written by verl (`VERL_FILE_LOGGER_PATH`)."""
        return self.path / "metrics.jsonl"

    @property
    def record(self) -> Path:
        """`record.json`: the run and its checks."""
        return self.path / "record.json"

    @property
    def ending(self) -> Path:
        """`ending.json`: how it ended, there only if the pytest process was gone before."""
        return self.path / "ending.json"

    @property
    def ray_logs(self) -> Path:
        """`ray-logs/`: the logs of the run's Ray, there only if the run failed."""
        return self.path / "ray-logs"

    @property
    def stacks(self) -> Path:
        """`stacks.txt`: what every process was doing when the run was given up, there only if it was."""
        return self.path / "stacks.txt"

    @property
    def npu_smi(self) -> Path:
        """`npu-smi.txt`: the devices at that moment, where the host has the tool."""
        return self.path / "npu-smi.txt"

    @property
    def device_logs(self) -> Path:
        """`device-logs/`: CANN's own logs (plog), there only where there are NPUs, until the run has passed."""
        return self.path / "device-logs"

    def make_device_logs(self) -> None:
        """Make the directory of CANN's logs, which CANN does not make itself.

        Raises:
            LaunchError: it cannot be made.
        """
        try:
            self.device_logs.mkdir(exist_ok=True)
        except OSError as error:
            raise LaunchError(f"{str(self.device_logs)!r} cannot be made: {error}; see that its disk has space") from error

    def remove_device_logs(self) -> None:
        """Remove CANN's logs: of a run that went well, nobody reads them."""
        shutil.rmtree(self.device_logs, ignore_errors=True)

    @property
    def variables(self) -> dict[str, str]:
        """The variables by which verl and CANN find their files here: for the environment of the run."""
        return {"VERL_FILE_LOGGER_PATH": str(self.metrics), "ASCEND_PROCESS_LOG_PATH": str(self.device_logs)}

    def write_command(self, command: Command, *, ray_home: Path | None = None) -> None:
        """Write `command.sh`, `command.json` and `environment.json`; of `ray_home`, the run's own, each repeat gets another."""
        script = write_script(
            command.argv, command.env, cwd=command.cwd, run_dir=self.path, ray_home=ray_home, redactor=self._redactor
        )
        self._write(self.command_script, script, mode=0o755)
        words = self._redactor.arguments(command.argv)
        argv = ["".join(REDACTED if piece.secret_of else piece.text for piece in pieces) for pieces in words]
        home = None if ray_home is None else str(ray_home)
        self._write(self.command, json.dumps({"schema": COMMAND_SCHEMA, "argv": argv, "ray_home": home}, indent=1) + "\n")
        variables = {name: self._redactor.variable(name, value) for name, value in command.env.items()}
        content = {"schema": ENVIRONMENT_SCHEMA, "cwd": str(command.cwd), "variables": variables}
        self._write(self.environment, json.dumps(content, indent=1) + "\n")

    def write_config(self, text: str) -> None:
        """Write `config.yaml`."""
        self._write(self.config, self._redactor.yaml(text))

    def write_record(self, text: str) -> None:
        """Write `record.json`, as often as there is more to tell."""
        self._write(self.record, self._redactor.text(text))

    def _write(self, path: Path, text: str, *, mode: int = 0o644) -> None:
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(mode)
            temporary.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):  # not there, or not to be reached: the first error tells more
                temporary.unlink()
            raise LaunchError(f"{str(path)!r} cannot be written: {error}; see that its disk has space and is writable") from error
