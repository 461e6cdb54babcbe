"""The reports that lie at a place: a JUnit file, a directory of a session or of a CI's artifacts, or directories of runs.

Must not know: what the cases are read for.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ..errors import RecordError, ReportError
from ..records import RunRecord
from .reported import ReportedCase, from_record, latest, read_junit

_RECORD = "record.json"
_JUNIT = "junit.xml"


def reported_cases(path: Path) -> list[ReportedCase]:
    """Return the cases that were reported at a place, one for each test.

    A directory is searched with all below it: its JUnit files count; where there is none, the records of its runs.

    Raises:
        ReportError: nothing is there, or a file of it cannot be read.
    """
    if path.is_file():
        return latest(read_junit(_bytes(path), origin=str(path)))
    files, problems = junit_files(path)
    if files and not problems:
        return latest(case for name, data in files for case in read_junit(data, origin=name))
    records, unread = found_records(path)
    problems += unread
    if problems:
        raise ReportError(*problems)
    if not records:
        raise ReportError(f"{path}: holds neither a JUnit file nor the record of a run (record.json)")
    return latest(from_record(record) for record in records if not record.retried_as)


def junit_files(directory: Path) -> tuple[list[tuple[str, bytes]], list[str]]:
    """Return the names and contents of the JUnit files below a directory, and what keeps others from being read.

    XML of another kind, such as a report of coverage, is passed over.
    """
    files: list[tuple[str, bytes]] = []
    problems: list[str] = []
    for path in sorted(found for found in directory.rglob("*.xml") if not found.is_dir()):
        try:
            data = _bytes(path)
        except ReportError as error:
            problems += error.problems
        else:
            if _is_junit(path.name, data):
                files.append((str(path), data))
    return files, problems


def found_records(directory: Path) -> tuple[list[RunRecord], list[str]]:
    """Return the records of the runs below a directory, in the order in which they started, and what keeps others from being read.

    `run_dir` is where each lies now.
    """
    records: list[RunRecord] = []
    problems: list[str] = []
    for path in sorted(directory.rglob(_RECORD)):
        try:
            record = RunRecord.from_json(_bytes(path).decode(errors="replace"), origin=str(path))
        except (RecordError, ReportError) as error:
            problems += error.problems
        else:
            records.append(dataclasses.replace(record, run_dir=str(path.parent)))
    return sorted(records, key=lambda record: record.started_at), problems


def _is_junit(name: str, data: bytes) -> bool:
    """Tell whether a file is a JUnit file by its content, or was cut off and may be one: by its name, or being empty."""
    return name == _JUNIT or b"<testsuite" in data or not data.strip()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror or error}") from error
