"""Runs that exist: the record and the metrics of a run directory, also of one that came from a CI artifact.

Must not know: what the runs are read for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import RecordError
from ..launch import RunDirectory
from ..metrics import Metrics, bounded_lines, read_console, read_jsonl
from ..records import RunRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class ExistingRun:
    """A run as its directory tells it; `directory` is where it lies now, which need not be where it was made."""

    directory: Path
    record: RunRecord
    metrics: Metrics


def read_run(directory: Path) -> ExistingRun:
    """Return the run of a directory; its metrics come from `metrics.jsonl`, or from `train.log` where that is all there is.

    Raises:
        RecordError: there is no record, it cannot be read, or there is neither of the two logs.
    """
    return ExistingRun(directory=directory.absolute(), record=read_record(directory), metrics=read_metrics(directory))


def read_record(directory: Path) -> RunRecord:
    """Return the record of a run directory.

    Raises:
        RecordError: there is none, or it cannot be read.
    """
    path = RunDirectory(directory).record
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}; expected the directory of a run") from error
    return RunRecord.from_json(text, origin=str(path))


def read_metrics(directory: Path) -> Metrics:
    """Return the metrics of a run directory, from `metrics.jsonl`, or from `train.log` where that is all there is.

    Raises:
        RecordError: there is neither of the two, or it cannot be read.
    """
    files = RunDirectory(directory)
    for path, read in ((files.metrics, read_jsonl), (files.log, read_console)):
        try:
            with path.open("rb") as stream:
                return read(bounded_lines(stream))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RecordError(f"{path}: cannot be read: {error.strerror or error}") from error
    raise RecordError(f"{files.path}: holds neither {files.metrics.name} nor {files.log.name}: expected the directory of a run")


def load_yaml(path: Path) -> Any:
    """Return what a YAML file holds; with libyaml, where there is one, in a tenth of the time.

    Raises:
        OSError: it cannot be read.
        yaml.YAMLError: it is no YAML.
    """
    return yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe
