"""The supervisor's end of the line to the keeper: start it, hear from it, ask it to end the training.

Must not know: why a training must end.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..deadline import Deadline
from ..errors import LaunchError
from .keeper import BOOT, HURRY, STOP
from .processes import OWNER, RUN_ID, owner_text
from .run_directory import Command, RunDirectory

_START_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """What a keeper is given to keep.

    `fds` are descriptors that the keeper and the training's first process inherit: a lease lives as long as one of them does.
    """

    command: Command
    directory: RunDirectory
    run_id: str
    grace_s: float
    fatal_grace_s: float
    leave_s: float
    fds: tuple[int, ...] = ()
    ray_home: Path | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """The files and directories that only this run writes its output to."""
        return (str(self.directory.log), *(() if self.ray_home is None else (str(self.ray_home),)))


class Keeping:
    """One keeper, from its start to its end, and what it has said so far.

    `status` is the training's exit status, negative for a signal, None while unknown; `is_ended` says that the training ended by
    itself; `is_over` that the keeper has gone, with `leftovers` and `stuck` if it could finish (`is_cleared`).
    """

    def __init__(self, charge: Charge) -> None:
        self._charge = charge
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._heard = b""
        self._refusal = ""
        self._is_started = False
        self.status: int | None = None
        self.is_ended = False
        self.is_cleared = False
        self.is_over = False
        self.leftovers: tuple[str, ...] = ()
        self.stuck: tuple[str, ...] = ()

    def start(self) -> None:
        """Start keeper and training.

        Raises:
            LaunchError: the log cannot be made, or the program, its directory or a descriptor is not there.
        """
        charge = self._charge
        env = {**charge.command.env, RUN_ID: charge.run_id, OWNER: owner_text(os.getpid())}
        try:
            log = os.open(charge.directory.log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except OSError as error:
            raise LaunchError(
                f"log {str(charge.directory.log)!r} cannot be made: {error}; each run needs a new directory"
            ) from error
        ours, theirs = socket.socketpair()
        self._line = ours
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", BOOT, str(Path(__file__).parent)],
                env=env,
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                pass_fds=charge.fds,
                start_new_session=True,
            )
            ours.sendall(json.dumps(self._order(env)).encode() + b"\n")
            self._await_start()
        except OSError as error:
            raise LaunchError(f"the training could not be started: {error}") from error
        finally:
            theirs.close()
            os.close(log)

    def wait(self, limit_s: float) -> None:
        """Return when the keeper has said something, at the latest after `limit_s` seconds."""
        if self._line is None or self.is_over:
            return
        poll = select.poll()
        poll.register(self._line, select.POLLIN)
        if not poll.poll(limit_s * 1000):
            return
        try:
            chunk = self._line.recv(1 << 16)
        except ConnectionResetError:  # killed before it had read all that was sent to it
            chunk = b""
        self._heard += chunk
        *messages, self._heard = self._heard.split(b"\n")
        for message in messages:
            self._take(json.loads(message))
        self.is_over = not chunk

    @property
    def pid(self) -> int | None:
        """The number of the keeper's process, None before its start."""
        return None if self._process is None else self._process.pid

    def end(self, limit_s: float, *, is_hurried: bool = False) -> None:
        """Ask the keeper to end the training, and wait until nothing is left or `limit_s` seconds have passed."""
        if self._line is not None and not self.is_over:
            try:
                self._line.sendall(HURRY if is_hurried else STOP)
            except OSError:  # gone at this very moment
                self.is_over = True
        self.wait_over(limit_s)

    def wait_over(self, limit_s: float) -> None:
        """Wait until the keeper has gone, or `limit_s` seconds have passed."""
        deadline = Deadline.after(limit_s, name="keeper")
        while not self.is_over and not deadline.is_over():
            self.wait(deadline.remaining_s())

    def close(self) -> int:
        """Hang up, make sure that the keeper is gone, and return its own exit status (negative for a signal)."""
        if self._line is not None:
            self._line.close()
        if self._process is None:
            return 0
        if not self.is_over:  # it has had its time: whoever closes sweeps
            self._process.kill()
        return self._process.wait()

    def _await_start(self) -> None:
        deadline = Deadline.after(_START_S, name="start of the keeper")
        while not (self._is_started or self._refusal or self.is_over or deadline.is_over()):
            self.wait(deadline.remaining_s())
        if self._is_started:
            return
        argv = self._charge.command.argv
        cause = self._refusal or f"its keeper did not start; see {str(self._charge.directory.log)!r}"
        raise LaunchError(f"{argv[0] if argv else ''!r} could not be started in {str(self._charge.command.cwd)!r}: {cause}")

    def _take(self, message: Mapping[str, Any]) -> None:
        match message["event"]:
            case "started":
                self._is_started = True
            case "refused":
                self._refusal = str(message["error"])
            case "ended":
                self.is_ended = True
                self.status = message["status"]
            case "cleared":
                self.is_cleared = True
                self.status = message["status"]
                self.leftovers = tuple(message["leftovers"])
                self.stuck = tuple(message["stuck"])

    def _order(self, env: Mapping[str, str]) -> dict[str, Any]:
        charge = self._charge
        return {
            "run_id": charge.run_id,
            "argv": list(charge.command.argv),
            "env": dict(env),
            "cwd": str(charge.command.cwd),
            "fds": list(charge.fds),
            "places": list(charge.places),
            "grace_s": charge.grace_s,
            "fatal_grace_s": charge.fatal_grace_s,
            "leave_s": charge.leave_s,
            "run_dir": str(charge.directory.path),
            "ray_home": "" if charge.ray_home is None else str(charge.ray_home),
        }
