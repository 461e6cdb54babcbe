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

from ..errors import BaselineError
from ..metrics import Metrics, MetricSeries
from ..records import Check
from .blocks import after_warmup, over
from .limits import Limit, failed, judged
from .student import upper_quantile

# A spread of two runs says next to nothing: its 99 % limit lies 39 spreads away.
FEWEST_RUNS = 3

# One more run like those of the baseline fails once in this many runs, if nothing else is said.
FALSE_ALARMS = 0.01


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
    no spread makes the tolerance smaller than; `versions` are installed versions by distribution name. `false_alarms` is the wanted
    probability that one more run like those fails. `ceiling` is a value that none may pass on the worse side, whatever the
    tolerance. `published` names the source of a figure that others published from a single run: its tolerance is `given_tolerance`,
    as one run shows no spread, and commit and versions may be unknown.
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
    false_alarms: float = FALSE_ALARMS
    ceiling: float | None = None
    image: str = ""
    run_ids: tuple[str, ...] = ()
    published: str = ""
    given_tolerance: float | None = None

    def __post_init__(self) -> None:
        problems = [*_number_problems(self)]
        problems += [
            f"{self.metric}: {name} is empty: a baseline needs it"
            for name in (("date", "device") if self.published else ("date", "commit", "device"))
            if not getattr(self, name)
        ]
        if not self.versions and not self.published:
            problems.append(f"{self.metric}: versions is empty: a baseline needs the installed versions it was taken with")
        if problems:
            raise BaselineError(*problems)

    @classmethod
    def of_runs(  # noqa: PLR0913  # a baseline without its provenance is none
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
        false_alarms: float = FALSE_ALARMS,
        ceiling: float | None = None,
        image: str = "",
        run_ids: Sequence[str] = (),
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
            false_alarms=false_alarms,
            ceiling=ceiling,
            image=image,
            run_ids=tuple(run_ids),
        )

    @property
    def tolerance(self) -> float:
        """How far one more run may lie from the value: the prediction limit of `runs` runs, at least `floor` of the value."""
        if self.given_tolerance is not None:
            return self.given_tolerance
        doubt = self.false_alarms / 2 if self.direction is Direction.TWO_SIDED else self.false_alarms
        predicted = upper_quantile(doubt, self.runs - 1) * self.spread * math.sqrt(1 + 1 / self.runs)
        return max(predicted, self.floor * abs(self.value))

    @property
    def origin(self) -> str:
        """Where the limits come from, for a reader of a failure."""
        if self.published:
            return (
                f"{self.value:.6g} published on {self.date} by {self.published}, one run on {self.device} without spread, "
                f"{self.direction.value}, tolerance {self.tolerance:.3g} as published"
            )
        return (
            f"baseline {self.value:.6g} of {self.date}, commit {self.commit}, {self.device}, {self.runs} runs with spread "
            f"{self.spread:.3g}, {self.direction.value}, tolerance {self.tolerance:.3g} for one "
            f"false alarm in {1 / self.false_alarms:.6g} runs"
        )

    def changes(self, versions: Mapping[str, str]) -> tuple[str, ...]:
        """Return the versions that differ from those of the baseline, `vllm 0.11.0 -> 0.11.2`; the image too, if both have one."""
        before, now = {**self.versions, "image": self.image}, dict(versions)
        if not (self.image and now.get("image")):
            before.pop("image")
            now.pop("image", None)
        pairs = [(name, before.get(name, "none"), now.get(name, "none")) for name in sorted({*before, *now})]
        return tuple(f"{name} {was} -> {is_now}" for name, was, is_now in pairs if was != is_now)


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
    low, high = _bounds(baseline)
    is_better = False
    if baseline.direction is Direction.HIGHER_IS_BETTER:
        limit, is_better = low, value > baseline.value + baseline.tolerance
    elif baseline.direction is Direction.LOWER_IS_BETTER:
        limit, is_better = high, value < baseline.value - baseline.tolerance
    else:
        limit = low if value < low.value else high
    statistic = "maximum" if _is_peak(series.name) else "median"
    check = judged(name, value, limit, what=over(series.name, statistic, series.steps), metric=series.name)
    notes = [check.message]
    if is_better:
        notes.append(
            f"better than the baseline {baseline.value:.6g} by more than its tolerance: the baseline is stale, record a new one"
        )
    if check.is_failed and versions is not None:
        notes.append(f"changed since the baseline: {', '.join(baseline.changes(versions)) or 'no version'}")
    return dataclasses.replace(check, message="; ".join(notes), band=(low.value, high.value))


def _bounds(baseline: Baseline) -> tuple[Limit, Limit]:
    """Return the limits on both sides; a ceiling stands on the worse side where it is the tighter one."""
    low, high = baseline.value - baseline.tolerance, baseline.value + baseline.tolerance
    low_origin = high_origin = baseline.origin
    ceiling = baseline.ceiling
    if ceiling is not None and baseline.direction is Direction.HIGHER_IS_BETTER and ceiling > low:
        low, low_origin = ceiling, f"ceiling of the baseline; {baseline.origin}"
    elif ceiling is not None and baseline.direction is not Direction.HIGHER_IS_BETTER and ceiling < high:
        high, high_origin = ceiling, f"ceiling of the baseline; {baseline.origin}"
    return Limit(comparison=">=", value=low, origin=low_origin), Limit(comparison="<=", value=high, origin=high_origin)


def _is_peak(key: str) -> bool:
    return "/max_memory_" in key


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
    if not 1e-9 <= baseline.false_alarms <= 0.5:  # noqa: PLR2004  # one half is no limit at all
        problems.append(f"{metric}: false_alarms {baseline.false_alarms!r} cannot be used: expected a probability, such as 0.01")
    if baseline.ceiling is not None and not math.isfinite(baseline.ceiling):
        problems.append(f"{metric}: ceiling {baseline.ceiling!r} cannot be used: expected a finite number")
    given = baseline.given_tolerance
    if (given is None) == bool(baseline.published) or not (given is None or (math.isfinite(given) and given > 0)):
        needed = "a figure of one published run needs one above 0, and no other baseline has one"
        problems.append(f"{metric}: given_tolerance {given!r} cannot be used: {needed}")
    if baseline.runs < (1 if baseline.published else FEWEST_RUNS):
        needed = f"a baseline rests on {FEWEST_RUNS} runs or more, as one run shows no spread"
        problems.append(f"{metric}: runs {baseline.runs!r} cannot be used: {needed}")
    return problems
