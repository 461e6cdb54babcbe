"""`ascend-e2e judge RUN_DIR...`: existing runs judged again, with other limits or another baseline, without a device.

Must not know: what a check is.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from ..errors import RecordError
from ..history import to_line
from ..records import RunRecord
from ..report import checks_table, failed_lines, headline
from ..session import GROUPS, ExistingRun, asked_again, judge_again, not_made_again, read_baselines, read_run
from ..verdict import TRENDS, Baseline

# Flag, the groups of checks that have it, its name there, and what it is.
_NUMBERS = (
    ("--reward-min", ("rewards",), "minimum", "least mean reward of the last steps"),
    ("--max-drop", ("rewards",), "max_drop", "largest drop of the reward from its best window"),
    ("--confidence", ("rewards",), "confidence", "confidence of the trend of the reward"),
    ("--mean-limit", ("logprob",), "mean_limit", "largest mean difference of rollout and training probabilities"),
    ("--max-limit", ("logprob",), "max_limit", "largest single difference of rollout and training probabilities"),
    ("--pearson-limit", ("logprob",), "pearson_limit", "least correlation of rollout and training probabilities"),
    ("--throughput-min", ("throughput",), "minimum", "least tokens per second and device"),
    ("--step-time-max", ("throughput",), "step_time_max_s", "most seconds of a step"),
    ("--memory-max", ("throughput",), "memory_max_gb", "most memory of a training process, GB"),
    ("--host-memory-max", ("throughput",), "host_memory_max_gb", "most memory in use on the host, GB"),
)
_COUNTS = (
    ("--window", ("rewards", "health"), "window", "steps of a window"),
    ("--warmup", ("throughput", "baseline"), "warmup", "first steps that speed and memory leave out"),
)
_NO_TREND = "none"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `judge`."""
    parser = subparsers.add_parser(
        "judge",
        help="judge existing runs again, with other limits or another baseline",
        description="Judge existing runs again, by the checks that their tests asked for, with the limits, windows and baselines "
        "in their records unless others are given.",
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN_DIR", help="directory of a run, also from a CI artifact")
    parser.add_argument("--only", action="append", choices=GROUPS, help="checks to make, repeated (default: those of the record)")
    for flag, *_, text in _NUMBERS:
        parser.add_argument(flag, type=float, metavar="X", help=text)
    for flag, *_, text in _COUNTS:
        parser.add_argument(flag, type=int, metavar="N", help=text)
    parser.add_argument("--trend", choices=(*TRENDS, _NO_TREND), help="trend of the reward")
    parser.add_argument("--baselines", type=Path, metavar="FILE", help="hold the runs against these baselines")
    parser.add_argument("--all", action="store_true", help="show the checks that passed too")
    parser.add_argument("--json", action="store_true", help="print one line of JSON for each run: its record with the new checks")


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Print each run's new verdict beside its old one; return 1 if any check failed."""
    is_red = False
    for path in args.runs:
        existing = read_run(path)
        only = tuple(args.only or ())
        asked = asked_again(existing, changes=_changes(args, only), only=only, baselines=_baselines(args, existing.record))
        kept = () if only else not_made_again(existing)
        record = dataclasses.replace(existing.record, checks=(*judge_again(existing, asked), *kept), asked=asked)
        is_red = is_red or not record.is_passed
        if args.json:
            stdout.write(f"{json.dumps(json.loads(to_line(record)))}\n")
        else:
            stdout.writelines(f"{line}\n" for line in _lines(existing, record, is_all=args.all))
    stderr.flush()
    return 1 if is_red else 0


def _changes(args: argparse.Namespace, only: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Return the arguments that are given, by group of checks."""
    changes: dict[str, dict[str, Any]] = {}
    for flag, groups, name, _ in (*_NUMBERS, *_COUNTS):
        value = getattr(args, flag.strip("-").replace("-", "_"))
        if value is not None:
            for group in groups:
                if not only or group in only:
                    changes.setdefault(group, {})[name] = value
    if args.trend is not None and (not only or "rewards" in only):
        changes.setdefault("rewards", {})["trend"] = None if args.trend == _NO_TREND else args.trend
    return changes


def _baselines(args: argparse.Namespace, record: RunRecord) -> dict[str, Baseline]:
    if args.baselines is None:
        return {}
    if not args.baselines.is_file():
        raise RecordError(f"{args.baselines}: no such file; expected one that `ascend-e2e baseline record` has written")
    found = read_baselines(args.baselines, record.case, record.runner)
    if not found:
        raise RecordError(
            f"{args.baselines}: holds no baseline of {record.case} on {record.runner}; `ascend-e2e baseline record` makes one"
        )
    return found


def _lines(existing: ExistingRun, record: RunRecord, *, is_all: bool) -> Iterator[str]:
    before = "passed" if existing.record.is_passed else "failed" if existing.record.checks else "not judged"
    yield f"{record.run_id}: {'passed' if record.is_passed else 'failed'} (was: {before}); {headline(record)}"
    if not (is_all or existing.record.is_completed):
        yield from failed_lines(record)  # most of them for want of steps
        return
    stale = [check for check in record.checks if not check.is_failed and "stale" in check.message]
    shown = record.checks if is_all else [*record.failed_checks, *stale]
    if shown:
        yield from checks_table(shown)
