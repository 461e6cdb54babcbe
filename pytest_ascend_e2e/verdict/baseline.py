"""Baselines: what a case showed on a kind of machine before, with spread, direction and provenance.

Must not know where a baseline is kept: it takes and gives plain mappings, as a YAML file holds them. A value that is better never
fails; one that is far better says that the baseline is stale.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from ..errors import BaselineError
from ..metrics import Metrics, MetricSeries, shown_steps
from ..records import Check
from .blocks import after_warmup
from .limits import Limit, failed, judged

# A spread of two runs says next to nothing: its 99 % limit lies 39 spreads away.
FEWEST_RUNS = 3

# Quantiles 0.99 of Student's t by degrees of freedom; between two of them, the one of fewer degrees counts.
_STUDENT = ((2, 6.965), (3, 4.541), (4, 3.747), (5, 3.365), (6, 3.143), (7, 2.998), (8, 2.896), (9, 2.821), (10, 2.764))
_STUDENT_MORE = ((12, 2.681), (15, 2.602), (20, 2.528), (30, 2.457), (60, 2.390), (120, 2.358))

_FIELDS = ("value", "spread", "runs", "direction", "date", "commit", "device", "versions", "floor", "reason")


class Direction(enum.Enum):
    """Which side of a baseline is a regression."""

    HIGHER_IS_BETTER = "higher-is-better"
    LOWER_IS_BETTER = "lower-is-better"
    TWO_SIDED = "two-sided"


_DIRECTIONS: tuple[tuple[str, Direction], ...] = (
    ("perf/throughput", Direction.HIGHER_IS_BETTER),
    ("perf/mfu/*", Direction.HIGHER_IS_BETTER),
    ("critic/rewards/*", Direction.HIGHER_IS_BETTER),
    ("critic/score/*", Direction.HIGHER_IS_BETTER),
    ("val-core/*", Direction.HIGHER_IS_BETTER),
    ("training/rollout_actor_probs_pearson_corr", Direction.HIGHER_IS_BETTER),
    ("training/rollout_probs_diff_*", Direction.LOWER_IS_BETTER),
    ("timing_s/*", Direction.LOWER_IS_BETTER),
    ("timing_per_token_ms/*", Direction.LOWER_IS_BETTER),
    ("perf/time_per_step", Direction.LOWER_IS_BETTER),
    ("*/perf/max_memory_*", Direction.LOWER_IS_BETTER),
    ("*/perf/cpu_memory_*", Direction.LOWER_IS_BETTER),
)


def direction_of(key: str) -> Direction:
    """Return the direction of a metric of verl; two-sided where neither side is known to be better."""
    return next((direction for pattern, direction in _DIRECTIONS if fnmatchcase(key, pattern)), Direction.TWO_SIDED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """What one metric showed before.

    `value` is the median and `spread` the standard deviation of the figures of `runs` runs; `floor` is the part of the value that
    no spread makes the tolerance smaller than; `versions` are installed versions by distribution name.
    """

    metric: str
    value: float
    spread: float
    runs: int
    direction: Direction
    date: str
    commit: str
    device: str
    versions: Mapping[str, str] = field(default_factory=dict)
    floor: float = 0.02
    reason: str = ""

    def __post_init__(self) -> None:
        problems = [*_number_problems(self)]
        problems += [
            f"{self.metric}: {name} is empty: a baseline needs it"
            for name in ("date", "commit", "device")
            if not getattr(self, name)
        ]
        if not self.versions:
            problems.append(f"{self.metric}: versions is empty: a baseline needs the installed versions it was taken with")
        if problems:
            raise BaselineError(*problems)

    @classmethod
    def of_runs(
        cls,
        metric: str,
        figures: Sequence[float],
        *,
        date: str,
        commit: str,
        device: str,
        versions: Mapping[str, str],
        direction: Direction | None = None,
        reason: str = "",
    ) -> Baseline:
        """Return the baseline of a metric from its figure in each of several runs."""
        if len(figures) < FEWEST_RUNS or not all(map(math.isfinite, figures)):
            raise BaselineError(
                f"{metric}: {list(figures)!r} give no baseline: expected finite figures of {FEWEST_RUNS} runs or more"
            )
        return cls(
            metric=metric,
            value=statistics.median(figures),
            spread=statistics.stdev(figures),
            runs=len(figures),
            direction=direction or direction_of(metric),
            date=date,
            commit=commit,
            device=device,
            versions=dict(versions),
            reason=reason,
        )

    @property
    def tolerance(self) -> float:
        """How far one more run may lie from the value: the 99 % prediction limit of `runs` runs, at least `floor` of the value."""
        return max(_student(self.runs - 1) * self.spread * math.sqrt(1 + 1 / self.runs), self.floor * abs(self.value))

    @property
    def origin(self) -> str:
        """Where the limits come from, for a reader of a failure."""
        return (
            f"baseline {self.value:.6g} of {self.date}, commit {self.commit}, {self.device}, {self.runs} runs with spread "
            f"{self.spread:.3g}, {self.direction.value}, tolerance {self.tolerance:.3g}"
        )

    def changes(self, versions: Mapping[str, str]) -> tuple[str, ...]:
        """Return the versions that differ from those of the baseline: `vllm 0.11.0 -> 0.11.2`."""
        names = sorted({*self.versions, *versions})
        pairs = [(name, self.versions.get(name, "none"), versions.get(name, "none")) for name in names]
        return tuple(f"{name} {before} -> {now}" for name, before, now in pairs if before != now)

    def to_mapping(self) -> dict[str, object]:
        """Return the baseline as plain data, which `parse_baselines` takes as the entry of its metric."""
        return {
            "value": self.value,
            "spread": self.spread,
            "runs": self.runs,
            "direction": self.direction.value,
            "date": self.date,
            "commit": self.commit,
            "device": self.device,
            "versions": dict(self.versions),
            "floor": self.floor,
            "reason": self.reason,
        }


def parse_baselines(data: Any, *, origin: str) -> dict[str, Baseline]:
    """Return the baselines by metric from `{date, commit, device, versions, runs, metrics: {key: {value, spread, direction}}}`.

    What stands beside `metrics` holds for every metric that does not say otherwise. `origin` names the file in an error.

    Raises:
        BaselineError: all problems of the mapping at once.
    """
    entries = data.get("metrics") if isinstance(data, Mapping) else None
    if not isinstance(entries, Mapping) or not entries:
        raise BaselineError(f"{origin}: no baselines: expected a mapping with metrics: {{key: {{value, spread, direction, ...}}}}")
    common = {key: value for key, value in data.items() if key != "metrics"}
    problems = [f"{origin}: {key!r} is no field of a baseline; known: {', '.join(_FIELDS)}" for key in common if key not in _FIELDS]
    parsed: dict[str, Baseline] = {}
    for metric, entry in entries.items():
        if not isinstance(entry, Mapping):
            problems.append(f"{origin}: {metric}: {entry!r} is no baseline: expected a mapping")
            continue
        try:
            parsed[str(metric)] = _parse_entry(str(metric), {**{k: v for k, v in common.items() if k in _FIELDS}, **entry})
        except BaselineError as error:
            problems.extend(f"{origin}: {problem}" for problem in error.problems)
    if problems:
        raise BaselineError(*problems)
    return parsed


def figure_of(metrics: Metrics, key: str, *, warmup: int, name: str = "") -> MetricSeries | Check:
    """Return the values of which a baseline takes one figure: the median, or the maximum of a peak (see `figure`)."""
    # A peak of memory counts from the start of the process: no step of it is a warm-up.
    return after_warmup(metrics, key, warmup=0 if _is_peak(key) else warmup, name=name or f"baseline.{key}")


def figure(series: MetricSeries) -> float:
    """Return the one figure of a series that is held against a baseline: its median, or the maximum of a peak of memory."""
    return series.max() if _is_peak(series.name) else series.median()


def check_baseline(
    metrics: Metrics,
    baselines: Mapping[str, Baseline],
    *,
    warmup: int = 1,
    device: str = "",
    versions: Mapping[str, str] | None = None,
) -> tuple[Check, ...]:
    """Check the figure of each metric that has a baseline: within the tolerance on the side that is a regression.

    `device` and `versions` are those of this run: another device fails, as nothing can be said; other versions are named.
    """
    if not baselines:
        return (failed("baseline.none", "there is no baseline to check against: record one from three runs or more"),)
    checks: list[Check] = []
    for key, baseline in baselines.items():
        name = f"baseline.{key}"
        series = figure_of(metrics, key, warmup=warmup, name=name)
        if isinstance(series, Check):
            checks.append(series)
        elif device and device != baseline.device:
            checks.append(failed(name, f"{key}: the baseline is of {baseline.device!r}, the run of {device!r}", metric=key))
        else:
            checks.append(_held_against(series, baseline, name, versions))
    return tuple(checks)


def _held_against(series: MetricSeries, baseline: Baseline, name: str, versions: Mapping[str, str] | None) -> Check:
    value = figure(series)
    low = Limit(comparison=">=", value=baseline.value - baseline.tolerance, origin=baseline.origin)
    high = Limit(comparison="<=", value=baseline.value + baseline.tolerance, origin=baseline.origin)
    is_better = False
    if baseline.direction is Direction.HIGHER_IS_BETTER:
        limit, is_better = low, value > high.value
    elif baseline.direction is Direction.LOWER_IS_BETTER:
        limit, is_better = high, value < low.value
    else:
        limit = low if value < baseline.value else high
    statistic = "maximum" if _is_peak(series.name) else "median"
    check = judged(name, value, limit, what=f"{series.name}, {statistic} of steps {shown_steps(series.steps)},", metric=series.name)
    notes = [check.message]
    if is_better:
        notes.append(
            f"better than the baseline {baseline.value:.6g} by more than its tolerance: the baseline is stale, record a new one"
        )
    if check.is_failed and versions is not None:
        notes.append(f"changed since the baseline: {', '.join(baseline.changes(versions)) or 'no version'}")
    return _with_message(check, "; ".join(notes))


def _with_message(check: Check, message: str) -> Check:
    return dataclasses.replace(check, message=message)


def _is_peak(key: str) -> bool:
    return "/max_memory_" in key


def _student(freedom: int) -> float:
    return next(value for least, value in reversed((*_STUDENT, *_STUDENT_MORE)) if freedom >= least)


def _number_problems(baseline: Baseline) -> list[str]:
    problems = []
    metric = baseline.metric
    if not math.isfinite(baseline.value):
        problems.append(f"{metric}: value {baseline.value!r} cannot be used: expected a finite number")
    if not (math.isfinite(baseline.spread) and baseline.spread >= 0):
        problems.append(
            f"{metric}: spread {baseline.spread!r} cannot be used: expected the standard deviation over runs, 0 or more"
        )
    if not (math.isfinite(baseline.floor) and 0 <= baseline.floor < 1):
        problems.append(f"{metric}: floor {baseline.floor!r} cannot be used: expected a part of the value, such as 0.02")
    if baseline.runs < FEWEST_RUNS:
        needed = f"a baseline rests on {FEWEST_RUNS} runs or more, as one run shows no spread"
        problems.append(f"{metric}: runs {baseline.runs!r} cannot be used: {needed}")
    return problems


def _parse_entry(metric: str, entry: Mapping[str, Any]) -> Baseline:
    problems = [f"{metric}: {key!r} is no field of a baseline; known: {', '.join(_FIELDS)}" for key in entry if key not in _FIELDS]
    needed = ("value", "spread", "runs", "direction", "date", "commit", "device", "versions")
    problems += [f"{metric}: {key} is missing" for key in needed if entry.get(key) is None]
    for key in ("value", "spread", "floor"):
        value = entry.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            problems.append(f"{metric}: {key} {value!r} cannot be used: expected a number")
    runs = entry.get("runs")
    if runs is not None and (isinstance(runs, bool) or not isinstance(runs, int)):
        problems.append(f"{metric}: runs {runs!r} cannot be used: expected the number of runs")
    accepted = [direction.value for direction in Direction]
    if entry.get("direction") is not None and entry["direction"] not in accepted:
        problems.append(f"{metric}: direction {entry['direction']!r} cannot be used: expected one of {', '.join(accepted)}")
    versions = entry.get("versions")
    if versions is not None and not isinstance(versions, Mapping):
        problems.append(f"{metric}: versions {versions!r} cannot be used: expected a mapping from name to version")
    if problems:
        raise BaselineError(*problems)
    return Baseline(
        metric=metric,
        value=float(entry["value"]),
        spread=float(entry["spread"]),
        runs=entry["runs"],
        direction=Direction(entry["direction"]),
        date=str(entry["date"]),
        commit=str(entry["commit"]),
        device=str(entry["device"]),
        versions={str(name): str(version) for name, version in entry["versions"].items()},
        floor=float(entry.get("floor", 0.02)),
        reason=str(entry.get("reason", "")),
    )
