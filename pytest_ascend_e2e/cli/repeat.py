"""`ascend-e2e repeat RUN_DIR`: a run once more, by its recorded arguments and environment, or with changes.

Must not know: how a run is repeated.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO

from ..errors import SettingsError
from ..nodeids import own_name
from ..records import RunRecord
from ..report import differences, failure_text, from_record, headline, number, progress_line, table
from ..runners import DEFAULT_LOCK_DIR, load_catalogue
from ..session import Repetition, changes_of, not_made_again, read_run, telling_lines
from .arguments import duration

DEFAULT_RUN_ROOT = Path("e2e-runs")
_QUIET_EVERY_S = 30.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `repeat`."""
    parser = subparsers.add_parser(
        "repeat",
        help="repeat a run from its directory",
        description="Repeat a run by its recorded arguments and environment, on leased devices, and judge it by the checks and "
        "limits of its record. The case itself is not needed, and may have changed.",
    )
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="directory of a run, also from a CI artifact")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="changes", help="override of verl's configuration; repeated"
    )
    parser.add_argument("--steps", type=int, metavar="N", help="train N steps")
    parser.add_argument("--python", type=Path, metavar="FILE", help="interpreter of the training (default: that of the run)")
    parser.add_argument(
        "--run-root", type=Path, default=DEFAULT_RUN_ROOT, metavar="DIR", help=f"gets the new run (default: {DEFAULT_RUN_ROOT})"
    )
    parser.add_argument("--runners-file", type=Path, metavar="FILE", help="YAML file with runners of your own")
    parser.add_argument("--lock-dir", type=Path, default=DEFAULT_LOCK_DIR, metavar="DIR", help="directory of the device locks")
    for name, default, text in (
        ("timeout", "3h", "longest time of the training"),
        ("silence", "20m", "longest time without a sign of life"),
        ("lease-timeout", "2h", "longest wait for devices"),
    ):
        parser.add_argument(f"--{name}", type=duration, default=default, metavar="TIME", help=f"{text} (default: {default})")


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Repeat the run, and print both verdicts and what was another; return 1 if the repeat is red."""
    if args.steps is not None and args.steps < 1:
        raise SettingsError(f"--steps: {args.steps} cannot be used: expected a whole number from 1")
    try:
        changes_of(args.changes)
    except ValueError as error:
        raise SettingsError(f"--set: {error}") from error
    before = read_run(args.run)
    repetition = Repetition(
        existing=before,
        catalogue=load_catalogue(args.runners_file),
        environ=dict(os.environ),
        run_root=args.run_root.absolute(),
        lock_dir=args.lock_dir,
        timeout_s=args.timeout,
        silence_s=args.silence,
        lease_timeout_s=args.lease_timeout,
        changes=args.changes,
        steps=args.steps,
        python=args.python and str(args.python.expanduser().absolute()),  # a training starts in the directory of its run
        flags=_flags(args),
    )
    after = repetition.run(_observer(before.record, repetition.steps or before.record.steps, stderr))
    stdout.writelines(f"{line}\n" for line in _lines(before.record, after.record))
    unmade = not_made_again(before)
    stdout.writelines(f"not made again, which only its test can: {check.name}: {check.message}\n" for check in unmade)
    # What made the run red there, and is not looked at here, is not mended by that.
    is_red = not after.record.is_passed or any(check.is_failed for check in unmade)
    return 1 if is_red else 0


def _flags(args: argparse.Namespace) -> list[str]:
    """Return the flags by which a run is repeated here and that are no change of it."""
    flags = [
        ("--python", args.python, None),
        ("--runners-file", args.runners_file, None),
        ("--lock-dir", args.lock_dir, DEFAULT_LOCK_DIR),
        ("--run-root", args.run_root, DEFAULT_RUN_ROOT),
    ]
    return [f"{flag}={value}" for flag, value, default in flags if value != default]


def _observer(record: RunRecord, steps: int, stderr: TextIO) -> Callable[[int, Mapping[str, float | None]], None]:
    """Return what tells of a step: of the first and the last one, and of one each half minute."""
    started = shown = time.monotonic()
    first_s: float | None = None

    def saw(step: int, data: Mapping[str, float | None]) -> None:
        nonlocal shown, first_s
        now = time.monotonic()
        first_s = now - started if first_s is None else first_s
        if step in (1, steps) or now - shown >= _QUIET_EVERY_S:
            shown = now
            name = own_name(record.case)
            stderr.write(
                progress_line(name, step=step, steps=steps, elapsed_s=now - started, first_step_s=first_s, data=data) + "\n"
            )
            stderr.flush()

    return saw


def _lines(before: RunRecord, after: RunRecord) -> list[str]:
    figures = [(name, number(before.summary.get(name)), number(value)) for name, value in after.summary.items()]
    alike = dataclasses.replace(after, changed=before.changed)  # that it is a repeat, and with which changes, is known here
    others = list(differences(from_record(before).properties, from_record(alike).properties))
    return [
        f"{before.run_id}: {headline(before)}",
        f"{after.run_id}: {headline(after)}",
        *([f"elsewhere than it ran: {', '.join(others)}"] if others else []),
        "",
        *table(("figure", "then", "now"), figures, right=(1, 2)),
        "",
        *([] if after.is_passed else [failure_text(after, log_lines=telling_lines(after))]),
        f"run: {after.run_dir}",
    ]
