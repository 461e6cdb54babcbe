"""A new baseline from several runs of one case: refused unless they prove something, and compared with the old one.

Must not know: files. What stands in a baseline and what it means is known in `verdict/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import BaselineError
from ..records import Check, RunRecord
from ..verdict import FEWEST_RUNS, Baseline, Direction, figure, figure_of
from .existing import ExistingRun

# The five figures that the nightly jobs have always compared.
METRICS = (
    "perf/throughput",
    "timing_s/step",
    "actor/perf/max_memory_allocated_gb",
    "critic/rewards/mean",
    "training/rollout_probs_diff_mean",
)
# Of all baselines of a case together: one alarm in 500 runs like those of the baseline.
FALSE_ALARMS = 0.002
WARMUP_STEPS = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One metric of a new baseline beside the old one; `change` is new minus old in parts of the old, None where there is none."""

    metric: str
    old: Baseline | None
    new: Baseline | None

    @property
    def change(self) -> float | None:
        """How far the new value lies from the old one, with its sign, in parts of the old one."""
        if self.old is None or self.new is None or self.old.value == 0:
            return None
        return (self.new.value - self.old.value) / abs(self.old.value)

    @property
    def meaning(self) -> str:
        """What the change means for a reviewer: new, gone, within the old tolerance, better, worse, or different."""
        if self.old is None or self.new is None:
            return "new" if self.old is None else "gone"
        distance = self.new.value - self.old.value
        if abs(distance) <= self.old.tolerance:
            return "within the tolerance"
        if self.old.direction is Direction.TWO_SIDED:
            return "different"
        is_better = (distance > 0) is (self.old.direction is Direction.HIGHER_IS_BETTER)
        return "better: the old one is stale" if is_better else "worse"


def record_baseline(
    runs: Sequence[ExistingRun],
    *,
    metrics: Sequence[str] = METRICS,
    fewest_runs: int = FEWEST_RUNS,
    false_alarms: float = FALSE_ALARMS,
    image: str = "",
    reason: str = "",
    ceilings: Mapping[str, float] | None = None,
) -> dict[str, Baseline]:
    """Return the baselines by metric of the case that these runs trained.

    `false_alarms` is the wanted probability that any of the metrics alarms in one more run like these; the metrics share it.
    `image` is that of the runs whose records do not tell it; `ceilings` are values that none may pass, by metric.

    Raises:
        BaselineError: runs that failed, are too few, are not of one case, runner, commit, device and set of versions, or were made
            from a tree with changes; or a metric that is absent or not finite; all problems at once.
    """
    problems = _problems([run.record for run in runs], max(fewest_runs, FEWEST_RUNS))
    figures: dict[str, list[float]] = {}
    for key in metrics:
        for run in runs:
            series = figure_of(run.metrics, key, warmup=WARMUP_STEPS)
            if isinstance(series, Check):
                problems.append(f"run {run.record.run_id}: {series.message}")
            else:
                figures.setdefault(key, []).append(figure(series))
    if not metrics:
        problems.append("no metric to record: name at least one")
    given = ceilings or {}
    problems += [
        f"ceiling of {key}: it is not among the metrics to record: {', '.join(metrics)}" for key in given if key not in metrics
    ]
    if problems:
        raise BaselineError(*problems)
    record = runs[0].record
    return {
        key: Baseline.of_runs(
            key,
            values,
            date=max(run.record.started_at for run in runs)[:10],
            commit=record.commit,
            device=record.device,
            versions=record.versions,
            reason=reason,
            false_alarms=false_alarms / len(figures),
            ceiling=given.get(key),
            image=image or record.image,
            run_ids=[run.record.run_id for run in runs],
        )
        for key, values in figures.items()
    }


def changes(old: Mapping[str, Baseline], new: Mapping[str, Baseline]) -> tuple[Change, ...]:
    """Return old beside new for every metric of either, those of the new one first."""
    return tuple(Change(metric=key, old=old.get(key), new=new.get(key)) for key in {**new, **old})


def _problems(records: Sequence[RunRecord], fewest: int) -> list[str]:
    problems = []
    if len(records) < fewest:
        problems.append(f"{len(records)} runs are too few: a baseline is asked to rest on {fewest} or more")
    if len({record.run_id for record in records}) < len(records):
        problems.append("a run is given twice: each counts once")
    problems += [problem for record in records for problem in _problems_of_one(record)]
    for what, of in _MUST_AGREE:
        found = sorted({of(record) for record in records})
        if len(found) > 1:
            problems.append(f"the runs are of different {what}: {'; '.join(map(repr, found))}")
    return problems


def _problems_of_one(record: RunRecord) -> list[str]:
    failed = [check.name for check in record.failed_checks if not _needs_a_baseline(check)]
    why = ", ".join(failed) if record.is_completed else record.end_reason
    name = f"run {record.run_id}"
    found = (
        (not record.is_completed or bool(failed), f"{name} failed ({why}): a baseline holds what sound runs show"),
        (not record.checks, f"{name} was never judged: nothing says that it is sound"),
        (not record.commit, f"{name} has no commit: its cases lie in no git repository, so nothing tells what was run"),
        (record.is_dirty, f"{name} was made from a tree with changes: commit them and run again"),
        (bool(record.changed), f"{name} is not the case as it stands, but one with {', '.join(record.changed)}"),
        (not record.device, f"{name} has no device: it was made by an older version"),
    )
    return [text for is_so, text in found if is_so]


def _needs_a_baseline(check: Check) -> bool:
    """Tell whether a check failed for want of the very baseline that is being made, or against the old one."""
    return check.name == "throughput.no-limit" or check.name.startswith("baseline.")


def _text_of_versions(record: RunRecord) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(record.versions.items()))


_MUST_AGREE: tuple[tuple[str, Callable[[RunRecord], str]], ...] = (
    ("cases", lambda record: record.case),
    ("runners", lambda record: record.runner),
    ("devices", lambda record: record.device),
    ("commits", lambda record: record.commit),
    ("versions", _text_of_versions),
    ("images", lambda record: record.image),
    ("layouts", lambda record: record.layout),
    ("numbers of steps", lambda record: str(record.steps)),
)
