"""`ascend-e2e new-case`: a case written from a bash script or a command of verl.

Must not know: how a command becomes a recipe.
"""

from __future__ import annotations

import argparse
import fnmatch
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
    requests_of,
    trainings_of,
)
from ..deadline import Deadline
from ..errors import AuthoringError, RecipeError
from ..files import write_whole
from ..preflight import Composition, Request, compose_cases
from ..runners import load_catalogue

_VARIABLE = "ASCEND_E2E_PYTHON"
_MARKERS = {"nightly": "npu_nightly", "pull-request": "npu_e2e"}
_COMPOSE_LIMIT_S = 300.0
_SHOWN_DIFFERENCES = 12
_SHOWN_CHARACTERS = 80
_OPTIONS = ("-o", "--output", "--runner", "--runners-file", "--tier", "--name", "--env", "--python")
# What pytest takes for a file of tests where no python_files says otherwise.
_COLLECTED = ("test_*.py", "*_test.py")

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
    is_separated = args.words[:1] == ["--"]
    words = args.words[1:] if is_separated else args.words
    problems = [*_name_problems(args.name), *_output_problems(args.output)]
    if problems:
        raise AuthoringError(*problems)
    invocations = _invocations(words, _variables(args.env))
    python = args.python or os.environ.get(_VARIABLE) or sys.executable
    drafts = _drafts(invocations, python, args)
    stderr.writelines(_hints(words if not is_separated else (), args.output))
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
    write_whole(args.output, text, AuthoringError)
    runner = drafts[0].runner
    stderr.write(f"written: {args.output}; next: pytest {shlex.quote(str(args.output))} --runner {runner} --e2e-plan\n")
    return 0


def _name_problems(name: str | None) -> Iterator[str]:
    if name is not None and not (name.isidentifier() and name.startswith("test")):
        yield f"--name {name!r} cannot be used: expected a name of Python that begins with test, such as test_grpo_qwen3_8b"


def _output_problems(path: Path | None) -> Iterator[str]:
    """Yield why a new file cannot be written, before minutes are spent on what it would hold."""
    if path is None:
        return
    try:
        path.touch(exist_ok=False)
        path.unlink()
    except FileExistsError:
        what = "is a directory: give a new file" if path.is_dir() else "is there already: give another --output, or remove it first"
        yield f"{str(path)!r} {what}"
    except OSError as error:
        yield f"--output {str(path)!r} cannot be written: {error.strerror}; expected a new file in a directory that is there"


def _hints(words: Sequence[str], output: Path | None) -> Iterator[str]:
    own = [word for word in words[1:] if word.partition("=")[0] in _OPTIONS]
    if own:
        yield f"{', '.join(own)}: given to {words[0]} as its own; an option of new-case stands before the script\n"
    if output is not None and not any(fnmatch.fnmatch(output.name, pattern) for pattern in _COLLECTED):
        yield f"{output}: pytest collects {' and '.join(_COLLECTED)} by default; give it such a name, or name the file to pytest\n"


def _variables(texts: Sequence[str]) -> dict[str, str]:
    wrong = [text for text in texts if "=" not in text or text.startswith("=")]
    if wrong:
        raise AuthoringError(*(f"--env {text!r} cannot be used: expected NAME=VALUE" for text in wrong))
    return dict(text.partition("=")[::2] for text in texts)


def _invocations(words: Sequence[str], variables: Mapping[str, str]) -> list[Invocation]:
    if not words:
        raise AuthoringError("nothing to read: give a bash script, or a command of verl after --; see ascend-e2e new-case --help")
    path = Path(words[0])
    if not _is_file(path) or is_training(words):
        if len(words) == 1 and is_training(words[0].split()):
            raise AuthoringError(f"{words[0][:_SHOWN_CHARACTERS]!r} is one word: give the command after --, without quotes")
        if len(words) == 1 and "=" not in words[0]:
            raise AuthoringError(f"{words[0]!r} is no file: expected a bash script, or a command of verl after --")
        return [invocation_of(words, variables)]
    return trainings_of(path, words[1:], variables)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False  # an override may be longer than the name of a file


def _drafts(invocations: Sequence[Invocation], python: str, args: argparse.Namespace) -> list[Draft]:
    catalogue = load_catalogue(args.runners_file)
    pairs = [requests_of(invocation) for invocation in invocations]
    composed = _compose([request for pair in pairs for request in pair], python)
    drafts = []
    for place, invocation in enumerate(invocations):
        try:
            drafts.append(draft_of(invocation, composed[2 * place], composed[2 * place + 1], catalogue, args.runner))
        except (AuthoringError, RecipeError) as error:
            # How the command was read may be why it cannot be used.
            raise AuthoringError(*error.problems, *invocation.notes) from error
    return drafts


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
    what = "the command" if draft.is_whole else "the command without what is not taken over"
    if not found:
        yield f"verl {composition.verl} composes it to the configuration of {what}"
        return
    yield f"verl {composition.verl} composes it to the configuration of {what}, but for:"
    yield from (f"  {key}: {theirs!r} in the command, {ours!r} in the case" for key, theirs, ours in found[:_SHOWN_DIFFERENCES])
    if len(found) > _SHOWN_DIFFERENCES:
        yield f"  and {len(found) - _SHOWN_DIFFERENCES} more"
