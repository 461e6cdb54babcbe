"""One process that has the heavy imports done, and from which the Python processes of a run are forked.

A run is eleven processes that import the same four thousand modules, ten seconds of processor time each, most of them one after
another: nearly all of what a training of a tiny model costs. With a fork server they are imported once.

    driver's interpreter --starts--> fork server --forks--> driver
    a Ray worker's interpreter --asks--> fork server --forks--> Ray worker

The interpreter that was started in the usual way stays as the stand-in of its fork: it hands over arguments, environment,
directory and standard streams, passes signals on, and ends as the fork ends. A fork dies with its stand-in and with the server.

Only modules that read nothing of the run and start no thread are imported ahead. Ray and verl are not among them: Ray reads job
and raylet from the environment when it is imported.

Imports nothing heavy itself: each interpreter of a run imports this module.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import secrets
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ADDRESS = "SIMNPU_FORK_SERVER"
"""The environment variable with the name of the server's socket, one without a file; empty turns forking off."""

DRIVER = "verl.trainer.main_ppo"
WORKER = "ray/_private/workers/default_worker.py"

BEFORE_THE_DRIVER = (
    "torch",
    "torch._dynamo",
    "torch.distributed.fsdp",
    "torch.distributed.tensor",
    "numpy",
    "pandas",
    "pyarrow",
    "datasets",
    "tensordict",
    "transformers",
    "transformers.modeling_utils",
    "transformers.models.auto",
    "accelerate",
    "torchvision",
    "hydra",
)
"""In the order of their import; what verl's driver needs as well as its workers."""

WHILE_RAY_STARTS = (
    "networkx",
    "fastapi",
    "uvicorn",
    "openai",
    "vllm",
    "vllm.config",
    "vllm.engine.arg_utils",
    "vllm.v1.worker.gpu_model_runner",
    "vllm.v1.worker.cpu_worker",
    "vllm.v1.core.sched.scheduler",
    "vllm.model_executor.model_loader",
    "vllm.model_executor.models.qwen3",
    "vllm.model_executor.models.qwen3_moe",
    "vllm.model_executor.models.qwen3_vl",
    "compressed_tensors",
)
"""What the workers need besides: the driver is forked by then and starts Ray, and the other core is idle."""

FORBIDDEN = ("ray", "verl")
"""What must not be imported ahead, whoever asks for it."""

_STREAMS = (0, 1, 2)
_LAST_WORDS_S = 20.0
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Program:
    """What a fork runs: what `runpy` needs, and the surroundings of the interpreter that was started for it."""

    module: str = ""
    script: str = ""
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    directory: str = ""

    def run(self) -> None:
        """Become this program, in a process that was just forked."""
        os.chdir(self.directory)
        os.environ.clear()
        os.environ.update(self.environment)
        sys.argv[1:] = self.arguments
        sys.orig_argv[:] = [sys.executable, *(("-m", self.module) if self.module else (self.script,)), *self.arguments]
        if self.module:
            sys.path[0] = self.directory
            runpy.run_module(self.module, run_name="__main__", alter_sys=True)
        else:
            sys.argv[0] = self.script
            sys.path[0] = str(Path(self.script).parent)
            runpy.run_path(self.script, run_name="__main__")


def program_of(command: list[str]) -> Program | None:
    """Return the program of an interpreter's command line if it is one to fork, else None.

    An interpreter with options of its own is left alone: a fork has those of the server.
    """
    if command[1:3] == ["-m", DRIVER]:
        return Program(module=DRIVER, arguments=tuple(command[3:]))
    if len(command) > 1 and command[1].endswith(WORKER):
        return Program(script=command[1], arguments=tuple(command[2:]))
    return None


def fork_instead() -> None:
    """Let a fork of the server run this interpreter's program, and end as it does; return where the program is none to fork."""
    program = program_of(sys.orig_argv)
    if program is None or os.environ.get(ADDRESS) == "":
        return
    if ADDRESS not in os.environ:
        if program.module != DRIVER:
            return
        _start_server()
    status = stand_in(program)
    # An exception here, while the interpreter starts, would be told as a broken installation of Python.
    os._exit(status)


def _start_server() -> None:
    """Start the server for this run, as a child that ends with this process, and name it in the environment."""
    address = f"simnpu-{secrets.token_hex(8)}"
    listener = listen(address)
    # Descriptors are inherited on purpose: the locks of the lease live as long as a process of the run does.
    subprocess.Popen(
        [sys.executable, "-c", "from pytest_ascend_e2e.simnpu import forkserver; forkserver.serve()", str(listener.fileno())],
        env={**os.environ, ADDRESS: ""},
        close_fds=False,
    )
    listener.close()
    os.environ[ADDRESS] = address


