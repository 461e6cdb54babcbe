"""The cases of a test suite as the commands see them: pytest collects them in a child process and leaves a file.

Must not know: what is done with the cases.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from ..errors import PreflightError
from ..report import Suite

_CASES = "npu_nightly or npu_e2e"
_PASSED, _FAILED, _NOTHING = 0, 1, 5
_TAIL_LINES = 40


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select cases, named as pytest's."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="test files or directories (default: as pytest finds them)")
    parser.add_argument("--runner", metavar="NAME", help="only for this runner (default: each case for its own runners)")
    parser.add_argument("-m", dest="marks", metavar="EXPR", help="only cases with these markers, e.g. nightly")
    parser.add_argument("-k", dest="keyword", metavar="EXPR", help="only cases whose names match")


def collect_suite(args: argparse.Namespace, *options: str) -> Suite:
    """Return what pytest collects, with these further options of its own.

    Raises:
        PreflightError: pytest cannot collect; its own words are the text.
    """
    marks = f"({_CASES}) and ({args.marks})" if args.marks else _CASES
    with tempfile.TemporaryDirectory(prefix="ascend-e2e-") as directory:
        file = Path(directory, "suite.json")
        command = [sys.executable, "-m", "pytest", *args.paths, "-m", marks, "-q", "-n0", "-p", "no:cacheprovider", *options]
        command += ["--e2e-export", str(file)]
        command += ["--runner", args.runner] if args.runner else []
        command += ["-k", args.keyword] if args.keyword else []
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode not in (_PASSED, _FAILED, _NOTHING) or not file.exists():
            raise PreflightError(f"pytest cannot collect the cases (exit status {done.returncode}): {_words(done)}")
        return Suite.read(file)


def _words(done: subprocess.CompletedProcess[str]) -> str:
    """Return what pytest said, without its frames."""
    lines = [line.strip("=_ ") for line in (done.stdout + done.stderr).splitlines()]
    return " | ".join([line for line in lines if line][-_TAIL_LINES:])
