"""Which metrics of a run are drawn together, in what unit, with which limits and baseline, and how a chart reads as a sentence.

Must not know: how a chart is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ...metrics import Metrics, MetricSeries, fits, is_sparse, shown_steps
from ...records import Check
from ..tables import number

# Title: unit, and the keys in the order of their lines; a pattern stands for the keys that fit it.
_CHARTS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "Reward": ("", ("critic/rewards/mean",)),
        "Validation": ("", ("val-core/*", "val/loss")),
        "Loss": ("", ("train/loss",)),
        "Log-prob difference, mean": ("probability", ("training/rollout_probs_diff_mean",)),
        "Log-prob difference, max": ("probability", ("training/rollout_probs_diff_max",)),
        "Pearson correlation of rollout and training": ("", ("training/rollout_actor_probs_pearson_corr",)),
        "KL to the reference and to the old policy": ("", ("actor/kl_loss", "actor/reward_kl_penalty", "actor/ppo_kl")),
        "KL of rollout and training": ("", ("rollout_corr/k3_kl",)),
        "Entropy": ("nats", ("actor/entropy", "actor/entropy_loss")),
        "Gradient norm": ("", ("actor/grad_norm", "critic/grad_norm", "train/grad_norm")),
        "Throughput": ("tokens/s per device", ("perf/throughput",)),
        "Step time and its parts": (
            "s",
            tuple(
                f"timing_s/{part}"
                for part in (
                    "step", "gen", "reward", "old_log_prob", "ref", "values", "adv", "update_critic", "update_actor",
                    "update_weights", "save_checkpoint", "testing",
                )
            ),
        ),
        "Device memory": ("GB", ("actor/perf/max_memory_allocated_gb",)),
        "Host memory": ("GB", ("actor/perf/cpu_memory_used_gb",)),
        "Response length": ("tokens", ("response_length/mean",)),
    }
)  # fmt: skip
_MOST_LINES = 12

# Checks whose limit is in the unit of their metric, so that it can stand in its chart: not a p, a ratio or a spread.
_IN_UNIT = (
    "baseline.*", "rewards.level", "logprob.mean-difference", "logprob.max-difference", "logprob.pearson", "logprob.growth",
    "health.gradient-size", "health.entropy-collapse", "health.entropy-explosion", "throughput.tokens", "throughput.step-time",
    "throughput.memory", "throughput.host-memory",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A horizontal line of a chart: a limit of a check."""

    value: float
    label: str
    is_failed: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Band:
    """What a baseline expects of a metric, from `low` to `high`."""

    low: float
    high: float
    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """Some metrics over the steps of a run.

    `warnings` is what no line shows: values that are not finite, and steps without one; `notes` are sentences for a reader who does
    not see the lines.
    """

    title: str
    unit: str
    keys: tuple[str, ...]
    marks: tuple[Mark, ...]
    bands: tuple[Band, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def charts_of(metrics: Metrics, checks: Sequence[Check]) -> list[Chart]:
    """Return the charts of a run: the usual ones that it has a metric for, then one for each further metric of a failed check."""
    charts = []
    drawn: set[str] = set()
    for title, (unit, patterns) in _CHARTS.items():
        keys = tuple(key for pattern in patterns for key in metrics if fits(key, (pattern,)))[:_MOST_LINES]
        if keys:
            charts.append(_chart(title, unit, keys, metrics, checks))
            drawn.update(keys)
    for check in checks:
        if check.is_failed and check.metric in metrics and check.metric not in drawn:
            charts.append(_chart(f"{check.metric} (named by {check.name})", "", (check.metric,), metrics, checks))
            drawn.add(check.metric)
    return charts


def _chart(title: str, unit: str, keys: tuple[str, ...], metrics: Metrics, checks: Sequence[Check]) -> Chart:
    about = [check for check in checks if check.metric in keys]
    marks, bands = marks_of(about), bands_of(about)
    warnings = [f"{key}: {text}" for key in keys for text in oddities(metrics[key], metrics)]
    notes = [sentence(metrics[key]) for key in keys]
    notes += [f"limit {mark.label}{': broken' if mark.is_failed else ''}" for mark in marks]
    notes += [band.label for band in bands]
    return Chart(title=title, unit=unit, keys=keys, marks=marks, bands=bands, warnings=tuple(warnings), notes=tuple(notes))


def marks_of(checks: Iterable[Check]) -> tuple[Mark, ...]:
    """Return the limits of these checks that are in the unit of their metric."""
    return tuple(
        Mark(value=check.limit, label=f"{check.comparison} {number(check.limit)} ({check.name})", is_failed=check.is_failed)
        for check in checks
        if check.limit is not None and math.isfinite(check.limit) and _is_in_unit(check)
    )


def bands_of(checks: Iterable[Check]) -> tuple[Band, ...]:
    """Return the baselines that these checks held their metrics against."""
    return tuple(
        Band(
            low=check.band[0],
            high=check.band[1],
            label=f"baseline of {check.metric}: {number(check.band[0])} to {number(check.band[1])}",
        )
        for check in checks
        if check.band is not None and all(map(math.isfinite, check.band))
    )


def sentence(series: MetricSeries) -> str:
    """Return what a line shows: its ends, and its least and its most with their steps."""
    finite = [(step, value) for step, value in series.items() if math.isfinite(value)]
    if not finite:
        return f"{series.name}: no finite value"
    (first, start), (last, end) = finite[0], finite[-1]
    low, high = min(finite, key=lambda pair: pair[1]), max(finite, key=lambda pair: pair[1])
    return (
        f"{series.name}: {number(start)} at step {first}, {number(end)} at step {last}, "
        f"least {number(low[1])} at step {low[0]}, most {number(high[1])} at step {high[0]}"
    )


def oddities(series: MetricSeries, metrics: Metrics) -> list[str]:
    """Return what is no ordinary value of a metric: NaN, infinities, and steps of the training at which it has none."""
    odd = [(step, str(series.at(step))) for step in series.non_finite_steps]
    found = []
    for name, shown in (("nan", "NaN"), ("inf", "inf"), ("-inf", "-inf")):
        steps = [step for step, text in odd if text == name]
        if steps:
            found.append(f"{shown} at {_steps(steps)}")
    missing = () if is_sparse(series.name) else series.missing(axis(metrics.training_steps))
    if missing:
        found.append(f"no value at {_steps(missing)}")
    return found


def _steps(steps: Sequence[int]) -> str:
    return f"step{'s' if len(steps) > 1 else ''} {shown_steps(steps)}"


def axis(steps: Sequence[int]) -> tuple[int, ...]:
    """Return the steps with those between them that a log left out, so that a gap is seen; not where nearly all are left out."""
    if not steps or steps[-1] - steps[0] > 2 * len(steps) + 10:
        return tuple(steps)
    return tuple(range(steps[0], steps[-1] + 1))


def _is_in_unit(check: Check) -> bool:
    is_part = check.name.startswith("throughput.") and check.metric.startswith("timing_s/") and check.name != "throughput.slow-step"
    return fits(check.name, _IN_UNIT) or is_part
