"""The cases of a suite, as pytest collects them, in a child process: the one that runs them later collects them in the same way.

Must not know: pytest, but for its command line.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ..errors import E2EError
from ..session import ListedCase, Tier, listed_cases

TIERS: Mapping[str, Tier] = MappingProxyType({"nightly": Tier.NIGHTLY, "pull-request": Tier.PULL_REQUEST})
_NO_TESTS = 5
_SHOWN_LINES = 20


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the arguments by which cases are selected."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files or directories of the cases (default: pytest's testpaths)")
    parser.add_argument("--tier", choices=tuple(TIERS), default="nightly", help="the tier of the cases (default: nightly)")
    parser.add_argument("--runners-file", type=Path, metavar="FILE", help="YAML file with runners of your own")


def collect(paths: Sequence[str], tier: Tier, runners_file: Path | None) -> list[ListedCase]:
    """Return the cases of a tier below these paths.

    Raises:
        E2EError: a test file cannot be collected, or there is no case.
    """
    with tempfile.TemporaryDirectory(prefix="ascend-e2e-") as directory:
        file = Path(directory) / "cases.json"
        options = ["--collect-only", "-q", "-p", "no:cacheprovider", "-m", tier.value, "--e2e-plan", "--e2e-list", str(file)]
        if runners_file is not None:
            options += ["--e2e-runners-file", str(runners_file)]
        done = subprocess.run([sys.executable, "-m", "pytest", *options, *paths], check=False, capture_output=True, text=True)
        if done.returncode not in (0, _NO_TESTS) or not file.is_file():
            told = (done.stderr.strip() or done.stdout.strip()).splitlines()[-_SHOWN_LINES:]
            raise E2EError(f"the cases cannot be collected (pytest ended with {done.returncode}):\n" + "\n".join(told))
        cases = listed_cases(file.read_text(encoding="utf-8"), origin=str(file))
    if not cases:
        raise E2EError(f"no case of the tier {tier.value} in {' '.join(paths) or 'the testpaths of this directory'}")
    return cases
