"""`ascend-e2e preflight`: judge cases without a device, as `pytest --e2e-plan` does, and print the verdicts alone.

Must not know: how a case is judged.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TextIO

from ..report import Suite, plan_table
from .collecting import add_selection, collect_suite


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `preflight`."""
    parser = subparsers.add_parser(
        "preflight",
        help="judge cases without a device",
        description="Collect the cases and judge each on its runners, as pytest --e2e-plan does: what it needs, whether it can "
        "work, and why not. Nothing is leased or trained.",
    )
    add_selection(parser)
    parser.add_argument("--budget", type=float, metavar="HOURS", help="device-hours that the cases may cost together")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace, stdout: TextIO, _stderr: TextIO) -> int:
    """Print what was found of each case, and return 1 if one cannot work.

    Raises:
        PreflightError: the cases cannot be collected.
    """
    budget = () if args.budget is None else ("--e2e-budget", f"{args.budget:g}")
    suite = collect_suite(args, "--e2e-plan", *budget)
    if args.json:
        stdout.write(f"{suite.to_json()}\n")
    else:
        stdout.writelines(f"{line}\n" for line in _lines(suite, args.budget))
    return int(bool(suite.failures or suite.problems))


def _lines(suite: Suite, budget: float | None) -> Iterator[str]:
    for row in suite.rows:
        if row.problems or row.warnings:
            yield f"{row.case} on {row.runner}: {row.verdict}"
            yield from (f"  problem: {problem}" for problem in row.problems)
            yield from (f"  warning: {warning}" for warning in row.warnings)
            yield ""
    planned = {row.case for row in suite.rows}
    unplanned = {case: text for case, text in suite.failures.items() if case not in planned}
    for case, text in unplanned.items():
        yield f"{case}: {text.strip()}"
        yield ""
    yield from plan_table(suite.rows, budget_device_hours=budget)
    yield from suite.notes
    yield from suite.problems
    count = len(planned) + len(unplanned)
    yield f"{count} cases, {len(suite.failures)} cannot work; no device was taken, nothing was trained"
