"""The summary of a session or a workflow as Markdown, for the page of a CI's job: a line a case, then why a red one is red.

Must not know: where it is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..deadline import format_duration
from .plan import PlanRow, device_hours
from .reported import Outcome, ReportedCase

# The page of a job takes a megabyte; of more than these, the JUnit file and the reports tell.
_MOST_TOLD = 50
_LONGEST = 500

_MARKS = {
    Outcome.PASSED: "✅ passed",
    Outcome.SKIPPED: "⏭️ skipped",
    Outcome.XFAILED: "✅ failed as expected",
    Outcome.UNFINISHED: "⛔ unfinished",
    Outcome.ERROR: "⛔ error",
    Outcome.FAILED: "❌ failed",
}
# Heading, property of the case, digits.
_FIGURES = (
    ("runner", "runner", None),
    ("steps", "last_step", None),
    ("reward", "reward_last", 3),
    ("probs diff", "rollout_probs_diff_mean", 2),
    ("tokens/s per device", "tokens_per_s_per_device", 4),
    ("s/step", "step_time_s", 3),
    ("GB", "peak_memory_gb", 3),
)


def summary_markdown(cases: Sequence[ReportedCase], *, title: str, problems: Sequence[str] = ()) -> str:
    """Return the page: counts, a table of the cases that trained or are red, and each red one's reason and repeat command."""
    counts = Counter(case.outcome for case in cases)
    told = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in reversed(Outcome) if counts[outcome]) or "no test"
    lines = [f"## {_plain(title)}", "", told, ""]
    lines += _problems(problems)
    # What was skipped because it belongs to another runner says nothing here.
    shown = [case for case in cases if "run_dir" in case.properties or case.outcome.is_red]
    if shown:
        lines += [*_table(("case", "result", *(name for name, _, _ in _FIGURES), "time"), [_row(case) for case in shown]), ""]
    red = [case for case in shown if case.outcome.is_red]
    lines += [line for case in red[:_MOST_TOLD] for line in _reason(case)]
    if len(red) > _MOST_TOLD:
        lines.append(f"and {len(red) - _MOST_TOLD} more; the JUnit file has all")
    return "\n".join(lines).rstrip() + "\n"


def plan_markdown(rows: Sequence[PlanRow], *, problems: Sequence[str] = ()) -> str:
    """Return the page of a plan: which cases can work where, what they are expected to cost, and what else makes it red."""
    cells = [
        (
            f"`{row.case}`",
            row.runner,
            str(row.devices),
            f"{row.hours:.2g}" if row.hours else "-",
            _cell(row.layout),
            ("❌ " if row.verdict.startswith("cannot") else "✅ ") + _cell(row.verdict),
        )
        for row in rows
    ]
    head = ("case", "runner", "devices", "hours", "layout", "verdict")
    return "\n".join(
        [
            "## Plan",
            "",
            *_problems(problems),
            *_table(head, cells),
            "",
            f"estimated device-hours: {device_hours(rows):.4g}; no device was taken",
            "",
        ]
    )


def _problems(problems: Sequence[str]) -> list[str]:
    return [*(f"- ⛔ {_plain(problem)}" for problem in problems), ""] if problems else []


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _row(case: ReportedCase) -> list[str]:
    figures = [_figure(case.properties.get(key, "-"), digits) for _, key, digits in _FIGURES]
    return [f"`{_cell(case.name)}`", _MARKS[case.outcome], *figures, format_duration(case.time_s)]


def _figure(text: str, digits: int | None) -> str:
    if digits is None:
        return _cell(text)
    try:
        return f"{float(text):.{digits}g}"
    except ValueError:
        return "-" if text == "absent" else _cell(text)


def _reason(case: ReportedCase) -> Iterator[str]:
    yield f"**`{case.name}`**: {_plain(case.message)}"
    yield ""
    changed = case.properties.get("changed", "nothing")
    if changed != "nothing":
        yield f"- with changes: `{changed}`"
    if "run_dir" in case.properties:
        yield f"- run: `{case.properties['run_dir']}`"
    if "repeat" in case.properties:
        yield f"- repeat: `{case.properties['repeat']}`"
    yield ""


def _plain(text: str) -> str:
    """Return a text as Markdown that shows it as it is, on one line."""
    short = " ".join(text.split())
    short = short if len(short) <= _LONGEST else f"{short[:_LONGEST]}…"
    return "".join(f"\\{letter}" if letter in "\\`*_<>[]#|" else letter for letter in short)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
