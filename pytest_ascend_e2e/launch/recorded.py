"""The command of a run as its directory tells it, made anew for another directory: what a repeat runs.

Must not know: why a run is repeated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import RecordError
from .redaction import REDACTED
from .run_directory import COMMAND_SCHEMA, ENVIRONMENT_SCHEMA, RunDirectory

# Variables that say where things lie on a machine: on another one, its own count.
_OF_THE_MACHINE = re.compile(r"HOME|LOGNAME|PATH|SHELL|USER|LD_LIBRARY_PATH|CONDA_PREFIX|VIRTUAL_ENV|ASCEND_\w*(HOME|PATH)\w*")


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedCommand:
    """The arguments and variables of a run, without secrets; `run_dir` and `ray_home` are the places that were its own."""

    argv: tuple[str, ...]
    variables: Mapping[str, str]
    run_dir: str
    ray_home: str | None

    def moved(self, *, run_dir: Path, ray_home: Path, environ: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return arguments and variables for other places, with the secrets and the machine's own places from `environ`.

        Raises:
            RecordError: a secret was not written down, and cannot be had from `environ`; all of them together.
        """
        places = {self.run_dir: str(run_dir)}
        if self.ray_home is not None:
            places[self.ray_home] = str(ray_home)
        argv = tuple(_replaced(word, places) for word in self.argv)
        variables = {name: _replaced(value, places) for name, value in self.variables.items()}
        variables |= {
            name: environ[name]
            for name, value in variables.items()
            if name in environ and (REDACTED in value or (_OF_THE_MACHINE.fullmatch(name) and value == self.variables[name]))
        }
        problems = [
            f"variable {name} holds a secret, which is not written down: set it first"
            for name, value in variables.items()
            if REDACTED in value
        ]
        problems += [
            f"argument {word.partition('=')[0]} holds a secret, which is not written down: give it by --set KEY=VALUE"
            for word in argv
            if REDACTED in word
        ]
        if problems:
            raise RecordError(*problems)
        return argv, variables


def read_command(directory: RunDirectory, *, run_dir: str) -> RecordedCommand:
    """Return the command of the run that lies in `directory` and was made in `run_dir`.

    Raises:
        RecordError: `command.json` or `environment.json` is not there or cannot be read.
    """
    command = _read(directory.command, COMMAND_SCHEMA)
    environment = _read(directory.environment, ENVIRONMENT_SCHEMA)
    argv, home, variables = command.get("argv"), command.get("ray_home"), environment.get("variables")
    if not isinstance(argv, list) or not isinstance(variables, dict):
        raise RecordError(
            f"{directory.path}: its command is not whole: expected argv in command.json, variables in environment.json"
        )
    return RecordedCommand(argv=tuple(map(str, argv)), variables=variables, run_dir=run_dir, ray_home=home)


def with_changes(argv: Sequence[str], changes: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments with these KEY=VALUE, each instead of the argument that sets its key."""
    keys = {change.lstrip("+").partition("=")[0] for change in changes}
    return (*(word for word in argv if "=" not in word or word.lstrip("+").partition("=")[0] not in keys), *changes)


def _replaced(text: str, places: Mapping[str, str]) -> str:
    """Return the text with each place in it replaced, not where it only begins a longer name."""
    for old, new in places.items():
        text = re.sub(rf"{re.escape(old)}(?![A-Za-z0-9._-])", new.replace("\\", r"\\"), text)
    return text


def _read(path: Path, schema: int) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: cannot be read: {error}; a run of an older version is repeated by its command.sh") from error
    found = data.get("schema") if isinstance(data, dict) else None
    if found != schema:
        raise RecordError(f"{path}: schema {found!r}; this version reads schema {schema}")
    whole: dict[str, Any] = data
    return whole
