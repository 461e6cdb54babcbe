"""The register of rules: what each says, where it comes from, what finds it. Every text of a rule ends with its id, `[M2]`.

Owns the reading of `rules.yaml` and its table for the docs. Must not know: how a rule is checked.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml


class Fails(enum.Enum):
    """What happens where a rule is broken and nobody looks."""

    DRIVER = "driver"  # verl's driver refuses the configuration, before a worker starts
    DEVICES = "devices"  # it ends on the devices, minutes later
    SILENT = "silent"  # nothing ends: a setting does nothing, or something else than it says


class Finder(enum.Enum):
    """What finds that a rule is broken."""

    RECIPE = "recipe"
    LAYOUT = "layout"
    BATCHES = "batches"
    MODEL = "model"
    CONFIGURATION = "configuration"
    ROLES = "roles"
    COMPOSITION = "composition"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One rule; `is_error` and `by` are None where nothing is checked, and `unchecked` says why."""

    id: str
    what: str
    source: str
    fails: Fails
    is_error: bool | None
    by: Finder | None
    unchecked: str = ""


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, in the order of the register."""
    text = resources.files(__package__).joinpath("rules.yaml").read_text(encoding="utf-8")
    return tuple(_rule(entry) for entry in yaml.safe_load(text))


def _rule(entry: Mapping[str, str]) -> Rule:
    severity, by = entry.get("severity"), entry.get("by")
    return Rule(
        id=entry["id"],
        what=entry["what"],
        source=entry["source"],
        fails=Fails(entry["fails"]),
        is_error=None if severity is None else {"error": True, "warning": False}[severity],
        by=None if by is None else Finder(by),
        unchecked=entry.get("unchecked", ""),
    )


def rules_table(rules: Sequence[Rule]) -> str:
    """Return a Markdown table of rules."""
    lines = ["| id | what must hold | today | here | source |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {rule.id} | {rule.what} | {_today(rule)} | {_here(rule)} | {rule.source} |" for rule in rules]
    return "\n".join(lines) + "\n"


def _today(rule: Rule) -> str:
    return {Fails.DRIVER: "verl's driver refuses it", Fails.DEVICES: "ends on the devices", Fails.SILENT: "silent"}[rule.fails]


def _here(rule: Rule) -> str:
    if rule.by is None:
        return f"not checked: {rule.unchecked}"
    return f"{'error' if rule.is_error else 'warning'}, {rule.by.value}"
