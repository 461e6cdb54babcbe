"""Records as JSON lines: the form in which a history travels.

Must not know files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..records import RunRecord


def to_line(record: RunRecord) -> str:
    """Return a record as one line of JSON, without its line end."""
    return record.to_json(indent=None).rstrip("\n")


def from_lines(lines: Iterable[str], *, origin: str) -> Iterator[RunRecord]:
    """Yield the records of lines; blank ones are passed over. `origin` names the source in an error.

    Raises:
        RecordError: a line is no record; the message names it.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield RunRecord.from_json(line, origin=f"{origin}, line {number}")
