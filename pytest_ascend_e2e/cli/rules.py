"""`ascend-e2e rules`: every rule of the preflight, as a table. Must not know: how a rule is checked."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TextIO

from ..errors import E2EError
from ..preflight import all_rules, rules_table

if TYPE_CHECKING:
    # A name of argparse's stubs alone.
    from argparse import _SubParsersAction


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of this command."""
    parser = subparsers.add_parser(
        "rules",
        help="show the rules that a preflight checks, with their sources",
        description="Show the rules that a plan judges cases by, as a table: the id that ends each text of the plan, what the rule "
        "demands, and its source.",
    )
    parser.add_argument("id", nargs="*", metavar="ID", help="ids of rules, as they end a text of a plan; all where none is given")


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:  # noqa: ARG001  # every command has this signature
    """Print the table.

    Raises:
        E2EError: there is no rule of an id that was asked for.
    """
    rules = all_rules()
    unknown = sorted(set(args.id) - {rule.id for rule in rules})
    if unknown:
        raise E2EError(f"{', '.join(unknown)}: no such rule; `ascend-e2e rules` shows all of them, such as M2")
    stdout.write(rules_table([rule for rule in rules if not args.id or rule.id in args.id]))
    return 0
