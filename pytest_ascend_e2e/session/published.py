"""The figures that were published for six upstream cases, as baselines that say what they are: one run, without spread.

Must not know: which of our cases they belong to; whoever imports them says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import BaselineError
from ..verdict import Baseline, Direction

_FILE = Path(__file__).with_name("published.yaml")


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedCase:
    """One upstream case: its short name, its title, the runner of its job, and its figures by metric."""

    name: str
    title: str
    runner: str
    values: Mapping[str, float]


def published_cases() -> tuple[PublishedCase, ...]:
    """Return the six cases whose figures were published."""
    return tuple(PublishedCase(name=name, **entry) for name, entry in _data()["cases"].items())


def published_baselines(name: str, *, device: str) -> dict[str, Baseline]:
    """Return the published figures of a case as baselines by metric; `device` is the chip of the runner they are used on.

    Raises:
        BaselineError: there is no case of this name.
    """
    data = _data()
    case = next((case for case in published_cases() if case.name == name), None)
    if case is None:
        known = ", ".join(case.name for case in published_cases())
        raise BaselineError(f"{name!r} is no published case: expected one of {known}")
    baselines = {}
    for metric, value in case.values.items():
        rule = data["tolerances"][metric]
        baselines[metric] = Baseline(
            metric=metric,
            value=value,
            spread=0.0,
            runs=1,
            direction=Direction(rule["direction"]),
            date=data["date"],
            commit="",
            device=device,
            published=f"{data['source']} ({case.title})",
            given_tolerance=rule["absolute"] if "absolute" in rule else rule["part"] * abs(value),
        )
    return baselines


def _data() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return data
