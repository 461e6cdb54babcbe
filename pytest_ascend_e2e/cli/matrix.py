"""`ascend-e2e matrix`: the jobs that run a suite, as the JSON that a workflow's matrix reads.

Must not know: how cases are put into jobs.
"""

from __future__ import annotations

import argparse
import difflib
import json
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TextIO

from ..errors import E2EError, did_you_mean
from ..files import write_whole
from ..nodeids import own_name
from ..report import Suite
from ..runners import load_catalogue
from ..session import Settings, SuiteCase, plan_jobs, without_simulated
from .arguments import duration
from .collecting import add_tier, collect_tier

# As many as GitHub makes of one matrix.
MOST_JOBS = 256
# Four hours of eight devices, two of sixteen.
DEVICE_HOURS = 32.0


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `matrix`."""
    parser = subparsers.add_parser(
        "matrix",
        help="print the jobs that run a suite, as the matrix of a workflow",
        description="Print the JSON that a workflow reads by fromJSON(): one entry for each job, each case in one, sharded by "
        "expected device-hours. Cases in quarantine are in none, and named on stderr.",
    )
    add_tier(parser)
    parser.add_argument("--only", action="append", metavar="CASE", help="only this case: a node id, a name, or a pattern; repeated")
    parser.add_argument("--image", metavar="IMAGE", help="run in this image instead of the catalogue's, such as one by its digest")
    parser.add_argument(
        "--device-hours",
        type=float,
        default=DEVICE_HOURS,
        metavar="N",
        help=f"device-hours of one job, by the cases' last green runs or estimates (default: {DEVICE_HOURS:g})",
    )
    parser.add_argument(
        "--timeout",
        type=duration,
        metavar="TIME",
        help="time limit of a case whose marker has none (default: as its session has it)",
    )
    parser.add_argument(
        "--cases", type=Path, metavar="FILE", help="write the list of the cases too: what `ascend-e2e merge` expects"
    )
    parser.add_argument("--ids", action="store_true", help="print the node ids of the cases, a line each, instead of the matrix")


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Print the matrix; return 0."""
    if not args.device_hours > 0:
        raise E2EError(f"--device-hours: {args.device_hours:g} cannot be used: expected a number above 0, such as 32")
    suite = collect_tier(args)
    settings = _settings(suite, args.timeout)
    catalogue = load_catalogue(settings.runners_file)
    cases = _chosen(without_simulated(suite.cases, catalogue), [text.strip() for text in args.only or () if text.strip()])
    image = (args.image or "").strip() or None
    jobs = plan_jobs(cases, catalogue, most_device_hours=args.device_hours, settings=settings, image=image)
    if not jobs:
        raise E2EError(f"all {len(cases)} cases are off: nothing to run; the first: {cases[0].case}: {cases[0].off}")
    if len(jobs) > MOST_JOBS:
        raise E2EError(f"{len(jobs)} jobs, and a matrix holds {MOST_JOBS}: give more --device-hours, or fewer paths")
    if args.cases is not None:
        write_whole(args.cases, Suite(cases=tuple(cases)).to_json())
    if args.ids:
        stdout.writelines(f"{name}\n" for job in jobs for name in job.cases)
    else:
        stdout.write(json.dumps({"include": [job.as_matrix() for job in jobs]}) + "\n")
    stderr.writelines(f"in no job: {case.case}: {case.off}\n" for case in cases if case.off)
    return 0


def _settings(suite: Suite, timeout_s: float | None) -> Settings:
    settings = Settings.from_plain(suite.settings)
    if timeout_s is None:
        return settings
    return replace(settings, run_timeout_s=timeout_s, origins={**settings.origins, "run-timeout": "--timeout"})


def _chosen(cases: Sequence[SuiteCase], only: Sequence[str]) -> Sequence[SuiteCase]:
    if not only:
        return cases
    found = {wish: _meant(cases, wish) for wish in only}
    if not all(found.values()):
        names = [own_name(case.case) for case in cases]
        raise E2EError(*(f"no case {wish!r} in this tier{_near(wish, names)}" for wish in only if not found[wish]))
    meant = {case.case for chosen in found.values() for case in chosen}
    return [case for case in cases if case.case in meant]


def _meant(cases: Sequence[SuiteCase], wish: str) -> Sequence[SuiteCase]:
    """Return the cases of this name, with or without path and parameters; else those that it is a pattern of."""
    named = [case for case in cases if wish in _names(case)]
    return named or [case for case in cases if any(fnmatchcase(name, wish) for name in _names(case))]


def _names(case: SuiteCase) -> tuple[str, ...]:
    wholes = (case.case, own_name(case.case))
    return (*wholes, *(whole.partition("[")[0] for whole in wholes))


def _near(wish: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(own_name(wish), names, n=3, cutoff=0.75)
    return did_you_mean(near, before="; ", otherwise=f"; it has {', '.join(sorted(names)[:5])}, ...")
