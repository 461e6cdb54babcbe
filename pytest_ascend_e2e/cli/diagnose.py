"""`ascend-e2e diagnose LOG`: why the run failed that wrote this log.

Must not know: how a diagnosis is found.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ..diagnosis import diagnose

_CHUNK_BYTES = 1 << 20  # a longer line is read in pieces: a log may hold gigabytes without a line end


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command with its arguments."""
    parser = subparsers.add_parser(
        "diagnose",
        help="say why a run failed, from its console log",
        description="Say why a run failed: the kind of the failure, the line that is its root cause, and whose turn it is.",
    )
    parser.add_argument("log", type=Path, metavar="LOG", help="the console log of a run (or a log file of one of its Ray workers)")
    parser.add_argument("--json", action="store_true", help='print one object: {"kind", "line", "infra", "advice"}')
    parser.add_argument("--exit-status", type=int, metavar="N", help="the exit status of the run; -9 or 137 mean SIGKILL")


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Print the diagnosis; return 0, or 2 where the log cannot be read."""
    try:
        found = diagnose(_lines(args.log), exit_status=args.exit_status)
    except OSError as error:
        print(f"{str(args.log)!r} cannot be read ({error.strerror}): expected the console log of a run", file=stderr)
        return 2
    if args.json:
        print(json.dumps({"kind": found.kind.value, "line": found.line, "infra": found.infra, "advice": found.advice}), file=stdout)
        return 0
    whose = (
        "infrastructure: the machine, its neighbours or its software"
        if found.infra
        else "product: the test, its inputs or the code under test"
    )
    if found.kind.value == "unknown":
        whose = "not visible in the log"
    for name, text in (
        ("kind", found.kind.value),
        ("line", found.line or "(none)"),
        ("whose turn", whose),
        ("advice", found.advice),
    ):
        print(f"{name + ':':<12}{_printable(text, stdout)}", file=stdout)
    return 0


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as log:
        yield from iter(lambda: log.readline(_CHUNK_BYTES), b"")


def _printable(text: str, stdout: TextIO) -> str:
    encoding = stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)
