"""The `ascend-e2e` command: one module of this package for each sub-command, loaded only when it is asked for.

Must not know: pytest. An error that a user can mend becomes one line on stderr and exit status 2; our own show a traceback.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from ..errors import E2EError

__all__ = ["main"]

# Each module has add_parser(subparsers) -> None and run(args, stdout, stderr) -> int.
_COMMANDS = (
    "devices", "metrics", "diagnose", "baseline", "history", "judge", "repeat", "report", "new-case", "matrix", "workflow", "merge"
)  # fmt: skip

_MISTAKE = 2
_CUT_SHORT = 141  # what a shell reports for a command that SIGPIPE ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of these arguments (those of the process by default) and return its exit status."""
    words = sys.argv[1:] if argv is None else list(argv)
    asked = [words[0]] if words and words[0] in _COMMANDS else _COMMANDS
    parser = argparse.ArgumentParser(
        prog="ascend-e2e",
        description="Look at devices, metrics, failures, baselines, history and reports of end-to-end trainings on Ascend NPUs.",
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="command")
    modules = {name: importlib.import_module(f".{name.replace('-', '_')}", __package__) for name in asked}
    for module in modules.values():
        module.add_parser(subparsers)
    args = parser.parse_args(words)
    try:
        status: int = modules[args.command].run(args, sys.stdout, sys.stderr)
        sys.stdout.flush()
    except E2EError as error:
        text = "; ".join(" ".join(problem.split()) for problem in error.problems)
        sys.stderr.write(f"ascend-e2e {args.command}: {text}\n")
        return _MISTAKE
    except BrokenPipeError:
        # The reader (head, a pager) has seen enough; without a place to write, Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CUT_SHORT
    return status
