"""The keeper: a small process between the pytest process and the training, which outlives the first and ends the second.

It starts the training in a session of its own, adopts every orphan of it (so that a daemon of Ray stays its descendant), holds the
lease's descriptors, and ends the whole tree when it is told to, when the training has ended, or when the pytest process
is gone, however that came: a SIGKILL, the kernel's out-of-memory killer, a closed CI job.

It is told what to do by one line of JSON on a socket, its standard input, and answers there. It is loaded without the package
around it (see `BOOT`): it needs the standard library only, starts in some 20 ms, and nothing that is installed can break it.

Must not know: deadlines, logs, verl.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from typing import Any

from .closing import Book
from .processes import Process, Signs, end, find, read_table, tag_of
from .shared_memory import mapped_segments, remove_segments

BOOT = (
    "import sys, types; room = types.ModuleType('room'); room.__path__ = [sys.argv[1]]; sys.modules['room'] = room; "
    "from room.keeper import main; sys.exit(main())"
)
STOP = b"!"
HURRY = b"h"

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_S = 0.5
# A crash shows nobody what it had mapped: so look now and then, at the price of reading some maps.
_SEGMENTS_EVERY_S = 20.0


class Keeper:
    """One training and everything it started, from its start until nothing is left of it."""

    def __init__(self, order: Mapping[str, Any], line: socket.socket) -> None:
        self._order = order
        self._line = line
        self._supervisor = os.getppid()
        self._training: subprocess.Popen[bytes] | None = None
        self._status: int | None = None
        self._is_told = False
        self._grace_s = float(order["grace_s"])
        self._is_hung_up = False
        self._wake_fd = _wake_pipe()
        self._began_at = time.time()
        self._segments: set[str] = set()
        self._segments_at = time.monotonic()
        self._signs = Signs(
            tags=frozenset({tag_of(order["run_id"])}),
            places=tuple(order["places"]),
            roots=(os.getpid(),),
            spared=frozenset({os.getpid()}),
        )

    def run(self) -> int:
        """Do the whole work; return the exit status of the keeper, 0 if it could do it."""
        try:
            self.start()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._say(event="refused", error=str(error))
            return 1
        reason = "the keeper failed"
        try:
            reason = self.keep()
        finally:
            self.clear(is_ended=not reason)
            if self._is_alone():
                self.close_book(reason or "the training ended, and the pytest process was gone")
        return 0

    def start(self) -> None:
        """Start the training and say so, or say why it could not be started."""
        order = self._order
        self._training = subprocess.Popen(
            order["argv"],
            env=order["env"],
            cwd=order["cwd"],
            stdin=subprocess.DEVNULL,
            pass_fds=order["fds"],
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509  # the keeper has one thread
        )
        self._say(event="started", pid=self._training.pid)

    def keep(self) -> str:
        """Wait until the training has ended or must end; return why it must, empty if it ended by itself."""
        watch = select.poll()
        watch.register(self._line, select.POLLIN)
        watch.register(self._wake_fd, select.POLLIN)
        while True:
            self.reap()
            if self._status is not None:
                return ""
            if self._is_told:
                return "the keeper was told to stop"
            if self._is_alone():
                return "the pytest process is gone"
            if time.monotonic() >= self._segments_at + _SEGMENTS_EVERY_S:
                self._note_segments()
            ready = {descriptor for descriptor, _ in watch.poll(_LOOK_S * 1000)}
            if self._wake_fd in ready:
                os.read(self._wake_fd, 4096)
            if self._line.fileno() in ready and self._is_asked():
                return "the supervisor asked"

    def clear(self, *, is_ended: bool) -> None:
        """End what is left; a training that ended by itself gives its helpers `leave_s` seconds to go by themselves."""
        if is_ended:
            self._say(event="ended", status=self._status)
            leave_until = time.monotonic() + float(self._order["leave_s"])
            while time.monotonic() < leave_until and not self._is_told and self._left():
                time.sleep(0.2)
                self.reap()
        self._note_segments()
        told, stuck = end(self._left, grace_s=self._grace_s, reap=self.reap)
        self.reap()
        remove_segments(self._segments, in_use=mapped_segments(read_table()), born_after=self._began_at)
        training = self._training.pid if self._training else None
        self._say(
            event="cleared",
            status=self._status,
            leftovers=[str(process) for process in told if process.pid != training],
            stuck=[str(process) for process in stuck],
        )

    def close_book(self, reason: str) -> None:
        """Do what the supervisor would have done: say in the run directory how it ended, and remove Ray's directory."""
        order = self._order
        book = Book(run_id=order["run_id"], run_dir=order["run_dir"], ray_home=order["ray_home"])
        book.close(reason, status=self._status, duration_s=time.time() - self._began_at)

    def reap(self) -> None:
        """Take the exit status of every child that has ended, the adopted ones too."""
        with contextlib.suppress(ChildProcessError):  # no child left
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if self._training is not None and pid == self._training.pid:
                    self._status = self._training.returncode = os.waitstatus_to_exitcode(status)

    def take_signal(self, *_: object) -> None:
        """Stop at the next look: what a signal to the keeper asks for."""
        self._is_told = True

    def _note_segments(self) -> None:
        self._segments |= mapped_segments(process.pid for process in self._left())
        self._segments_at = time.monotonic()

    def _left(self) -> list[Process]:
        return find(self._signs)

    def _is_asked(self) -> bool:
        """Read the line: a byte asks to stop (`HURRY` with less grace), its end says that nobody is there any more."""
        try:
            byte = self._line.recv(1)
        except OSError:  # ended with words of ours unread
            byte = b""
        self._is_hung_up = not byte
        if byte == HURRY:
            self._grace_s = float(self._order["fatal_grace_s"])
        return bool(byte)

    def _is_alone(self) -> bool:
        return self._is_hung_up or os.getppid() != self._supervisor

    def _say(self, **message: object) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more: the keeper's work goes on
            self._line.sendall(json.dumps(message).encode() + b"\n")


def _end_with_parent() -> None:
    """Have the kernel end the training if the keeper itself is killed: the last resort, for the training's first process only."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wake_pipe() -> int:
    """Return the readable end of a pipe that every signal writes to, so that a wait ends at once when a child does."""
    readable, writable = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # no libc to call: the tags are left, which need no help of the kernel
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main() -> int:
    """Keep one training; return 0 when nothing is left of it."""
    line = socket.socket(fileno=0)
    with line.makefile("rb", buffering=0) as orders:
        order = json.loads(orders.readline())
    keeper = Keeper(order, line)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, keeper.take_signal)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    return keeper.run()
