"""Why a case is red, as text: the one line first, then what happened, the failed checks, and how to repeat it.

Must not know: pytest. The text is plain, without colour, so that a terminal, a JUnit file and a mail show the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..deadline import format_duration
from ..records import Check, Ending, Kind, RunRecord, Verdict
from .tables import number, table

# So many failed checks are told one by one; a reader of more has one cause to find, not twenty.
MOST_SHOWN = 5


def headline(record: RunRecord) -> str:
    """Return the one line that says why a run is red; for a run that is not, the line that says so."""
    if record.ending is Ending.INTERRUPTED:
        # Whoever stopped it is the cause, whatever the log says of the stop.
        seen = record.diagnosis
        told = "" if seen is None or seen.kind is Kind.UNKNOWN else f"; its log tells of {seen.kind.value}: {seen.line}"
        return f"training {record.end_reason}{told}"
    if not record.is_completed:
        cause = record.end_reason
        if record.diagnosis is not None:
            whose = "infra" if record.diagnosis.infra else "product"
            cause = f"{record.diagnosis.kind.value} ({whose}): {record.diagnosis.line or record.end_reason}"
        return f"training failed: {cause}"
    failed = record.failed_checks
    unmade = [check.name for check in record.checks if check.verdict is Verdict.NOT_MADE]
    made = len(record.made_checks)
    if failed:
        first = failed[0]
        return f"{len(failed)} of {made} checks failed, first {first.name}: {first.message}"
    told = f"; too few steps for {', '.join(unmade)}" if unmade else ""
    return f"all {made} checks passed{told}"


def retried_line(record: RunRecord) -> str:
    """Return the line that tells of an attempt that another one replaced."""
    return f"{headline(record)}; {record.run_dir} repeated as {record.retried_as}"


def checks_table(checks: Sequence[Check]) -> list[str]:
    """Return the lines of the table of these checks: name, metric, value, limit, step, and below it each one's sentence."""
    lines = _rows(checks)
    for check in checks:
        lines.append(f"{check.name}: {check.message}")
        if check.origin:
            lines.append(f"  limit from: {check.origin}")
    return lines


def _rows(checks: Sequence[Check]) -> list[str]:
    rows = [
        (
            check.name,
            check.metric or "-",
            number(check.value),
            f"{check.comparison} {number(check.limit)}".strip() if check.limit is not None else "-",
            "-" if check.step is None else str(check.step),
        )
        for check in checks
    ]
    return table(("check", "metric", "value", "limit", "step"), rows, right=(2, 4))


def failure_text(record: RunRecord, *, log_lines: Sequence[str] = ()) -> str:
    """Return what a reader of a red case needs, in some ten lines, the one that says why first; `log_lines` are those that matter.

    The headline has the sentence of the first failed check; of many, the first few are shown and the rest counted.
    """
    lines = [headline(record)]
    if record.changed:
        lines.append(f"not the case as it stands, but one with {', '.join(record.changed)}")
    if record.diagnosis is not None and record.diagnosis.advice:
        lines.append(f"what to do: {record.diagnosis.advice}")
    lines.append(_end(record))
    lines += [f"  | {line}" for line in log_lines]
    lines += failed_lines(record)
    lines += [f"problem: {problem}" for problem in record.problems]
    return "\n".join([*lines, *_places(record)])


def beside_text(record: RunRecord) -> str:
    """Return what belongs beside the failure of a test that failed by itself while its run is sound: its end, place and repeat."""
    return "\n".join([_end(record), *_places(record)])


def _end(record: RunRecord) -> str:
    reached = "no step" if record.last_step is None else f"step {record.last_step}"
    return f"run: {record.end_reason} after {format_duration(record.duration_s)}, at {reached} of {record.steps}"


def _places(record: RunRecord) -> list[str]:
    return [f"log: {record.run_dir}/train.log", f"repeat: {record.rerun_command}"]


def failed_lines(record: RunRecord) -> list[str]:
    """Return the lines on the failed checks: the first few, as a table with the sentence of each but the headline's."""
    failed = record.failed_checks
    # Of a training that broke off, most checks fail for want of steps: what was measured is shown, the rest counted.
    telling = failed if record.is_completed else [check for check in failed if check.value is not None]
    shown, more = telling[:MOST_SHOWN], telling[MOST_SHOWN:]
    lines = []
    if shown:
        first, *others = shown
        lines += ["", *_rows(shown)]
        lines += [f"limit of {first.name} from: {first.origin}"] if first.origin else []
        lines += [f"{check.name}: {check.message}" for check in (others if record.is_completed else shown)]
        lines += [f"and {len(more)} more: {', '.join(check.name for check in more)} (see record.json)"] if more else []
        lines.append("")
    if len(failed) > len(telling):
        because = "because the training broke off (see record.json)"
        lines.append(f"{len(failed) - len(telling)} of {len(record.made_checks)} checks fail {because}")
    return lines
