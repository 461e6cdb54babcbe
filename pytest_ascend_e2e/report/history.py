"""The history of a case as text: its runs, how often it flakes, and which figures drift.

Must not know: where the runs are kept. What a trend or a change is, is counted in `verdict/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from ..deadline import format_duration
from ..history import flake_rate
from ..records import Ending, RunRecord
from ..verdict import change_point, mann_kendall, runs_needed
from .tables import number, table

# What stands in a record's summary, by the heading of its column.
FIGURES: Mapping[str, str] = MappingProxyType(
    {
        "reward": "reward_last",
        "probs diff": "rollout_probs_diff_mean",
        "tokens/s": "tokens_per_s_per_device",
        "s/step": "step_time_s",
        "memory GB": "peak_memory_gb",
    }
)
# What a reader may take the columns of a history for.
COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "reward": "mean reward of the last step (critic/rewards/mean)",
        "probs diff": "difference of rollout and training probabilities, mean over the steps (training/rollout_probs_diff_mean)",
        "tokens/s": "of one device, median of the steps after the first (perf/throughput)",
        "s/step": "seconds, median of the steps after the first (timing_s/step)",
        "memory GB": "peak of a training process (actor/perf/max_memory_allocated_gb)",
        "commit": "that of the cases; + where files differed from it",
    }
)
DOUBT = 0.01
_FEWEST = 5


def history_text(records: Sequence[RunRecord], *, last: int = 20) -> list[str]:
    """Return the lines for the runs of one case on one runner, oldest first: a table of the last ones, then what all show."""
    lines = table(
        ("started", "run", "verdict", "duration", *FIGURES, "commit"),
        [
            (
                record.started_at[:16],
                record.run_id.rpartition("-")[2],
                verdict_text(record),
                format_duration(record.duration_s),
                *(number(record.summary.get(key)) for key in FIGURES.values()),
                commit_text(record),
            )
            for record in records[-last:]
        ],
        right=tuple(range(3, 4 + len(FIGURES))),
    )
    if len(records) > last:
        lines.insert(0, f"the last {last} of {len(records)} runs")
    return [*lines, "", *summary_lines(records)]


def summary_lines(records: Sequence[RunRecord]) -> Iterator[str]:
    """Yield one line for the flakes, and one for each figure that has values enough: its trend and its change over the runs."""
    flakes = flake_rate(records)
    yield (
        f"flake rate: {flakes.rate:.1%} ({flakes.flaky} of {_counted(flakes.runs)} failed where the same commit and versions "
        f"passed; {flakes.failed} failed in all, {flakes.infra} of them by the machine)"
    )
    if flakes.interrupted:
        yield f"interrupted: {flakes.interrupted} more, which count as neither"
    passed = [record for record in records if record.is_passed]
    if len(passed) < _FEWEST:
        yield f"trends: they need {_FEWEST} runs that passed, and {_counted(len(passed))} did"
        return
    for name, key in FIGURES.items():
        found = [(record, record.summary[key]) for record in passed if key in record.summary]
        if len(found) < _FEWEST:
            yield f"{name}: a trend needs {_FEWEST} runs that passed and have it; {_counted(len(found))} of {len(passed)}"
        else:
            yield f"{name}: {_drift([record for record, _ in found], [value for _, value in found])}"


def commit_text(record: RunRecord) -> str:
    """Return the commit of a run in a few letters, with a plus where files differed from it."""
    return f"{record.commit[:8]}{'+' if record.is_dirty else ''}" if record.commit else "-"


def _counted(runs: int) -> str:
    return f"{runs} run" if runs == 1 else f"{runs} runs"


def verdict_text(record: RunRecord) -> str:
    """Return the verdict of a run in a few words: what failed first, or the kind of its diagnosis."""
    if record.is_passed:
        return "passed"
    if record.ending is Ending.INTERRUPTED:
        return record.end_reason
    if record.diagnosis is not None:
        return f"failed: {record.diagnosis.kind.value}"
    return next((f"failed: {check.name}" for check in record.failed_checks), "failed")


def _drift(records: Sequence[RunRecord], values: Sequence[float]) -> str:
    test = mann_kendall(range(len(values)), values)
    change = change_point(values)
    doubt = min(1.0, 2 * min(test.p_rise, test.p_fall))
    trend = "no trend"
    if doubt <= DOUBT:
        trend = f"{'rises' if test.slope > 0 else 'falls'}, {test.slope:+.3g} a run"
    text = f"{trend} (p = {doubt:.2g}), "
    if change.doubt <= DOUBT:
        record = records[change.index]
        part = f", {(change.after - change.before) / abs(change.before):+.1%}" if change.before else ""
        where = f"{record.started_at[:10]}, commit {record.commit[:8] or 'unknown'}"
        return text + f"changed with run {record.run_id} of {where}: {change.before:.4g} -> {change.after:.4g}{part}"
    more = f"; {runs_needed(DOUBT)} runs show one in their middle" if len(values) < runs_needed(DOUBT) else ""
    return text + f"no change (p = {change.doubt:.2g}{more})"
