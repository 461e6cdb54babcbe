"""`ascend-e2e new-case`: a case written from a bash script or a command of verl.

Must not know: how a command becomes a recipe.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from ..authoring import (
    CaseText,
    Draft,
    Invocation,
    differences,
    distinct_names,
    draft_of,
    invocation_of,
    is_training,
    module_text,
    read_script,
    requests_of,
)
from ..deadline import Deadline
from ..errors import AuthoringError
from ..preflight import Composition, Request, compose_cases
from ..runners import load_catalogue

_VARIABLE = "ASCEND_E2E_PYTHON"
_MARKERS = {"nightly": "npu_nightly", "pull-request": "npu_e2e"}
_COMPOSE_LIMIT_S = 300.0
_SHOWN_DIFFERENCES = 12

_NOTE = """\
bash reads the script in this directory without running its programs or writing a file. verl must be there for the interpreter: its
own composition tells what the command means, and whether the case means the same.\
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `new-case`."""
    parser = subparsers.add_parser(
        "new-case",
        help="write a case from a bash script or a command of verl",
        description="Write a pytest case from a bash script that trains with verl, or from the command itself: overrides become "
        "typed fields of a recipe where it has them, and defaults are left out. What else is left out is told on stderr.",
        epilog=_NOTE,
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write a new file (default: print the case)")
    parser.add_argument("--runner", metavar="NAME", help="runner of the case (default: the first that has its devices)")
    parser.add_argument("--runners-file", type=Path, metavar="FILE", help="YAML file with runners of your own")
    parser.add_argument("--tier", choices=tuple(_MARKERS), default="nightly", help="tier of the case (default: nightly)")
    parser.add_argument("--name", metavar="NAME", help="name of the test (default: made from the recipe)")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="variable for the script, repeated")
    parser.add_argument(
        "--python", metavar="FILE", help=f"interpreter that has verl [{_VARIABLE}] (default: this one)", default=None
    )
    parser.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT [ARG ...] | -- COMMAND",
        help="bash script with its arguments, or a command",
    )


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Write the case or cases; return 0."""
    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    if args.output is not None and args.output.exists():
        raise AuthoringError(f"{str(args.output)!r} is there already: give another --output, or remove it first")
    invocations = _invocations(words, _variables(args.env))
    python = args.python or os.environ.get(_VARIABLE) or sys.executable
    drafts = _drafts(invocations, python, args)
    names = distinct_names(args.name or draft.name for draft in drafts)
    texts = [
        CaseText(name=name, marker=_MARKERS[args.tier], runner=draft.runner, nodes=draft.nodes, recipe=draft.recipe)
        for name, draft in zip(names, drafts, strict=True)
    ]
    _tell(drafts, names, python, stderr)
    text = module_text(texts, "Cases that train as their commands do, written by `ascend-e2e new-case`.")
    if args.output is None:
        stdout.write(text)
        return 0
    try:
        args.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise AuthoringError(f"{str(args.output)!r} cannot be written: {error.strerror}") from error
    runner = drafts[0].runner
    stderr.write(f"written: {args.output}; next: pytest {shlex.quote(str(args.output))} --runner {runner} --e2e-plan\n")
    return 0


def _variables(texts: Sequence[str]) -> dict[str, str]:
    wrong = [text for text in texts if "=" not in text or text.startswith("=")]
    if wrong:
        raise AuthoringError(*(f"--env {text!r} cannot be used: expected NAME=VALUE" for text in wrong))
    return dict(text.partition("=")[::2] for text in texts)


def _invocations(words: Sequence[str], variables: Mapping[str, str]) -> list[Invocation]:
    if not words:
        raise AuthoringError("nothing to read: give a bash script, or a command of verl after --; see ascend-e2e new-case --help")
    path = Path(words[0])
    if not path.is_file() or is_training(words):
        if len(words) == 1 and "=" not in words[0]:
            raise AuthoringError(f"{words[0]!r} is no file: expected a bash script, or a command of verl after --")
        return [invocation_of(words, variables)]
    reading = read_script(path, words[1:], variables)
    found = [invocation_of(started.words, started.environment) for started in reading.started if is_training(started.words)]
    if not found:
        others = [
            shlex.join(started.words)[:80] for started in reading.started if started.words[:1] in (("bash",), ("sh",), ("source",))
        ]
        hints = [f"it reads other scripts, which were not followed: {'; '.join(others)}"] if others else []
        hints += [f"bash says: {' | '.join(reading.errors)}"] if reading.errors else []
        raise AuthoringError(
            f"{path}: starts no training of verl (python -m verl...); {'; '.join([*hints, 'give the command after --'])}"
        )
    return found


def _drafts(invocations: Sequence[Invocation], python: str, args: argparse.Namespace) -> list[Draft]:
    catalogue = load_catalogue(args.runners_file)
    pairs = [requests_of(invocation) for invocation in invocations]
    composed = _compose([request for pair in pairs for request in pair], python)
    return [
        draft_of(invocation, composed[2 * place], composed[2 * place + 1], catalogue, args.runner)
        for place, invocation in enumerate(invocations)
    ]


def _compose(requests: Sequence[Request], python: str) -> tuple[Composition, ...]:
    return compose_cases(requests, deadline=Deadline.after(_COMPOSE_LIMIT_S, name="composing the command"), python=python)


def _tell(drafts: Sequence[Draft], names: Sequence[str], python: str, stderr: TextIO) -> None:
    """Say what was left out, and whether verl composes the cases to what it composes the commands to."""
    composed = _compose([draft.request for draft in drafts], python)
    for draft, name, composition in zip(drafts, names, composed, strict=True):
        stderr.writelines(f"{name}: {' '.join(note.split())}\n" for note in draft.notes)
        stderr.writelines(f"{name}: {line}\n" for line in _verdict(draft, composition))


def _verdict(draft: Draft, composition: Composition) -> Iterator[str]:
    yield from composition.problems
    found = list(differences(draft.wanted, composition.config or {}, draft.recipe))
    if not found:
        yield f"verl {composition.verl} composes it to the configuration of the command"
        return
    yield f"verl {composition.verl} composes it to the configuration of the command, but for:"
    yield from (f"  {key}: {theirs!r} in the command, {ours!r} in the case" for key, theirs, ours in found[:_SHOWN_DIFFERENCES])
    if len(found) > _SHOWN_DIFFERENCES:
        yield f"  and {len(found) - _SHOWN_DIFFERENCES} more"
