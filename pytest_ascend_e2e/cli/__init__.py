"""The `ascend-e2e` command: one module of this package for each sub-command, loaded only when it is asked for.

Must not know: pytest. An error that a user can mend becomes one line on stderr and exit status 2; our own show a traceback.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from ..errors import CollectionError, E2EError
from .examples import examples_text
from .statuses import statuses_text

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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A path or a text of a run may be no Unicode, and a terminal need not have every letter.
            stream.reconfigure(errors="backslashreplace")
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
    """Return the parser with these sub-commands; the help of each ends with its examples and its exit statuses."""
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
        command.description = command.description or _listed(subparsers, name)
        command.epilog = "\n\n".join(filter(None, [examples_text(name), command.epilog, statuses_text(name)]))
        for action in _actions(command):
            action.epilog = statuses_text(name)
            action.formatter_class = _Help
        command.formatter_class = _Help
    return parser


def _listed(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], name: str) -> str:
    """Return the line that lists a command as a sentence: the description of one that has no longer one."""
    line = next((action.help or "" for action in subparsers._choices_actions if action.dest == name), "")  # noqa: SLF001  # no other way
    return f"{line[:1].upper()}{line[1:]}." if line else ""


def _actions(command: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parsers of a command's own sub-commands."""
    groups = [action for action in command._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001  # no other way
    return [action for group in groups for action in group.choices.values()]


class _Help(argparse.RawDescriptionHelpFormatter):
    """Wraps a description as argparse does, and leaves what stands below the options as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(("examples:", "exit status:")):
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)  # noqa: SLF001  # the hook that argparse names for it


def _module(command: str) -> ModuleType:
    return importlib.import_module(f".{command.replace('-', '_')}", __package__)
