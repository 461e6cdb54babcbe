"""What a run left beside its record: metrics, configuration, environment and log, as far as they are there.

Must not know: who shows them. Nothing here raises for a file that is missing or broken: it is named, and the record stands without.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml

from ..diagnosis import Excerpt, excerpt, last_steps
from ..errors import RecordError
from ..launch import Redactor, RunDirectory
from ..metrics import Metrics, bounded_lines
from ..preflight import leaves
from ..records import RunRecord
from .existing import load_yaml, read_metrics

_Read = TypeVar("_Read")
# Of a line in a terminal; the log has it whole.
LONGEST_TOLD = 200
_LINES_AFTER_A_CAUSE = 25


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuration:
    """How a run was configured: the composed configuration by dotted key and the environment by variable, as text.

    What belongs to the one run, its directory and that of its Ray, is written RUN_DIR and RAY_DIR, so that two runs compare.
    Each is None where its file cannot be read; `missing` says why.
    """

    keys: Mapping[str, str] | None
    variables: Mapping[str, str] | None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """All that a run left. What is None could not be read; `missing` says why."""

    record: RunRecord
    metrics: Metrics | None
    configuration: Configuration
    log: Excerpt | None
    missing: tuple[str, ...] = ()


def read_evidence(record: RunRecord) -> Evidence:
    """Return what lies in the record's run directory; of the log, the lines around the root cause, or the last steps."""
    missing: list[str] = []
    directory = Path(record.run_dir)
    return Evidence(
        record=record,
        metrics=_read(lambda: read_metrics(directory), missing),
        configuration=read_configuration(record),
        log=_read(lambda: _excerpt(RunDirectory(directory).log, record), missing),
        missing=tuple(missing),
    )


def telling_lines(record: RunRecord, *, around: int = 2) -> list[str]:
    """Return the lines of the log around the root cause, marked by `>`; the last ones where none is known, none of a sound run."""
    if record.diagnosis is None:
        return []
    try:
        with RunDirectory(Path(record.run_dir)).log.open("rb") as stream:
            found = excerpt(bounded_lines(stream), record.diagnosis.line, before=around, after=around)
    except OSError:
        return []  # the record says all the same why the run is red
    return [f"{'>' if line.is_cause else ' '} {line.text[:LONGEST_TOLD]}" for line in found.lines]


def read_configuration(record: RunRecord) -> Configuration:
    """Return the configuration and the environment of the record's run."""
    missing: list[str] = []
    files = RunDirectory(Path(record.run_dir))
    own = _own_names(record.run_id)
    keys = _read(lambda: _settings(files.config, own), missing)
    variables = _read(lambda: _variables(files.environment, own), missing)
    return Configuration(keys=keys, variables=variables, missing=tuple(missing))


def _read(read: Callable[[], _Read], missing: list[str]) -> _Read | None:
    try:
        return read()
    except (RecordError, OSError) as error:
        missing.append(str(error))
    except (ValueError, yaml.YAMLError) as error:
        missing.append(f"not readable: {error}")
    return None


def _excerpt(path: Path, record: RunRecord) -> Excerpt:
    cause = record.diagnosis.line if record.diagnosis is not None else ""
    with path.open("rb") as stream:
        lines_of = bounded_lines(stream)
        found = last_steps(lines_of) if record.is_completed else excerpt(lines_of, cause, after=_LINES_AFTER_A_CAUSE)
    # The log is as the training printed it; what leaves its directory holds nothing that looks like a secret.
    redactor = Redactor()
    lines = (dataclasses.replace(line, text=redactor.text(line.text)) for line in found.lines)
    return dataclasses.replace(found, lines=tuple(lines))


def _settings(path: Path, own: Callable[[str], str]) -> dict[str, str]:
    data = load_yaml(path)
    if not isinstance(data, Mapping):
        raise ValueError(f"{path}: expected a mapping")  # noqa: TRY004  # one kind of error for a broken file
    return {key: own(_text(value)) for key, value in leaves(data)}


def _variables(path: Path, own: Callable[[str], str]) -> dict[str, str]:
    data = json.loads(path.read_text(encoding="utf-8"))
    variables = data.get("variables") if isinstance(data, dict) else None
    if not isinstance(variables, dict):
        raise ValueError(f"{path}: expected an object with variables")  # noqa: TRY004  # one kind of error for a broken file
    return {str(name): own(str(value)) for name, value in variables.items()}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _own_names(run_id: str) -> Callable[[str], str]:
    run_dir = re.compile(rf"[^\s\"'=,:]*{re.escape(run_id)}")
    ray_dir = re.compile(rf"[^\s\"'=,:]*/e2e-{re.escape(run_id.rpartition('-')[2])}-\w+")
    return lambda text: ray_dir.sub("RAY_DIR", run_dir.sub("RUN_DIR", text))
