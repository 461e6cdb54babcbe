"""`ascend-e2e completion SHELL`: the script that completes the command's words in a shell.

Must not know: which commands there are; shtab reads them off the parser.
"""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TextIO

from ..errors import SettingsError

_SHELLS = ("bash", "zsh", "fish", "tcsh")
# What the help calls a path that is a text to the parser, as that of pytest and of an interpreter.
_PATHS = frozenset({"PATH", "FILE"})
# What makes a script leave paths to the shell, which knows the quotes and spaces in them that shtab's own functions do not.
_OWN_FILES: Mapping[str, tuple[re.Pattern[str], str]] = MappingProxyType(
    {
        "bash": (re.compile(r"^complete .*(?=-F )", re.MULTILINE), "complete -o bashdefault -o default "),
        "fish": (re.compile(r'-x?ka "\(__fish_complete_path \(commandline -ct\)\)"'), "-rF"),
    }
)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `completion`."""
    parser = subparsers.add_parser(
        "completion",
        help="print the script that completes ascend-e2e in a shell",
        description="Print the script that completes commands, options, choices and files in a shell. It needs the package "
        "shtab once, here; the script needs nothing.",
    )
    parser.add_argument("shell", choices=_SHELLS, help="the shell")


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Print the script; return 0.

    Raises:
        SettingsError: shtab is not installed, or does not know the shell.
    """
    try:
        shtab = importlib.import_module("shtab")
    except ImportError as error:
        raise SettingsError("the package shtab is not installed: pip install shtab, here or where you make the script") from error
    if args.shell not in shtab.SUPPORTED_SHELLS:
        raise SettingsError(f"shtab {shtab.__version__} knows no {args.shell}: pip install --upgrade shtab")
    # The package that holds this command has the parser of all.
    parser = importlib.import_module(__package__).build_parser()
    if args.shell != "bash":  # which asks for paths where nothing else fits
        _complete_files(parser, shtab.FILE)
    script = shtab.complete(parser, shell=args.shell)
    if args.shell in _OWN_FILES:
        pattern, own = _OWN_FILES[args.shell]
        script = pattern.sub(own, script)
    stdout.write(f"{script}\n")
    stderr.flush()
    return 0


def _complete_files(parser: argparse.ArgumentParser, files: object) -> None:
    """Let arguments that are paths complete to files, in all sub-commands."""
    for action in parser._actions:  # noqa: SLF001  # argparse has no other way to walk a parser; shtab goes the same
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  # as above
            for command in action.choices.values():
                _complete_files(command, files)
        elif action.type is Path or action.metavar in _PATHS:
            action.complete = files  # type: ignore[attr-defined]  # the attribute that shtab reads
