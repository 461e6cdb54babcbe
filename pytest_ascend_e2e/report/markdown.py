"""The summary of a session or a workflow as Markdown, for the page of a CI's job: a line a case, then why a red one is red.

Must not know: where it is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ..deadline import format_duration
from ..nodeids import own_name
from .plan import PlanRow, device_hours
from .reported import Outcome, ReportedCase, address_of

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
    lines = [f"## {_plain(title)}", "", told, "", *_problems(problems)]
    # What was skipped because it belongs to another runner says nothing here.
    shown = [case for case in cases if "run_dir" in case.properties or case.outcome.is_red]
    if shown:
        lines += [*_table(("case", "result", *(name for name, _, _ in _FIGURES), "time"), [_row(case) for case in shown]), ""]
    lines += _reasons([_reason(case) for case in shown if case.outcome.is_red])
    return "\n".join(lines).rstrip() + "\n"


def plan_markdown(rows: Sequence[PlanRow], *, cases: Sequence[ReportedCase] = (), problems: Sequence[str] = ()) -> str:
    """Return the page of a plan: which cases can work where, what they are expected to cost, and why it is red.

    Of `cases`, those that are red for another reason than their plan are told too.
    """
    broken = [row for row in rows if row.problems]
    told = {address_of(row.case) for row in broken}
    others = [case for case in cases if case.outcome.is_red and case.address not in told]
    lines = ["## Plan", "", *_problems(problems)]
    if rows:
        lines += [*_plan_table(rows), ""]
    lines += [f"estimated device-hours: {device_hours(rows):.4g}; no device was taken", ""]
    lines += _reasons([*map(_cannot_work, broken), *map(_reason, others)])
    return "\n".join(lines).rstrip() + "\n"


def _plan_table(rows: Sequence[PlanRow]) -> list[str]:
    cells = [
        (
            f"`{_cell(row.case)}`",
            row.runner,
            str(row.devices),
            f"{row.hours:.2g}" if row.hours else "-",
            _cell(row.layout),
            ("❌ " if row.verdict.startswith("cannot") else "✅ ") + _cell(row.verdict),
        )
        for row in rows
    ]
    return _table(("case", "runner", "devices", "hours", "layout", "verdict"), cells)


def _problems(problems: Sequence[str]) -> list[str]:
    return [*(f"- ⛔ {_plain(problem)}" for problem in problems), ""] if problems else []


def _reasons(reasons: Sequence[Iterable[str]]) -> Iterator[str]:
    for reason in reasons[:_MOST_TOLD]:
        yield from reason
    if len(reasons) > _MOST_TOLD:
        yield f"and {len(reasons) - _MOST_TOLD} more; the JUnit file has all"


def _cannot_work(row: PlanRow) -> Iterator[str]:
    yield f"**`{own_name(row.case)}`** on {_plain(row.runner)} cannot work:"
    yield ""
    yield from (f"- {_plain(problem)}" for problem in row.problems)
    yield ""


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
