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
from ..report import Suite, found_records, junit_files, merge_junit, summary_markdown
from ..report.html import write_html

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


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
    files = [(str(path), path.read_bytes()) for path in junit_files(args.directory)]
    merged = merge_junit(files, expected)
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "junit.xml").write_bytes(merged.junit)
    page = summary_markdown(merged.cases, title=f"{len(expected)} cases, {len(files)} reports", problems=merged.problems)
    (args.output / "summary.md").write_text(page, encoding="utf-8")
    if os.environ.get(SUMMARY_VARIABLE):
        with Path(os.environ[SUMMARY_VARIABLE]).open("a", encoding="utf-8") as summary:
            summary.write(page)
    write_html(found_records(args.directory), args.output / "report.html")
    counts = Counter(case.outcome.value for case in merged.cases)
    stdout.write(
        f"{args.output / 'junit.xml'}: {', '.join(f'{count} {outcome}' for outcome, count in counts.items()) or 'no case'}\n"
    )
    stderr.writelines(f"{problem}\n" for problem in merged.problems)
    stderr.writelines(f"{case}: {case.outcome.value}: {case.message}\n" for case in merged.cases if case.outcome.is_red)
    return 1 if merged.is_red else 0
