"""The cases of a test suite as the commands see them: pytest collects them in a child process and leaves a file.

Must not know: what is done with the cases.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ..errors import CollectionError, PreflightError
from ..report import Suite
from ..session import Tier

TIERS: Mapping[str, Tier] = MappingProxyType({"nightly": Tier.NIGHTLY, "pull-request": Tier.PULL_REQUEST})
_CASES = "npu_nightly or npu_e2e"
_PASSED, _FAILED, _NOTHING = 0, 1, 5
_TAIL_LINES = 40
# The headings of pytest's output.
_ERRORS, _SUMMARY = "ERRORS", "short test summary info"


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select cases, named as pytest's."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="test files or directories (default: as pytest finds them)")
    parser.add_argument("--runner", metavar="NAME", help="only for this runner (default: each case for its own runners)")
    parser.add_argument("-m", dest="marks", metavar="EXPR", help="only cases with these markers, e.g. nightly")
    parser.add_argument("-k", dest="keyword", metavar="EXPR", help="only cases whose names match")


def add_tier(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select what a CI runs: the cases of a tier."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="test files or directories (default: as pytest finds them)")
    parser.add_argument("--tier", choices=tuple(TIERS), default="nightly", help="the tier of the cases (default: nightly)")
    parser.add_argument("--runners-file", type=Path, metavar="FILE", help="YAML file with runners of your own")


def collect_suite(args: argparse.Namespace, *options: str) -> Suite:
    """Return what pytest collects of the selection of `add_selection`, with these further options of its own.

    Raises:
        CollectionError: pytest cannot collect.
    """
    marks = f"({_CASES}) and ({args.marks})" if args.marks else _CASES
    more = ["--runner", args.runner] if args.runner else []
    more += ["-k", args.keyword] if args.keyword else []
    return _collected(args.paths, marks, (*options, *more))


def collect_tier(args: argparse.Namespace) -> Suite:
    """Return what pytest collects of the selection of `add_tier`, at least one case.

    Raises:
        CollectionError: pytest cannot collect.
        PreflightError: it finds no case.
    """
    # The jobs are given the ids in this directory, whichever the suite's ini file lies in.
    options = ["--collect-only", "--e2e-plan", "--rootdir=."]
    options += [] if args.runners_file is None else [f"--e2e-runners-file={args.runners_file}"]
    suite = _collected(args.paths, TIERS[args.tier].value, options)
    if not suite.cases:
        where = " ".join(args.paths) or "the testpaths of this directory"
        raise PreflightError(f"no case of the tier {TIERS[args.tier].value} in {where}")
    return suite


def _collected(paths: Sequence[str], marks: str, options: Sequence[str]) -> Suite:
    with tempfile.TemporaryDirectory(prefix="ascend-e2e-") as directory:
        file = Path(directory, "suite.json")
        command = [sys.executable, "-m", "pytest", *paths, "-m", marks, "-q", "-n0", "-p", "no:cacheprovider", *options]
        command += [f"--e2e-export={file}"]
        done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", errors="replace")
        if done.returncode not in (_PASSED, _FAILED, _NOTHING) or not file.exists():
            raise CollectionError(f"pytest cannot collect the cases (exit status {done.returncode}):", *_words(done))
        return Suite.read(file)


def _words(done: subprocess.CompletedProcess[str]) -> Sequence[str]:
    """Return what pytest said, without its frames; of errors in files the errors alone, without the summary that repeats them."""
    lines = [line.strip("=_ ") for line in (done.stdout + done.stderr).splitlines()]
    if _ERRORS in lines and _SUMMARY in lines:
        lines = lines[lines.index(_ERRORS) + 1 : lines.index(_SUMMARY)]
    return [line for line in lines if line][-_TAIL_LINES:]
