"""`ascend-e2e workflow`: a whole GitHub workflow for a suite. The same arguments give the same file; no case is named in it.

Must not know: cases. The workflow asks `ascend-e2e matrix` for them each time it runs, so that a new case runs the next night.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TextIO

from ..errors import E2EError
from ..files import write_whole
from .collecting import add_tier, collect_tier

TEMPLATE = "workflow.template.yaml"
WORKFLOWS = Path(".github/workflows")
_INSTALL = ("python -m pip install pytest-ascend-e2e",)
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
# Least and most of the fields that GitHub reads (minute, hour, day, month, weekday), and the names of their values.
_CRON = ((0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, _MONTHS), (0, 6, _DAYS))
_CRON_PART = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?", re.ASCII)
_DIFFERENT = 1


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `workflow`."""
    parser = subparsers.add_parser(
        "workflow",
        help="write a GitHub workflow that runs a suite",
        description="Write a GitHub workflow: a plan without a device, one job for each runner, image and shard, and a summary "
        "that is red if a case did not report. It starts at a time of day, and by hand for one case.",
    )
    add_tier(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", help=f"the file (default: {_output('TIER')})")
    parser.add_argument("--name", metavar="TEXT", help="name of the workflow (default: by the tier)")
    parser.add_argument("--cron", default="0 17 * * *", metavar="CRON", help="when it starts, UTC (default: '0 17 * * *')")
    parser.add_argument("--python", default="3.11", metavar="VERSION", help="Python of the plan and the summary (default: 3.11)")
    parser.add_argument(
        "--plan-runner", default="ubuntu-latest", metavar="LABEL", help="where plan and summary run (default: ubuntu-latest)"
    )
    parser.add_argument(
        "--plan-install", action="append", metavar="COMMAND", help=f"installs for the plan; repeated (default: {_INSTALL[0]!r})"
    )
    parser.add_argument(
        "--install", action="append", metavar="COMMAND", help=f"installs in the image; repeated (default: {_INSTALL[0]!r})"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit status 1 if the file is not what would be written"
    )


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Write the workflow, or hold the file that is there against it; return 0, or 1 where `--check` finds another."""
    _refuse(args)
    collect_tier(args)  # a suite without a case would be red each night
    text = workflow_text(args)
    path: Path = args.output or _output(args.tier)
    before = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
    if before == text:
        stdout.write(f"{path}: unchanged\n")
        return 0
    if args.check:
        state = "is not there" if before is None else "is not what these arguments give"
        stderr.write(f"{path} {state}: run the command of its first line again\n")
        return _DIFFERENT
    write_whole(path, text)
    stdout.write(f"{path}: {'written' if before is None else 'changed'}\n")
    return 0


def workflow_text(args: argparse.Namespace) -> str:
    """Return the workflow for parsed arguments."""
    selection = [*args.paths, "--tier", args.tier]
    if args.runners_file is not None:
        selection += ["--runners-file", str(args.runners_file)]
    filled = {
        "COMMAND": _command(args),
        "NAME": _quoted(args.name or f"Ascend end-to-end, {args.tier}"),
        "CRON": _quoted(args.cron),
        "PYTHON": _quoted(args.python),
        "PLAN_RUNNER": _quoted(args.plan_runner),
        "PLAN_INSTALL": _lines(args.plan_install or _INSTALL),
        "INSTALL": _lines(args.install or _INSTALL),
        "SELECTION": shlex.join(selection),
        "RUNNERS_FILE": "" if args.runners_file is None else f" {shlex.quote(f'--e2e-runners-file={args.runners_file}')}",
    }
    text = resources.files(__package__).joinpath(TEMPLATE).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda match: filled[match[1]], text)


def _output(tier: str) -> Path:
    return WORKFLOWS / f"ascend_e2e_{tier.replace('-', '_')}.yml"


def _command(args: argparse.Namespace) -> str:
    """Return the command that writes this file, with what is not the default."""
    words = ["ascend-e2e", "workflow", *args.paths, "--tier", args.tier]
    defaults = {"output": None, "name": None, "cron": "0 17 * * *", "python": "3.11", "plan_runner": "ubuntu-latest"}
    for name, default in {"runners_file": None, **defaults}.items():
        if getattr(args, name) != default:
            words += [f"--{name.replace('_', '-')}", str(getattr(args, name))]
    for name in ("plan_install", "install"):
        for command in getattr(args, name) or ():
            words += [f"--{name.replace('_', '-')}", command]
    return shlex.join(words)


def _quoted(text: str) -> str:
    # YAML has no pairs of surrogates, by which JSON escapes what is beyond 16 bits.
    return json.dumps(text, ensure_ascii=False)


def _lines(commands: Sequence[str]) -> str:
    # The first line's indentation is that of all of them to YAML.
    return "\n".join(f"          {command.strip()}" for command in commands)


def _refuse(args: argparse.Namespace) -> None:
    texts = [
        args.name or "", args.python, args.plan_runner, *args.paths, *(args.plan_install or ()), *(args.install or ()),
        str(args.output), str(args.runners_file),
    ]  # fmt: skip
    problems = [
        f"{text!r} cannot stand in a workflow: expected one line of printable characters without ${{{{"
        for text in texts
        if not text.isprintable() or "${{" in text
    ]
    problems += [
        f"--{name}: {text!r} cannot be used: expected one such as {example!r}"
        for name, text, example in (("python", args.python, "3.11"), ("plan-runner", args.plan_runner, "ubuntu-latest"))
        if not text.strip()
    ]
    problems += [
        f"--{name}: {text!r} is no command: expected one such as {_INSTALL[0]!r}, or 'true' to install nothing"
        for name, texts in (("plan-install", args.plan_install), ("install", args.install))
        for text in texts or ()
        if not text.strip()
    ]
    problems += [
        f"{text!r} is not in the checkout that the workflow makes: expected a path from the root of the repository"
        for text in (*args.paths, *([] if args.runners_file is None else [str(args.runners_file)]))
        if Path(text).is_absolute() or ".." in Path(text).parts or not Path(text).resolve().is_relative_to(Path.cwd())
    ]
    here = Path.cwd()
    root = next((place for place in (here, *here.parents) if (place / ".git").exists()), here)
    if root != here:
        problems.append(f"{here} lies in the repository {root}: go there, since the workflow takes paths from its root")
    if not _is_cron(args.cron):
        problems.append(f"--cron: {args.cron!r} cannot be used: expected five fields such as '0 17 * * *' or '30 2 * * MON-FRI'")
    if problems:
        raise E2EError(*problems)


def _is_cron(text: str) -> bool:
    """Tell whether GitHub takes a text as a time: five fields of numbers, names, ranges, lists and steps."""
    fields = text.split(" ")
    return len(fields) == len(_CRON) and all(
        _is_cron_part(part, *limits) for field, limits in zip(fields, _CRON, strict=True) for part in field.split(",")
    )


def _is_cron_part(part: str, least: int, most: int, names: Sequence[str]) -> bool:
    found = _CRON_PART.fullmatch(part)
    if found is None or (found["step"] is not None and not 0 < int(found["step"]) <= most):
        return False
    values = {name: least + place for place, name in enumerate(names)}
    values |= {text: value for value in range(least, most + 1) for text in (str(value), f"{value:02}")}
    ends = [values.get(end.upper()) for end in (found["first"], found["last"]) if end]
    known = [end for end in ends if end is not None]
    return len(known) == len(ends) and sorted(known) == known
