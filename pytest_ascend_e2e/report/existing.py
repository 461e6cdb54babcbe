"""The reports that lie at a place: a JUnit file, a directory of a session or of a CI's artifacts, or directories of runs.

Must not know: what the cases are read for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from ..errors import RecordError, ReportError
from ..records import RunRecord
from .reported import ReportedCase, from_record, latest, read_junit

_RECORD = "record.json"


def reported_cases(path: Path) -> list[ReportedCase]:
    """Return the cases that were reported at a place, one for each test.

    A directory is searched with all below it: its JUnit files count; where there is none, the records of its runs.

    Raises:
        ReportError: nothing is there, or a file of it cannot be read.
    """
    if path.is_file():
        return latest(read_junit(_bytes(path), origin=str(path)))
    files = junit_files(path)
    if files:
        return latest(case for file in files for case in read_junit(_bytes(file), origin=str(file)))
    records = found_records(path)
    if not records:
        raise ReportError(f"{path}: holds neither a JUnit file nor the record of a run (record.json)")
    return latest(from_record(record) for record in records if not record.retried_as)


def junit_files(directory: Path) -> list[Path]:
    """Return the JUnit files below a directory; XML of another kind, such as a report of coverage, is passed over."""
    return [path for path in sorted(directory.rglob("*.xml")) if path.is_file() and b"<testsuite" in _bytes(path)]


def found_records(directory: Path) -> Sequence[RunRecord]:
    """Return the records of the runs below a directory, in the order in which they started; `run_dir` is where each lies now.

    Raises:
        ReportError: a record cannot be read.
    """
    records = []
    for path in directory.rglob(_RECORD):
        try:
            record = RunRecord.from_json(_bytes(path).decode(errors="replace"), origin=str(path))
        except RecordError as error:
            raise ReportError(*error.problems) from error
        records.append(dataclasses.replace(record, run_dir=str(path.parent)))
    return sorted(records, key=lambda record: record.started_at)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror or error}") from error
