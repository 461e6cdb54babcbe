"""What a plan says about one case: fits or not, layout, command and environment.

Must not know: how the plan was made.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence


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
