"""`ascend-e2e baseline record RUN_DIR...` and `ascend-e2e baseline published`: baselines beside the cases.

Must not know: what makes runs fit for a baseline, or how a tolerance is found.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from ..errors import BaselineError
from ..report import number, table
from ..runners import load_catalogue
from ..session import (
    FALSE_ALARMS,
    FILE_NAME,
    METRICS,
    Change,
    ExistingRun,
    changes,
    published_baselines,
    published_cases,
    read_baselines,
    read_run,
    record_baseline,
    write_baselines,
)
from ..verdict import FEWEST_RUNS

# Ten runs find a slowdown of 6 % with 95 % certainty, five one of 12 %, twenty one of 5 % (docs/checks.md).
FEWEST = 10


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command with its two actions."""
    parser = subparsers.add_parser(
        "baseline",
        help="record a baseline from several runs, or import published figures",
        description="Write the baseline of a case on a runner into a file beside the case: from several runs of it, or from the "
        "figures that were published for upstream cases.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    record = actions.add_parser(
        "record",
        help="write the baseline of a case from the directories of its runs",
        description="Write the baseline of a case from runs that passed, of one commit without changes, one device and one set of "
        "versions, and show it beside the old one.",
    )
    record.add_argument("runs", nargs="+", type=Path, metavar="RUN_DIR", help="directory of a run")
    record.add_argument("--file", type=Path, metavar="FILE", help=f"the baselines (default: {FILE_NAME} beside the case)")
    record.add_argument("--fewest", type=int, default=FEWEST, metavar="N", help=f"refuse fewer runs (default: {FEWEST})")
    record.add_argument(
        "--metric", action="append", metavar="KEY", help=f"metric to record, repeated (default: {', '.join(METRICS)})"
    )
    record.add_argument(
        "--false-alarms", type=float, default=FALSE_ALARMS, metavar="P",
        help=f"wanted probability that a sound run fails against this baseline (default: {FALSE_ALARMS})",
    )  # fmt: skip
    record.add_argument(
        "--ceiling",
        action="append",
        default=[],
        type=_ceiling,
        metavar="KEY=VALUE",
        help="a value that no run may pass on the worse side, repeated (default: those of the old baseline)",
    )
    record.add_argument(
        "--image", default="", metavar="TEXT", help="the container image of the runs (default: that of their records)"
    )
    record.add_argument("--reason", default="", metavar="TEXT", help="why there is a new baseline")
    record.add_argument("--dry-run", action="store_true", help="show the table and write nothing")
    published = actions.add_parser(
        "published",
        help="show the figures published for six upstream cases, or import one of them",
        description="Figures of single runs, as published. They are imported as such: no spread, the published tolerance.",
    )
    published.add_argument("name", nargs="?", metavar="NAME", help="the upstream case to import (default: show all)")
    published.add_argument("--case", metavar="TEST", help="the case that gets the figures, by the name of its test")
    published.add_argument("--runner", metavar="NAME", help="the runner they hold for (default: that of the upstream job)")
    published.add_argument("--file", type=Path, metavar="FILE", help="the baselines to write")


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Do what was asked for; a baseline that is refused is an error that names every reason."""
    lines = _record(args) if args.action == "record" else _published(args)
    stdout.writelines(f"{line}\n" for line in lines)
    stderr.flush()
    return 0


def change_table(compared: Sequence[Change]) -> list[str]:
    """Return the lines of the table of old and new, the changes with their sign."""
    rows = []
    for change in compared:
        new, old = change.new, change.old
        signed = "-" if change.change is None else f"{change.change:+.1%}"
        spread, tolerance = (number(new.spread), number(new.tolerance)) if new else ("-", "-")
        values = (number(old.value) if old else "-", number(new.value) if new else "-")
        rows.append((change.metric, *values, signed, spread, tolerance, str(new.runs) if new else "-", change.meaning))
    header = ("metric", "old", "new", "change", "spread", "tolerance", "runs", "meaning")
    return table(header, rows, right=(1, 2, 3, 4, 5, 6))


def _record(args: argparse.Namespace) -> Iterator[str]:
    runs = [read_run(path) for path in args.runs]
    file = args.file or _beside_the_case(runs[0])
    old = read_baselines(file, runs[0].record.case, runs[0].record.runner)
    metrics = args.metric or METRICS
    kept = {key: was.ceiling for key, was in old.items() if key in metrics and was.ceiling is not None}
    baselines = record_baseline(
        runs,
        metrics=metrics,
        fewest_runs=max(args.fewest, FEWEST_RUNS),
        false_alarms=args.false_alarms,
        image=args.image,
        reason=args.reason,
        ceilings={**kept, **dict(args.ceiling)},
    )
    record = runs[0].record
    yield f"{record.case} on {record.runner} ({record.device}), commit {record.commit[:12]}, {len(runs)} runs"
    yield from change_table(changes(old, baselines))
    if args.dry_run:
        yield f"nothing written (--dry-run); it would go into {file}"
        return
    write_baselines(file, record.case, record.runner, baselines)
    yield f"written: {file}"


def _ceiling(text: str) -> tuple[str, float]:
    key, _, value = text.partition("=")
    try:
        return key, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} cannot be used: expected KEY=VALUE, such as actor/perf/max_memory_allocated_gb=60"
        ) from None


def _beside_the_case(run: ExistingRun) -> Path:
    test_file = Path(run.record.case.partition("::")[0])
    if not test_file.is_file():
        raise BaselineError(f"{test_file}: the file of the case is not here: go to the directory the tests run in, or give --file")
    return test_file.parent / FILE_NAME


def _published(args: argparse.Namespace) -> Iterator[str]:
    if args.name is None:
        metrics = list(METRICS)
        rows = [
            (case.name, case.runner, *(number(case.values[metric]) for metric in metrics), case.title) for case in published_cases()
        ]
        yield from table(("name", "runner", *metrics, "case"), rows, right=tuple(range(2, 2 + len(metrics))))
        return
    if not args.case or args.file is None:
        raise BaselineError(
            "an import needs the case that gets the figures and the file to write: give --case TEST and --file FILE"
        )
    job_runner = next((case.runner for case in published_cases() if case.name == args.name), None)
    runner = args.runner or job_runner
    baselines = published_baselines(args.name, device=load_catalogue().get(runner).chip if runner else "unknown")
    yield from change_table(changes(read_baselines(args.file, args.case, str(runner)), baselines))
    write_baselines(args.file, args.case, str(runner), baselines)
    yield f"written: {args.file}"
