"""The trainings of a script, each taken apart, with what its reading left unknown; or why there is none.

Must not know: how bash reads, or what an override means.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import AuthoringError
from .invocation import Invocation, has_recipe, invocation_of, is_training, program_at
from .script import Reading, Started, outputs_in, read_script

_SHOWN = 80
_OTHER_SCRIPTS = frozenset({"bash", "sh", "source"})
# Keys whose values no case takes over, so that it does not matter who prints them.
_NAMES = re.compile(r"hydra\..*|trainer\.(project_name|experiment_name|default_local_dir|default_hdfs_dir|rollout_data_dir|logger)")
_NAMED = re.compile(r"\bverl[.\w]*\.(?:main_\w+|\w*trainer\w*)|\bmain_ppo\b")
_ANSWERS = {"nproc": "8", "hostname": "host", "whoami": "user"}


def trainings_of(path: Path, arguments: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> list[Invocation]:
    """Return the trainings that a script starts with these arguments and environment variables.

    Raises:
        AuthoringError: it starts none, or one whose values nobody knows without running a program.
    """
    reading = read_script(path, arguments, variables)
    started = [command for command in reading.started if is_training(command.words)]
    if not started:
        raise AuthoringError(f"{path}: starts no training of verl (python -m verl...); {'; '.join(_reasons(path, reading))}")
    # A program of verl beside the training, such as its model_merger.
    others = [command for command in started if not has_recipe(command.words)]
    started = [command for command in started if command not in others] or started
    problems = dict.fromkeys(problem for command in started for problem in _unknown(command.words))
    if problems:
        raise AuthoringError(
            *(f"{path}: {problem}" for problem in problems),
            "no program is run: give the variable with --env NAME=VALUE where the script lets you, or the command after --",
        )
    notes = [*_notes(reading), *(f"{shlex.join(other.words)[:_SHOWN]}: left out, no recipe trains with it" for other in others)]
    return [_invocation(command, notes if place == 0 else ()) for place, command in enumerate(started)]


def _reasons(path: Path, reading: Reading) -> Iterator[str]:
    texts = [command for command in reading.started if any(_NAMED.search(word) for word in command.words)]
    if texts:
        yield f"it hands one to another program, which was not followed: {_listed(texts)}"
    others = [command for command in reading.started if command.words[:1] and command.words[0] in _OTHER_SCRIPTS]
    if others:
        yield f"it reads other scripts, which were not followed: {_listed(others)}"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    named = [place for place, line in enumerate(lines, start=1) if _NAMED.search(line) and not line.lstrip().startswith("#")]
    if reading.errors:
        yield f"bash says: {' | '.join(reading.errors)}"
    elif named and not texts:
        yield f"line {named[0]} names one, below a condition that is not met (give --env or arguments) or in a text that is not run"
    yield "give the command after --"


def _listed(commands: Sequence[Started]) -> str:
    return "; ".join(dict.fromkeys(shlex.join(command.words)[:_SHOWN] for command in commands))


def _unknown(words: Sequence[str]) -> Iterator[str]:
    """Yield each word of a command that matters and holds what a program would have printed."""
    program = program_at(words) or 0
    for place, word in enumerate(words):
        programs = ", ".join(outputs_in(word))
        is_count = any(one.startswith("--nproc") for one in words[max(place - 1, 0) : place + 1])
        is_read = place > program and not _NAMES.fullmatch(word.partition("=")[0].lstrip("+"))
        if programs and (is_count or is_read):
            yield f"{word!r} holds what {programs} would print"


def _notes(reading: Reading) -> Iterator[str]:
    for name in dict.fromkeys(command.words[0] for command in reading.started if command.words):
        if name in _ANSWERS:
            yield f"{name}: said {_ANSWERS[name]!r} to the script, whatever this machine has"
    yield from (f"bash says: {line}" for line in reading.errors)


def _invocation(command: Started, notes: Sequence[str]) -> Invocation:
    unknown = {name: outputs_in(value) for name, value in command.environment.items() if outputs_in(value)}
    known = {name: value for name, value in command.environment.items() if name not in unknown}
    found = invocation_of(command.words, known)
    empty = [word.rstrip("=") for word in found.arguments if word.endswith("=") and word.count("=") == 1]
    own = (
        *(f"{name}: left out of env, it holds what {', '.join(programs)} would print" for name, programs in unknown.items()),
        *(f"{key}: is empty in the script; a variable that is not set is given with --env NAME=VALUE" for key in empty),
    )
    return replace(found, notes=(*notes, *found.notes, *own))