def listen(address: str) -> socket.socket:
    """Return a listening socket of this name that a child inherits. It has no file, so nothing is left of it."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0{address}")
    listener.listen(64)
    listener.set_inheritable(True)
    return listener


def stand_in(program: Program) -> int:
    """Hand the program over and wait for its end; return the exit status, negative for a signal as in `subprocess`."""
    # The fork runs before its number is known here: a signal that comes meanwhile is for it too.
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(f"\0{os.environ[ADDRESS]}")
        _send(connection, program)
        # Unbuffered: what is not read yet must be seen by `select`.
        answers = connection.makefile("rb", buffering=0)
        fork = int(answers.readline())
    except (OSError, ValueError):
        print("the fork server of the simulated NPUs is gone; why it ended stands above in the log", file=sys.stderr)  # noqa: T201
        return 1
    _pass_signals_on(fork, until=connection)
    status = answers.readline()
    return _end_as(int(status)) if status else 1


def _send(connection: socket.socket, program: Program) -> None:
    request = {**asdict(program), "environment": dict(os.environ), "directory": str(Path.cwd())}
    payload = json.dumps(request).encode()
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", _STREAMS))
    connection.sendmsg([len(payload).to_bytes(4, "big")], [rights])
    connection.sendall(payload)


def _pass_signals_on(fork: int, until: socket.socket) -> None:
    """Send the fork every signal that comes, until there is something to read.

    Python runs a handler between two of its own instructions: one that comes just before a blocking read would wait for the read's
    end. The wake-up descriptor is written to at once, and holds the numbers.
    """
    signals, wake_up = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake_up, warn_on_full_buffer=False)
    for number in _FORWARDED:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    watched: list[int | socket.socket] = [until, signals]
    while True:
        readable, _, _ = select.select(watched, [], [])
        if signals in readable:
            for got in os.read(signals, 256):
                _send_signal(fork, got)
        if until in readable:
            return


def _send_signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _end_as(status: int) -> int:
    """End by the signal that ended the fork, or return its exit status."""
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    return status


def serve(before: Iterable[str] = BEFORE_THE_DRIVER, later: Iterable[str] = WHILE_RAY_STARTS) -> None:
    """Import ahead, then fork for whoever asks, until the process that started the server and all forks have ended."""
    parent = os.getppid()
    listener = socket.socket(fileno=int(sys.argv.pop(1)))
    # A signal to the whole run is for the forks and their stand-ins: the server ends when they have.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _import_ahead(before)
    program = _Server(listener, parent, later).run()
    if program is not None:
        program.run()


def _import_ahead(names: Iterable[str]) -> None:
    for name in names:
        importlib.import_module(name)
        present = [forbidden for forbidden in FORBIDDEN if forbidden in sys.modules]
        if present:
            raise SystemExit(
                f"the fork server of the simulated NPUs imported {present[0]} with {name}: each process must do that itself"
            )
    # What was imported is not garbage in any fork either.
    gc.freeze()


class _Server:
    """The loop of the server: no thread, so that a fork has none to miss."""

    def __init__(self, listener: socket.socket, parent: int, later: Iterable[str]) -> None:
        self._later = [*later][::-1]
        self._listener = listener
        self._parent = parent
        self._forks: dict[int, tuple[int, socket.socket]] = {}  # of each living fork, by its pidfd: process id, connection

    def run(self) -> Program | None:
        """Return the program in a fork, None in the server when all is over."""
        try:
            parent = os.pidfd_open(self._parent)
        except ProcessLookupError:
            return None
        end: float | None = None
        while end is None or (self._forks and time.monotonic() < end):
            watched: list[int | socket.socket] = [self._listener, *self._forks, *(its for _, its in self._forks.values())]
            if end is None:
                watched.append(parent)
            idle = 0.0 if self._later and self._forks else None
            readable, _, _ = select.select(watched, [], [], idle if end is None else max(0.0, end - time.monotonic()))
            if not readable and self._later and end is None:
                _import_ahead([self._later.pop()])
            if parent in readable:
                end = time.monotonic() + _LAST_WORDS_S
            for ready in readable:
                program = self._answer(ready)
                if program is not None:
                    return program
        return None

    def _answer(self, ready: int | socket.socket) -> Program | None:
        """Do what a descriptor that became readable asks for; return a program in a new fork only."""
        if ready is self._listener:
            return self._fork()
        if isinstance(ready, socket.socket):
            self._follow(ready)
        elif ready in self._forks:
            self._bury(ready)
        return None

    def _fork(self) -> Program | None:
        """Take one request; return its program in the fork and None in the server."""
        connection, _ = self._listener.accept()
        try:
            program, streams = _receive(connection)
        except (OSError, ValueError):
            connection.close()
            return None
        server = os.getpid()
        pid = os.fork()
        if pid:
            for stream in streams:
                os.close(stream)
            self._forks[os.pidfd_open(pid)] = (pid, connection)
            _tell(connection, pid)
            return None
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)
        connection.close()
        self._listener.close()
        for pidfd, (_, its) in self._forks.items():
            os.close(pidfd)
            its.close()
        for stream, number in zip(streams, _STREAMS, strict=True):
            os.dup2(stream, number)
            os.close(stream)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        _forget_common_seeds()
        return program

    def _bury(self, pidfd: int) -> None:
        """Tell the stand-in of a fork that ended how it ended."""
        pid, connection = self._forks.pop(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)
        _tell(connection, os.waitstatus_to_exitcode(status))
        connection.close()

    def _follow(self, connection: socket.socket) -> None:
        """Kill the fork of a stand-in that is gone."""
        with contextlib.suppress(OSError):
            if connection.recv(1):
                return
        for pid, its in self._forks.values():
            if its is connection:
                _send_signal(pid, signal.SIGKILL)


def _tell(connection: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # the stand-in may be gone
        connection.sendall(f"{number}\n".encode())


def _receive(connection: socket.socket) -> tuple[Program, list[int]]:
    """Read a request and the standard streams that came with it; a name without a file protects from nobody, so see who asks.

    Raises:
        PermissionError: another user asks.
        ValueError: not a request.
    """
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    if user != os.getuid():
        raise PermissionError(f"user {user} asks for a fork of user {os.getuid()}")
    head, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(len(_STREAMS) * array.array("i").itemsize))
    streams = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            streams.frombytes(data[: len(data) - len(data) % streams.itemsize])
    if len(streams) != len(_STREAMS):
        raise ValueError("a request without standard streams")
    with connection.makefile("rb") as reader:
        request = json.loads(reader.read(int.from_bytes(head, "big")))
    return Program(**{**request, "arguments": tuple(request["arguments"])}), list(streams)


def _forget_common_seeds() -> None:
    """Give the fork random numbers of its own: numpy seeds itself once, on import (Python's `random` looks after itself)."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
