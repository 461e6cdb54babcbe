"""`ascend-e2e diagnose LOG`: why the run failed that wrote this log, or that not its training did.

Must not know: how a diagnosis is found.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ..diagnosis import diagnose, is_sound
from ..errors import RecordError
from ..launch import UNFINISHED, RunDirectory
from ..records import Diagnosis, Kind, RunRecord
from ..report.failure import MOST_SHOWN
from ..session import read_record
from .logs import not_a_log

_CHUNK_BYTES = 1 << 20  # a longer line is read in pieces: a log may hold gigabytes without a line end


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command with its arguments."""
    parser = subparsers.add_parser(
        "diagnose",
        help="say why a run failed, from its console log",
        description="Say why a training failed: the kind of the failure, the line that is its root cause, and whose turn it is. Of "
        "one that ended well the kind is none; where the log lies in the directory of its run, the checks that failed are told.",
    )
    parser.add_argument(
        "log", type=Path, metavar="LOG", help="the console log of a run, its directory, or a log file of one of its Ray workers"
    )
    parser.add_argument("--json", action="store_true", help='print one object: {"kind", "line", "infra", "advice"}')
    parser.add_argument(
        "--exit-status", type=int, metavar="N", help="the exit status of the run; -9 or 137 mean SIGKILL (default: by its record)"
    )


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Print the diagnosis; return 0, or 2 where the log cannot be read."""
    log: Path = RunDirectory(args.log).log if args.log.is_dir() else args.log
    problem = not_a_log(log)
    if problem is not None:
        print(problem, file=stderr)
        return 2
    record = _record_of(log)
    try:
        found = _diagnosis(log, args.exit_status, record)
    except OSError as error:
        print(f"{str(log)!r} cannot be read ({error.strerror}): expected the console log of a run", file=stderr)
        return 2
    is_well = _has_ended_well(found, args.exit_status, record)
    if is_well:
        found = dataclasses.replace(found, advice=_of_checks(log.parent, record))
    if args.json:
        print(json.dumps({"kind": found.kind.value, "line": found.line, "infra": found.infra, "advice": found.advice}), file=stdout)
        return 0
    for name, text in (
        ("kind", "none: the training ended well" if is_well else found.kind.value),
        ("line", found.line or "(none)"),
        ("whose turn", "nobody's for the training" if is_well else _whose(found)),
        ("advice", found.advice),
        *([("failed", text) for text in _failed(record)] if record is not None and record.is_completed else []),
    ):
        print(f"{name + ':':<12}{_printable(text, stdout)}", file=stdout)
    return 0


def _record_of(log: Path) -> RunRecord | None:
    """Return the record of the run whose console log this is, if it lies beside it."""
    files = RunDirectory(log.parent)
    try:
        return read_record(files.path) if log.name == files.log.name and files.record.is_file() else None
    except RecordError:
        return None  # the log tells its part all the same


def _diagnosis(log: Path, exit_status: int | None, record: RunRecord | None) -> Diagnosis:
    if record is None or exit_status is not None:
        return diagnose(_lines(log), exit_status=exit_status)
    # Its ending is not known yet, and is not an interruption until it is.
    ending = None if record.end_reason == UNFINISHED else record.ending
    return diagnose(_lines(log), exit_status=record.exit_status, signal=record.signal, ending=ending, end_reason=record.end_reason)


def _has_ended_well(found: Diagnosis, exit_status: int | None, record: RunRecord | None) -> bool:
    if exit_status is None and record is not None:
        return record.is_completed and found.kind is Kind.UNKNOWN and not found.line
    return is_sound(found) and exit_status in (0, None)


def _of_checks(directory: Path, record: RunRecord | None) -> str:
    """Return where a reader of a red run goes on whose training ended well."""
    sound = "The training reached its end, and its log shows no failure."
    if record is None:
        return f"{sound} If its run is red, a check failed: `ascend-e2e judge RUN_DIR` says which."
    failed = len(record.failed_checks)
    judge = f"`ascend-e2e judge {shlex.quote(str(directory))}` makes them again."
    return f"{sound} Of its {len(record.made_checks)} checks {failed or 'none'} failed; {judge}"


def _failed(record: RunRecord) -> list[str]:
    failed = [f"{check.name}: {check.message}" for check in record.failed_checks]
    more = len(failed) - MOST_SHOWN
    return [*failed[:MOST_SHOWN], *([f"and {more} more"] if more > 0 else [])]


def _whose(found: Diagnosis) -> str:
    if found.kind is Kind.UNKNOWN:
        return "not visible in the log"
    return (
        "infrastructure: the machine, its neighbours or its software"
        if found.infra
        else "product: the test, its inputs or the code under test"
    )


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as log:
        yield from iter(lambda: log.readline(_CHUNK_BYTES), b"")


def _printable(text: str, stdout: TextIO) -> str:
    encoding = stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)
