"""The `ascend-e2e` command: one module of this package for each sub-command, loaded only when it is asked for.

Must not know: pytest. An error that a user can mend becomes one line on stderr and exit status 2; our own show a traceback.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from ..errors import CollectionError, E2EError
from .examples import examples_text

__all__ = ["COMMANDS", "build_parser", "main"]

# Each module has add_parser(subparsers) -> None and run(args, stdout, stderr) -> int.
COMMANDS = (
    "doctor", "preflight", "devices", "metrics", "diagnose", "baseline", "history", "judge", "repeat", "report", "new-case",
    "matrix", "workflow", "merge", "rules", "completion",
)  # fmt: skip

_MISTAKE = 2
_CUT_SHORT = 141  # what a shell reports for a command that SIGPIPE ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of these arguments (those of the process by default) and return its exit status."""
    words = sys.argv[1:] if argv is None else list(argv)
    parser = build_parser([words[0]] if words and words[0] in COMMANDS else COMMANDS)
    args = parser.parse_args(words)
    try:
        status: int = _module(args.command).run(args, sys.stdout, sys.stderr)
        sys.stdout.flush()
    except E2EError as error:
        # What pytest said of a suite is many lines; any other refusal is one.
        between = "\n  " if isinstance(error, CollectionError) else "; "
        text = between.join(" ".join(problem.split()) for problem in error.problems)
        sys.stderr.write(f"ascend-e2e {args.command}: {text}\n")
        return _MISTAKE
    except BrokenPipeError:
        # The reader (head, a pager) has seen enough; without a place to write, Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CUT_SHORT
    return status


def build_parser(commands: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser with these sub-commands; the help of each ends with its examples."""
    parser = argparse.ArgumentParser(
        prog="ascend-e2e",
        description="Judge cases before they run, and write them from scripts; look at a host and its devices, and at metrics, "
        "failures, baselines, history and reports of end-to-end trainings on Ascend NPUs.",
        epilog="ascend-e2e COMMAND --help shows a command's options and examples.",
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name in commands:
        _module(name).add_parser(subparsers)
        command = subparsers.choices[name]
        command.formatter_class = _Help
        command.epilog = "\n\n".join(filter(None, [examples_text(name), command.epilog]))
    return parser


class _Help(argparse.RawDescriptionHelpFormatter):
    """Wraps a description as argparse does, and leaves the examples below it as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)  # noqa: SLF001  # the hook that argparse names for it


def _module(command: str) -> ModuleType:
    return importlib.import_module(f".{command.replace('-', '_')}", __package__)
