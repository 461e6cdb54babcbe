"""`ascend-e2e report RUN_DIR...`: one HTML file on existing runs, to open offline or to keep with a CI job.

Must not know: what a report shows.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from ..errors import RecordError
from ..history import History
from ..records import RunRecord
from ..report import found_records
from ..report.html import write_html
from .history import DEFAULT as DEFAULT_HISTORY
from .history import VARIABLE

DEFAULT_RUNS = Path("e2e-runs")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `report`."""
    parser = subparsers.add_parser(
        "report",
        help="write an HTML report of existing runs",
        description="Write one HTML file on existing runs: an overview and a page for each run with its charts, checks, log and "
        "what changed since the last green run of its case. It opens offline and loads nothing.",
    )
    parser.add_argument(
        "runs", nargs="*", type=Path, default=[DEFAULT_RUNS], metavar="RUN_DIR",
        help=f"directory of a run, or a directory that holds such ones (default: {DEFAULT_RUNS})",
    )  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"), metavar="FILE", help="default: report.html")
    parser.add_argument(
        "--history", type=Path, metavar="FILE",
        help=f"the history that earlier runs are taken from [{VARIABLE}] (default: {DEFAULT_HISTORY})",
    )  # fmt: skip


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Write the report; return 0, whatever the verdicts of the runs are, or 1 if a run cannot be read."""
    records, problems = _records(args.runs)
    if not records:
        raise RecordError(*problems)
    asked = args.history or os.environ.get(VARIABLE)
    history = Path(asked or DEFAULT_HISTORY).expanduser()
    # A history that was asked for must be there; the default one is used where it is.
    past = History(history).runs() if asked or history.is_file() else ()
    write_html(records, args.output, past=past)
    failed = sum(not record.is_passed and not record.retried_as for record in records)
    count = "1 run" if len(records) == 1 else f"{len(records)} runs"
    stdout.write(f"{args.output}: {count}, {failed} failed\n")
    stderr.writelines(f"not in it: {problem}\n" for problem in problems)
    return 1 if problems else 0


def _records(paths: Sequence[Path]) -> tuple[list[RunRecord], list[str]]:
    """Return the runs in these directories, each once, and why others cannot be read."""
    records: dict[str, RunRecord] = {}
    problems: list[str] = []
    for path in paths:
        found, unread = found_records(path)
        if not (found or unread):
            raise RecordError(f"{path}: holds no run: expected a directory with record.json, or one that holds such directories")
        problems += unread
        for record in found:
            records.setdefault(record.run_id, dataclasses.replace(record, run_dir=str(Path(record.run_dir).absolute())))
    return list(records.values()), problems
