"""What a plan says about one case: fits or not, layout, command and environment.

Must not know: how the plan was made.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..nodeids import parts_of
from .tables import table


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRow:
    """One line of the table of a plan, and what speaks against the case.

    `hours` is how long the case is expected to hold its devices, 0 where nobody says; `is_measured` tells that its last green runs
    say so, not its marker.
    """

    case: str
    runner: str
    devices: int
    nodes: int
    hours: float
    layout: str
    verdict: str
    is_composed: bool
    is_measured: bool = False
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Return it as one text, as it travels with a report."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> PlanRow:
        """Read back what `to_text` wrote."""
        return cls.of(json.loads(text))

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> PlanRow:
        """Return the row of these fields, whose lists came through JSON."""
        return cls(**{**fields, "problems": tuple(fields["problems"]), "warnings": tuple(fields["warnings"])})


def plan_table(rows: Sequence[PlanRow], *, budget_device_hours: float | None) -> list[str]:
    """Return the table of a plan, and below it what the cases would cost and whether verl composed them."""
    header = ("case", "runner", "devices", "nodes", "hours", "layout", "verdict")
    cells = [
        (
            _without_directory(row.case),
            row.runner,
            str(row.devices),
            str(row.nodes),
            f"{row.hours:.2g}" if row.hours else "-",
            row.layout,
            row.verdict,
        )
        for row in rows
    ]
    lines = table(header, cells, right=(2, 3, 4))
    lines.append("")
    cost = device_hours(rows)
    unknown = sum(not row.hours for row in rows)
    budget = "" if budget_device_hours is None else f" of a budget of {budget_device_hours:g}"
    left_out = f"; {unknown} without an estimate" if unknown else ""
    measured = sum(row.is_measured for row in rows)
    known = f"; {measured} from the history" if measured else ""
    lines.append(f"estimated device-hours: {cost:.4g}{budget}{left_out}{known}")
    unchecked = sum(not row.is_composed for row in rows)
    if unchecked:
        lines.append(f"composition was not checked for {unchecked} of {len(rows)}: verl is not installed here")
    return lines


def _without_directory(nodeid: str) -> str:
    path, *names = parts_of(nodeid)
    return "::".join([path.rpartition("/")[2], *names])


def device_hours(rows: Sequence[PlanRow]) -> float:
    """Return what the cases cost; of a case that may run on several runners, what the dearest costs."""
    costs: dict[str, float] = {}
    for row in rows:
        costs[row.case] = max(costs.get(row.case, 0.0), row.devices * row.hours)
    return sum(costs.values())


def plan_text(  # noqa: PLR0913  # a plan has as many parts
    case: str,
    *,
    runner: str,
    devices: int,
    nodes: int,
    layout: str | None,
    problems: Sequence[str],
    warnings: Sequence[str],
    composed: bool | None,
    argv: Sequence[str],
    environment: Mapping[str, str],
) -> str:
    """Return the lines of one case in a plan, the verdict first."""
    verdict = "can work" if not problems else "cannot work"
    lines = [f"{case} on {runner} ({devices * nodes} devices, {nodes} node{'s' if nodes > 1 else ''}): {verdict}"]
    if layout is not None:
        lines.append(f"  layout: {layout}")
    lines += [f"  problem: {problem}" for problem in problems]
    lines += [f"  warning: {warning}" for warning in warnings]
    if composed is None:
        lines.append("  composition: not checked, verl is not installed here")
    elif composed:
        lines.append("  composition: accepted by verl's own configuration")
    if argv:
        lines.append("  command:")
        lines += [f"    {shlex.quote(argument)}" for argument in argv]
    if environment:
        lines.append("  environment:")
        lines += [f"    {name}={shlex.quote(value)}" for name, value in sorted(environment.items())]
    return "\n".join(lines)
