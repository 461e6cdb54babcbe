"""The trainings that a bash script starts, without starting anything.

bash itself reads the script, so that variables, arrays, conditions and functions mean what they mean; but a restricted bash with an
empty PATH, which can run no program and write no file (trace.bash). That guards against what an honest script would do; it is no
sandbox for a hostile one. Must not know: what the words of a command mean.
"""

from __future__ import annotations

import operator
import os
import re
import shlex
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
_MOST_SHELLS = 3
_SHELLS = frozenset({"bash", "sh"})
# Programs whose shell has another environment than the script.
_ELSEWHERE = frozenset({"docker", "kubectl", "nerdctl", "podman", "ssh"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
# Output to a file behind the end of a group, a loop or a condition: trace.bash can skip that of a simple command only.
_TARGET = r"""(?:>\([^)\n]*\)|(?:"[^"\n]*"|'[^'\n]*'|[^\s;|&<>()"'])+)"""
_REDIRECTED = re.compile(
    r"(?m)((?:^|(?<=[;\s]))(?:\}|done|fi|esac)|^[ \t]*\)|^[ \t]*\((?!\()(?:[^>\n]|>(?!\())*\))"
    rf"((?:[ \t]*(?:\d?>&\d|(?:\d?>>?\|?|&>>?)[ \t]*{_TARGET}))+)(?=[ \t]*(?:$|[;|&#]))"
)
# bash would skip a whole pipeline for it, and loses nothing without it.
_SILENCED = re.compile(r"(?<=[ \t])2>[ \t]*/dev/null\b")
# What `set -x` and `time` print, and what comes of a pipeline whose programs were skipped.
_NO_ERROR = re.compile(r"^(\+|OUTPUT\.OF\.|(real|user|sys)\s)|wait_for: No record of process|: Broken pipe$")
_OUTPUT = re.compile(r"OUTPUT\.OF\.([\w+-]+)")
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
    """Return the commands that a script would start with these arguments and environment variables, also within `bash -c`.

    Raises:
        AuthoringError: the script cannot be read, there is no bash, or it does not end.
    """
    if not path.is_file():
        raise AuthoringError(f"{str(path)!r} cannot be read: no such file; expected a bash script, or a command after --")
    try:
        # bash takes no line ends of Windows, and bytes of any encoding.
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise AuthoringError(f"{str(path)!r} cannot be read: {error.strerror}; expected a bash script") from error
    return _read(text, path, arguments, dict(variables or {}), shells=1)


def outputs_in(text: str) -> list[str]:
    """Return the programs whose output stands in a text; none was run, so that their names stand for it."""
    return _OUTPUT.findall(text)


def _read(text: str, path: Path, arguments: Sequence[str], variables: Mapping[str, str], shells: int) -> Reading:
    own = _trace(text, path, arguments, variables)
    started, errors = [], [*own.errors]
    for command in own.started:
        inner = _text_for_shell(command)
        if inner is None or shells == _MOST_SHELLS:
            started.append(command)
            continue
        inner_text, inner_arguments, environment = inner
        found = _read(inner_text, path, inner_arguments, environment, shells + 1)
        started += found.started
        errors += found.errors
    return Reading(started=tuple(started), errors=tuple(errors[-_TAIL_LINES:]))


def _text_for_shell(command: Started) -> tuple[str, Sequence[str], dict[str, str]] | None:
    """Return what a `bash -c` of this machine reads, with its arguments and variables; None where the command is no such."""
    words = command.words
    place = next((place for place, word in enumerate(words) if word.rpartition("/")[2] in _SHELLS), None)
    if place is None or any(word.rpartition("/")[2] in _ELSEWHERE for word in words[:place]):
        return None
    own = dict(word.partition("=")[::2] for word in words[:place] if _ASSIGNMENT.match(word))
    rest = list(words[place + 1 :])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option[1:2] != "-" and "c" in option and rest:
            # The first argument behind the text is its $0.
            return rest[0], rest[2:], {**command.environment, **own}
    return None


def _trace(text: str, path: Path, arguments: Sequence[str], variables: Mapping[str, str]) -> Reading:
    with tempfile.TemporaryDirectory(prefix="ascend-e2e-") as directory:
        # What a script makes of its own path is what it would be, but for this directory before it.
        script = Path(f"{directory}{path.absolute()}")
        script.parent.mkdir(parents=True)
        script.write_text(_REDIRECTED.sub(r"\1", _SILENCED.sub("", text)), encoding="utf-8", errors="surrogateescape")
        trace, errors, is_over = _written(script, arguments, variables, directory)
    started = _commands(trace.replace(directory, ""), {*_SHELLS_OWN} - {*variables})
    if not is_over:
        last = f"came to {shlex.join(started[-1].words)[:80]!r}" if started else "came to no command"
        raise AuthoringError(
            f"{path}: bash had not read it after {_LIMIT_S:g} s, and {last}: does it wait there? Give the command itself after --"
        )
    lines = [line.removeprefix(f"{path.absolute()}: ") for line in errors.replace(directory, "").splitlines() if line.strip()]
    return Reading(started=started, errors=tuple(line for line in lines if not _NO_ERROR.search(line)))


def _written(script: Path, arguments: Sequence[str], variables: Mapping[str, str], path: str) -> tuple[str, str, bool]:
    """Return what bash wrote as trace and as errors, and whether it came to the end of the script."""
    bash = shutil.which("bash")
    if bash is None:
        raise AuthoringError("no bash on PATH: a script is read by bash; give the command itself after --")
    with tempfile.TemporaryFile() as trace:
        child = subprocess.Popen(
            [bash, "--restricted", str(script), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={
                "HOME": str(Path("~").expanduser()),
                **variables,
                "PATH": path,
                "BASH_ENV": str(_TRACE),
                "ASCEND_E2E_TRACE": str(trace.fileno()),
            },
            pass_fds=[trace.fileno()],
            start_new_session=True,
        )
        is_over, errors = True, b""
        try:
            _, errors = child.communicate(timeout=_LIMIT_S)
        except subprocess.TimeoutExpired:
            is_over = False
        finally:
            _end(child)
        trace.seek(0)
        return trace.read().decode(errors="replace"), errors.decode(errors="replace"), is_over


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
        start = 0
        while start < len(texts):
            middle = start + 1 + int(texts[start][1])
            if middle >= len(texts):
                break  # bash was ended before it had written this one
            end = middle + 1 + int(texts[middle][1])
            words = tuple(text for _, text in texts[start + 1 : middle])
            pairs = dict(text.partition("=")[::2] for _, text in texts[middle + 1 : end])
            kept = {name: value for name, value in pairs.items() if name not in hidden}
            found.append((texts[start][0], Started(words=words, environment=kept)))
            start = end
    return tuple(started for _, started in sorted(found, key=operator.itemgetter(0)))
