"""Writes docs/reference.md from the code: settings, markers, fixtures, checks, recipes and commands.

`python -m tools.reference` writes the page; a test fails where it is not what the code says.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from pytest_ascend_e2e import recipe as recipes
from pytest_ascend_e2e.cli import build_parser
from pytest_ascend_e2e.plugin import fixtures
from pytest_ascend_e2e.plugin.markers import npu_nightly, quarantine
from pytest_ascend_e2e.plugin.options import CONFIRM_HELP, ELSEWHERE_HELP, KEEP_HELP, OPTIONS, PLAN_HELP
from pytest_ascend_e2e.session import Run

PAGE = Path(__file__).parent.parent / "docs" / "reference.md"
_PARTS = (
    *("Recipe", "SFT", "GRPO", "GSPO", "DAPO", "PPO"),
    *("FSDP", "FSDP2", "FSDPTurbo", "Megatron", "VeOmni", "Vllm", "Sglang", "Lora", "Profiling", "SeparateAsync"),
)
_FIXTURES = ("run", "train", "npus", "layout", "model_path", "geometry3k", "gsm8k")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the whole page."""
    sections = (_settings(), _markers(), _fixtures(), _checks(), _recipes(), _commands())
    lines = ["# Reference", "", "Written by `python -m tools.reference` from the code.", ""]
    return "\n".join([*lines, *(line for section in sections for line in section)]).rstrip() + "\n"


def _settings() -> Iterator[str]:
    yield from (
        "## Settings",
        "",
        "A marker's argument stands above the flag, the flag above the variable, the variable above the ini key.",
        "",
        "A relative path in the ini file is from the directory of that file, a relative default from the session's root directory.",
        "",
    )
    rows = [
        (
            f"`{option.flag} {option.metavar}`",
            f"`{option.variable}`",
            f"`{option.ini}`",
            _default(option.default, option.name),
            option.help,
        )
        for option in OPTIONS
    ]
    switches = {"plan": PLAN_HELP, "confirm": CONFIRM_HELP, "elsewhere": ELSEWHERE_HELP, "keep": KEEP_HELP}
    rows += [(f"`--e2e-{name}`", "", "", "", text) for name, text in switches.items()]
    yield from _table(("flag", "variable", "ini key", "default", "meaning"), rows)


def _default(value: str | None, name: str) -> str:
    # The interpreter is another one on each machine.
    return "" if value is None else "this interpreter" if name == "python" else f"`{value}`"


def _markers() -> Iterator[str]:
    yield from ("## Markers", "")
    yield "`@npu_nightly(...)` and `@npu_e2e(...)` (the pull-request tier), or `@pytest.mark.` and the same, take these by name:"
    yield ""
    yield from _table(("argument", "meaning"), _documented(npu_nightly))
    yield from ("`@quarantine(...)` beside it switches a case off until a day:", "")
    yield from _table(("argument", "meaning"), _documented(quarantine))


def _documented(function: Callable[..., object]) -> list[tuple[str, str]]:
    text = (inspect.getdoc(function) or "").partition("Args:\n")[2]
    found = re.findall(r"^ +(\*{0,2}\w+): (.*(?:\n {8,}.*)*)", text, re.MULTILINE)
    return [(f"`{name}`", " ".join(meaning.split())) for name, meaning in found if not name.startswith("*")]


def _fixtures() -> Iterator[str]:
    yield from ("## Fixtures", "")
    yield from _table(("fixture", "what it gives"), [(f"`{name}`", _sentence(getattr(fixtures, name))) for name in _FIXTURES])


def _checks() -> Iterator[str]:
    yield from (
        "## Checks",
        "",
        "Methods of `run`; their limits and where these come from: [Checks and their limits](checks.md).",
        "",
    )
    methods = [(name, method) for name, method in vars(Run).items() if name.startswith("check_") or name == "same_as"]
    for name, method in methods:
        yield from (f"### `run.{name}{_signature(method)}`", "", inspect.getdoc(method) or "", "")


def _signature(method: Callable[..., object]) -> str:
    given = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in inspect.signature(method).parameters.items()
        if name != "self"
    ]
    return str(inspect.Signature(given))


def _recipes() -> Iterator[str]:
    yield from ("## Recipes", "", "Fields have verl's own names; a field that is left out has the default shown.", "")
    for name in _PARTS:
        kind: Any = getattr(recipes, name)
        yield from (f"### `{name}`", "", inspect.getdoc(kind) or "", "")
        yield from _table(
            ("field", "type", "default"), [(f"`{one.name}`", f"`{one.type}`".replace("|", "\\|"), _of(one)) for one in fields(kind)]
        )


def _of(one: Field[Any]) -> str:
    if one.default is not MISSING:
        return f"`{one.default!r}`"
    return f"`{one.default_factory()!r}`" if one.default_factory is not MISSING else "required"


def _commands() -> Iterator[str]:
    yield from ("## Commands", "")
    parser = build_parser()
    for name, command in _choices(parser):
        yield from (f"### `ascend-e2e {name}`", "", command.description or "", "")
        for inner, action in [("", command), *_choices(command)]:
            if inner:
                yield from (f"`ascend-e2e {name} {inner}`: {action.description or ''}", "")
            yield from _table(("argument", "meaning"), list(_arguments(action)))
        yield from ("```text", *(command.epilog or "").splitlines(), "```", "")


def _choices(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001  # no other way
    return [pair for group in groups for pair in group.choices.items()]


def _arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in parser._actions:  # noqa: SLF001  # argparse has no other way to walk a parser
        if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)):  # noqa: SLF001  # as above
            continue
        value = (
            ""
            if action.nargs == 0
            else action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest)
        )
        name = f"{', '.join(action.option_strings)} {value}".strip()
        yield f"`{name}`".replace("|", "\\|"), (action.help or "").replace("%%", "%").replace(str(Path.home()), "~")


def _sentence(documented: object) -> str:
    return (inspect.getdoc(documented) or "").partition("\n\n")[0].replace("\n", " ")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    listed = list(rows)
    if not listed:
        return
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    # Outside of code, a word in angle brackets would be taken for HTML.
    yield from (f"| {' | '.join(cell if '`' in cell else cell.replace('<', '&lt;') for cell in row)} |" for row in listed)
    yield ""


if __name__ == "__main__":
    main()
