"""A training that does what it is told, action by action: `python trainer.py say=hello step=1 daemon hang`.

A process of its own, as verl is: it prints, writes verl's metrics file, makes daemons as Ray does, hangs, crashes.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

LONG_S = 120
SHARED: list[mmap.mmap] = []
_SLEEPER = "import signal, sys, time\nif 'deaf' in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(120)"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def say_in_pieces(text: str) -> None:
    for piece in text.split("|"):
        sys.stdout.write(piece)
        sys.stdout.flush()
        time.sleep(0.3)
    say("")


def step(number: str) -> None:
    line = json.dumps({"step": int(number), "data": {"critic/rewards/mean": 0.5}})
    with Path(os.environ["VERL_FILE_LOGGER_PATH"]).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def daemon(kind: str) -> None:
    """Start a process that leaves session and parent, as Ray's daemons do.

    `deaf`: it ignores TERM. `nameless`: it has neither our environment nor our output.
    """
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c', {_SLEEPER!r}, {kind!r}], start_new_session=True)"
    argv = [sys.executable, "-S", "-c", code]
    if "nameless" in kind:
        subprocess.run(argv, env={}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, check=True)
    else:
        subprocess.run(argv, start_new_session=True, check=True)


def brief_daemon(_: str) -> None:
    """Start a process that outlives the training, but not for long."""
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(0.6)"], start_new_session=True)


def ignore_term(_: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def hang(_: str) -> None:
    time.sleep(LONG_S)


def talk(seconds: str) -> None:
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        say("still here")
        time.sleep(0.05)


def fill(megabytes: str) -> None:
    block = b"x" * (1 << 20)
    for _ in range(int(megabytes)):
        os.write(1, block)


def show_environment(path: str) -> None:
    Path(path).write_text(json.dumps(dict(os.environ)), encoding="utf-8")


def show_descriptor(number: str) -> None:
    say(f"descriptor {number}: {Path('/proc/self/fd', number).readlink()}")


def write(path: str) -> None:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("written by the training", encoding="utf-8")


def share(name: str) -> None:
    """Map a segment of shared memory and never remove it, as an engine that is killed."""
    with Path("/dev/shm", name).open("w+b") as file:  # noqa: S108  # where the kernel keeps them
        file.truncate(4096)
        SHARED.append(mmap.mmap(file.fileno(), 4096))


def leave(status: str) -> None:
    sys.exit(int(status))


def crash(_: str) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


ACTIONS: dict[str, Callable[[str], None]] = {
    action.__name__: action
    for action in (
        *(say, say_in_pieces, step, daemon, brief_daemon, ignore_term, hang, talk, fill),
        *(show_environment, show_descriptor, write, share, leave, crash),
    )
}


def main() -> None:
    for argument in sys.argv[1:]:
        name, _, value = argument.partition("=")
        if name in ACTIONS:
            ACTIONS[name](value)
        else:
            say(f"argument {argument}")


if __name__ == "__main__":
    main()
