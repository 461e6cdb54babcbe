"""The trainings that a bash script starts, without starting anything.

bash itself reads the script, so that variables, arrays, conditions and functions mean what they mean; but a restricted bash with an
empty PATH, which can run no program and write no file (trace.bash). That guards against what an honest script would do; it is no
sandbox for a hostile one. Must not know: what the words of a command mean.
"""

from __future__ import annotations

import operator
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import AuthoringError

_TRACE = Path(__file__).with_name("trace.bash")
_LIMIT_S = 20.0
_TAIL_LINES = 3
# What the shell exports by itself, or this module for it.
_SHELLS_OWN = frozenset({"ASCEND_E2E_TRACE", "BASH_ENV", "HOME", "LANG", "OLDPWD", "PATH", "PWD", "SHLVL", "_"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """A command that a script would have started: its words, and what the script exports at that moment."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What bash read: the commands in order, and the last lines that it printed as errors."""

    started: tuple[Started, ...]
    errors: tuple[str, ...]


def read_script(path: Path, arguments: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> Reading:
    """Return the commands that a script would start with these arguments and environment variables.

    Raises:
        AuthoringError: the script cannot be read, there is no bash, or it does not end.
    """
    bash = shutil.which("bash")
    if bash is None:
        raise AuthoringError("no bash on PATH: a script is read by bash; give the command itself after --")
    if not path.is_file():
        raise AuthoringError(f"{str(path)!r} cannot be read: no such file; expected a bash script, or a command after --")
    given = dict(variables or {})
    with tempfile.TemporaryDirectory(prefix="ascend-e2e-") as directory, tempfile.TemporaryFile() as trace:
        home = str(Path("~").expanduser())
        environment = {"HOME": home, **given, "PATH": directory, "BASH_ENV": str(_TRACE), "ASCEND_E2E_TRACE": str(trace.fileno())}
        command = [bash, "--restricted", str(path.absolute()), *arguments]
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=directory,
            env=environment,
            pass_fds=[trace.fileno()],
            start_new_session=True,
        )
        try:
            _, errors = child.communicate(timeout=_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise AuthoringError(
                f"{path}: bash had not read it after {_LIMIT_S:g} s; does it wait for something? Give the command itself after --"
            ) from error
        finally:
            _end(child)
        trace.seek(0)
        started = _commands(trace.read().decode(errors="replace"), {*_SHELLS_OWN} - {*given})
    lines = [line.removeprefix(f"{path.absolute()}: ") for line in errors.decode(errors="replace").splitlines() if line.strip()]
    shown = [line for line in lines if not line.startswith("+")]
    return Reading(started=started, errors=tuple(shown[-_TAIL_LINES:]))


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def _commands(trace: str, hidden: set[str]) -> tuple[Started, ...]:
    """Return the commands of a trace: each is the number of its words, these, the number of exported variables, and these."""
    written: dict[str, list[tuple[int, str]]] = {}
    for place, entry in enumerate(trace.split("\0")[:-1]):
        process, _, text = entry.partition("=")
        written.setdefault(process, []).append((place, text))
    found: list[tuple[int, Started]] = []
    for texts in written.values():
        fields = iter(texts)
        for place, count in fields:
            words = tuple(next(fields)[1] for _ in range(int(count)))
            pairs = dict(next(fields)[1].partition("=")[::2] for _ in range(int(next(fields)[1])))
            kept = {name: value for name, value in pairs.items() if name not in hidden}
            found.append((place, Started(words=words, environment=kept)))
    return tuple(started for _, started in sorted(found, key=operator.itemgetter(0)))
