"""`ascend-e2e history [CASE]`: the runs of a case, its flake rate and its drift; import and export as JSON lines.

Must not know: how runs are stored, or how a change is found.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from ..errors import HistoryError, RecordError
from ..files import write_whole
from ..history import History, flake_rate, from_lines, to_line
from ..records import RunRecord
from ..report import history_text, table
from ..report.history import COLUMNS
from ..session import read_run

# The same variable and default as the plugin's setting `history`.
VARIABLE = "ASCEND_E2E_HISTORY"
DEFAULT = Path("e2e-runs/history.sqlite")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `history`."""
    parser = subparsers.add_parser(
        "history",
        help="show the runs of a case over time: flake rate, trend, change",
        description="Show the runs of a case, how often it fails although nothing changed, and which figures drift or stepped.",
        epilog="\n".join(["columns:", *(f"  {name:<10}  {meaning}" for name, meaning in COLUMNS.items())]),
    )
    parser.add_argument("case", nargs="?", default="", metavar="CASE", help="id or test name of a case (default: list the cases)")
    parser.add_argument("--runner", default="", metavar="NAME", help="only runs on this runner")
    parser.add_argument("--last", type=int, default=20, metavar="N", help="rows of the table (default: 20); all runs are counted")
    parser.add_argument("--file", type=Path, metavar="FILE", help=f"the history [{VARIABLE}] (default: {DEFAULT})")
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--export", type=Path, metavar="FILE", help="write the runs as JSON lines; - is stdout")
    actions.add_argument(
        "--import", dest="sources", nargs="+", type=Path, metavar="PATH", help="add runs: JSON lines, or directories of runs"
    )


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Show, export or import; return 0, or 1 where there is no run of the case."""
    history = History(args.file or Path(os.environ.get(VARIABLE) or DEFAULT).expanduser())
    if args.sources:
        records = [record for path in args.sources for record in _read(path)]
        stdout.write(f"{history.add(records)} runs added to {history.path}\n")
        return 0
    records = list(history.runs(args.case, runner=args.runner))
    if not records:
        stderr.write(f"{history.path}: no run of {args.case or 'any case'}{f' on {args.runner}' if args.runner else ''}\n")
        return 1
    if args.export is not None:
        _export(records, args.export, stdout)
        return 0
    stdout.writelines(f"{line}\n" for line in (_of_case(records, args.last) if args.case else _list(records)))
    return 0


def _read(path: Path) -> Iterator[RunRecord]:
    if path.is_dir():
        yield read_run(path).record
        return
    try:
        with path.open(encoding="utf-8") as lines:
            yield from from_lines(lines, origin=str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: cannot be read: {error}; expected JSON lines, or the directory of a run") from error


def _export(records: Iterable[RunRecord], path: Path, stdout: TextIO) -> None:
    lines = [f"{to_line(record)}\n" for record in records]
    if str(path) == "-":
        stdout.writelines(lines)
        return
    write_whole(path, "".join(lines), HistoryError)


def _of_case(records: list[RunRecord], last: int) -> Iterator[str]:
    groups: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        groups.setdefault((record.case, record.runner), []).append(record)
    for number, ((case, runner), runs) in enumerate(groups.items()):
        yield from ([""] if number else [])
        yield f"{case} on {runner}"
        yield from history_text(runs, last=last)


def _list(records: list[RunRecord]) -> list[str]:
    groups: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        groups.setdefault((record.case, record.runner), []).append(record)
    rows = []
    for (case, runner), runs in groups.items():
        flakes = flake_rate(runs)
        rows.append((case, runner, str(flakes.runs), str(flakes.failed), f"{flakes.rate:.1%}", runs[-1].started_at[:16]))
    return table(("case", "runner", "runs", "failed", "flake rate", "last"), rows, right=(2, 3, 4))
