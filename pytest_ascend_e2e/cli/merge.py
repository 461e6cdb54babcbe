"""`ascend-e2e merge`: what the jobs of a workflow reported as one JUnit file and one summary; red if a case did not report.

Must not know: how files are merged.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import TextIO

from ..errors import RecordError, ReportError
from ..files import write_whole
from ..report import Suite, append_page, found_records, junit_files, merge_junit, summary_markdown
from ..report.html import write_html


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `merge`."""
    parser = subparsers.add_parser(
        "merge",
        help="merge the JUnit files of many jobs",
        description="Merge the JUnit files below a directory, and hold them against the list of cases that were to run. "
        "GitHub shows the summary on the page of the job.",
    )
    parser.add_argument("directory", type=Path, metavar="DIR", help="directory with what the jobs reported")
    parser.add_argument(
        "--cases",
        type=Path,
        required=True,
        metavar="FILE",
        help="the cases that were to run, written by `ascend-e2e matrix --cases`",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("e2e-merged"), metavar="DIR", help="gets junit.xml, summary.md and report.html"
    )


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Write the merged report; return 1 if the workflow is red."""
    try:
        expected = Suite.read(args.cases).cases
    except RecordError as error:
        raise ReportError(f"{error}; without the list of cases nobody knows what is missing") from error
    if not args.directory.is_dir():
        raise ReportError(f"{args.directory}: no directory; expected one that holds what the jobs reported")
    files, unread = junit_files(args.directory)
    merged = merge_junit(files, expected)
    target = args.output / "junit.xml"
    if any(target.resolve() == Path(name).resolve() for name in merged.reports):
        raise ReportError(f"--output: {target} is what a job reported, and would be overwritten: choose another directory")
    records, bad = found_records(args.directory)
    problems = [*unread, *merged.problems, *bad]
    page = summary_markdown(merged.cases, title=f"{len(expected)} cases, {len(merged.reports)} reports", problems=problems)
    write_whole(target, merged.junit.decode(), ReportError)
    write_whole(args.output / "summary.md", page, ReportError)
    append_page(page, os.environ)
    write_html(records, args.output / "report.html")
    counts = Counter(case.outcome.value for case in merged.cases)
    stdout.write(f"{target}: {', '.join(f'{count} {outcome}' for outcome, count in counts.items()) or 'no case'}\n")
    stderr.writelines(f"{problem}\n" for problem in problems)
    stderr.writelines(f"{case}: {case.outcome.value}: {case.message}\n" for case in merged.cases if case.outcome.is_red)
    return 1 if merged.is_red or problems else 0
