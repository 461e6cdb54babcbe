"""The database: one row for each run, its record as JSON beside the columns that a question sorts by.

Must not know what the figures of a record mean. Several processes may write at once; a run concluded again replaces its row.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import HistoryError
from ..records import RunRecord
from .lines import to_line

SCHEMA = 1
# How long one process waits for another that is writing.
_WAIT_S = 60.0
_BATCH = 500

_TABLE = """
CREATE TABLE IF NOT EXISTS runs (
    run_id TEXT PRIMARY KEY, name TEXT NOT NULL, runner TEXT NOT NULL, started_at TEXT NOT NULL, is_passed INTEGER NOT NULL,
    record TEXT NOT NULL
)
"""
_INDEX = "CREATE INDEX IF NOT EXISTS runs_by_case ON runs (name, started_at)"
_INSERT = "INSERT OR REPLACE INTO runs (run_id, name, runner, started_at, is_passed, record) VALUES (?, ?, ?, ?, ?, ?)"
_RUNS = """
SELECT record, run_id FROM runs WHERE (?1 = '' OR name = ?1 OR name LIKE ?2 ESCAPE '\\') AND (?3 = '' OR runner = ?3)
ORDER BY started_at, run_id
"""
_LAST_GREEN = """
SELECT record, run_id FROM runs WHERE is_passed AND (name = ?1 OR name LIKE ?2 ESCAPE '\\') AND runner = ?3
ORDER BY started_at DESC LIMIT ?4
"""

# The last nights say how long a case takes now; the median of ten is not moved by one that waited or crawled.
TYPICAL_OF = 10


class History:
    """The runs of a database file, which is made when the first one is added. Each call opens and closes the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, records: Iterable[RunRecord]) -> int:
        """Add these runs, all or none, and return how many; one whose id is there already takes its place.

        Raises:
            HistoryError: the file cannot be made or written, or is no database of this kind.
        """
        rows = [
            (record.run_id, record.case, record.runner, record.started_at, int(record.is_passed), to_line(record))
            for record in records
        ]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HistoryError(
                f"{self.path.parent}: cannot be made: {error.strerror}; choose another place for the history"
            ) from error
        with self._opened("written") as database, database:
            self._prepare(database)
            for at in range(0, len(rows), _BATCH):
                database.executemany(_INSERT, rows[at : at + _BATCH])
        return len(rows)

    def cases(self) -> dict[str, int]:
        """Return the number of runs by case."""
        return {name: int(count) for name, count in self._rows("SELECT name, COUNT(*) FROM runs GROUP BY name ORDER BY name")}

    def runs(self, case: str = "", *, runner: str = "") -> Iterator[RunRecord]:
        """Yield the runs by the time they started: all, or those of a case, by its whole id or the name of its test.

        Raises:
            HistoryError: there is no such file, or it is no database of this kind.
        """
        for text, run_id in self._rows(_RUNS, (case, _as_test_name(case), runner)):
            yield RunRecord.from_json(text, origin=f"{self.path}: run {run_id}")

    def typical_duration(self, case: str, runner: str, *, last: int = TYPICAL_OF) -> float | None:
        """Return how long a training of a case takes on a runner: the median of its last green runs, in seconds; None without one.

        `case` is its whole id or the name of its test. A history that is not there yet knows of no run.

        Raises:
            HistoryError: the file is no database of this kind.
        """
        if not self.path.is_file():
            return None
        rows = self._rows(_LAST_GREEN, (case, _as_test_name(case), runner, last))
        return statistics.median(float(json.loads(text)["duration_s"]) for text, _ in rows) if rows else None

    def _rows(self, query: str, values: tuple[str | int, ...] = ()) -> list[tuple[str, str]]:
        if not self.path.is_file():
            raise HistoryError(
                f"{self.path}: no such history: a run makes it when it ends, unless it was one with changes (--e2e-steps and the "
                "like); --file names another one"
            )
        with self._opened("read") as database:
            self._prepare(database)
            return list(database.execute(query, values))

    @contextmanager
    def _opened(self, what: str) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=_WAIT_S)) as database:
                yield database
        except sqlite3.Error as error:
            raise HistoryError(f"{self.path}: cannot be {what}: {error}; expected a history of runs (SQLite)") from error

    def _prepare(self, database: sqlite3.Connection) -> None:
        (found,) = database.execute("PRAGMA user_version").fetchone()
        if found not in {0, SCHEMA}:
            raise HistoryError(f"{self.path}: history of schema {found}; this version reads schema {SCHEMA}")
        if found == 0:
            database.execute(_TABLE)
            database.execute(_INDEX)
            database.execute(f"PRAGMA user_version = {SCHEMA}")


def _as_test_name(case: str) -> str:
    """Return the pattern of the ids that end in this name of a test."""
    escaped = case.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%::{escaped}"
