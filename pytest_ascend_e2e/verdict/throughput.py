"""How fast was the run, and how much memory did it take?

Must not know the machine: devices, limits and baselines are given.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from ..errors import CheckError
from ..metrics import Metrics, MetricSeries, shown_steps
from ..records import Check
from .baseline import Baseline, check_baseline
from .blocks import after_warmup, check_each_value, check_median, over, usable_series
from .limits import GIVEN, Limit, failed, judged, not_made, passed

THROUGHPUT = "perf/throughput"
STEP_TIME = "timing_s/step"
MEMORY = "actor/perf/max_memory_allocated_gb"
HOST_MEMORY = "actor/perf/cpu_memory_used_gb"

_TOKENS = "perf/total_num_tokens"
_TIME = "perf/time_per_step"

# Three-decimal logs of old verl round time and throughput; the division itself is exact.
_DEVICES_TOLERANCE = 0.02

# Part of a step that verl may spend on saving, which makes a step slow by design.
_SAVING = "timing_s/save_checkpoint"
# The slowest step after the first of 27 simulated runs on busy processors is 1.8 times the median of its run.
_SLOW_TIMES = 3.0
_FEWEST_TO_COMPARE = 3

# A peak that keeps rising by chance: the i-th of values in random order is the highest so far with probability 1/i.
_GROWTH_DOUBT = 1e-4
_GROWTH_LIMIT = 0.05
_MOST_PEAKS = 16
_FEWEST_FOR_GROWTH = 10

_NO_LIMIT = (
    "nothing limits this run: give minimum= (tokens per second and device), step_time_max_s=, parts_max_s=, memory_max_gb=, "
    "host_memory_max_gb=, a baseline, or say report_only=True"
)

_JUDGED_HERE = ("perf/", "timing_s/", "timing_per_token_ms/", "actor/perf/", "critic/perf/")


def check_throughput(  # noqa: PLR0913  # each limit is one claim a test may make
    metrics: Metrics,
    *,
    devices: int,
    minimum: float | None = None,
    step_time_max_s: float | None = None,
    parts_max_s: Mapping[str, float] | None = None,
    memory_max_gb: float | None = None,
    host_memory_max_gb: float | None = None,
    baselines: Mapping[str, Baseline] | None = None,
    warmup: int = 1,
    report_only: bool = False,
    device: str = "",
    versions: Mapping[str, str] | None = None,
) -> tuple[Check, ...]:
    """Check tokens per second and device (`minimum`), seconds of a step, and memory of a training process at its peak.

    Medians over the training steps after `warmup` are judged (the first step compiles and fills caches), memory at its peak.
    `parts_max_s` limits parts of a step by verl's name, `{"gen": 30, "update_actor": 12}`; `host_memory_max_gb` the memory in use
    on the whole node. No single step may be slower than three times the median, and the memory of a process may not keep growing.
    `baselines` are held as well, those of performance and memory only. Without any limit the check fails, unless `report_only` says
    that figures are wanted and nothing is claimed; then too they must be there and finite.
    """
    if devices < 1:
        raise CheckError(f"devices {devices!r} cannot be used: expected the number of devices of the run, 1 or more")
    own = {key: baseline for key, baseline in (baselines or {}).items() if key.startswith(_JUDGED_HERE)}
    checks = [_devices(metrics, devices)]
    if minimum is not None:
        checks.extend(_at_least(metrics, minimum, warmup))
    limits = {STEP_TIME: step_time_max_s, **{f"timing_s/{part}": limit for part, limit in (parts_max_s or {}).items()}}
    checks.extend(_times(metrics, limits, warmup))
    checks.extend(_memory(metrics, memory_max_gb, host_memory_max_gb))
    if own:
        checks.extend(check_baseline(metrics, own, warmup=warmup, device=device, versions=versions))
    if report_only:
        checks.append(_reported(metrics, devices, warmup))
    else:
        checks.extend((*_slow_step(metrics, warmup), *_memory_growth(metrics)))
    given = (minimum, step_time_max_s, memory_max_gb, host_memory_max_gb)
    if not report_only and not own and not parts_max_s and all(limit is None for limit in given):
        checks.append(failed("throughput.no-limit", _NO_LIMIT, metric=THROUGHPUT))
    return tuple(checks)


def _at_least(metrics: Metrics, minimum: float, warmup: int) -> tuple[Check, ...]:
    if not minimum > 0:
        raise CheckError(f"minimum {minimum!r} cannot be used: expected tokens per second and device, above 0")
    limit = Limit(comparison=">=", value=minimum, origin=GIVEN)
    return check_median(metrics, THROUGHPUT, limit, warmup=warmup, name="throughput.tokens")


def _times(metrics: Metrics, limits: Mapping[str, float | None], warmup: int) -> tuple[Check, ...]:
    checks: list[Check] = []
    for key, most in limits.items():
        if most is not None:
            name = "throughput.step-time" if key == STEP_TIME else f"throughput.{key.rpartition('/')[2].replace('_', '-')}"
            checks.extend(check_median(metrics, key, Limit(comparison="<=", value=most, origin=GIVEN), warmup=warmup, name=name))
    return tuple(checks)


def _memory(metrics: Metrics, device_gb: float | None, host_gb: float | None) -> tuple[Check, ...]:
    checks: list[Check] = []
    for name, key, most in (("throughput.memory", MEMORY, device_gb), ("throughput.host-memory", HOST_MEMORY, host_gb)):
        if most is not None:
            checks.extend(check_each_value(metrics, key, Limit(comparison="<=", value=most, origin=GIVEN), name=name))
    return tuple(checks)


def _slow_step(metrics: Metrics, warmup: int) -> tuple[Check, ...]:
    """Check that no step stalled; what verl spent on saving is left out."""
    name = "throughput.slow-step"
    series = after_warmup(metrics, STEP_TIME, warmup=warmup, name=name)
    if isinstance(series, Check):
        return (series,)
    if len(series) < _FEWEST_TO_COMPARE:
        return (not_made(name, needed=_FEWEST_TO_COMPARE + warmup, metric=STEP_TIME),)
    saving = dict(metrics[_SAVING].items()) if _SAVING in metrics else {}
    times = {step: seconds - saving.get(step, 0.0) for step, seconds in series.items()}
    usual = MetricSeries(name=STEP_TIME, steps=series.steps, values=tuple(times.values())).median()
    origin = f"{_SLOW_TIMES:g} times the median {usual:.4g} s; the slowest step of simulated runs takes 1.8 times theirs"
    limit = Limit(comparison="<=", value=_SLOW_TIMES * usual, origin=origin)
    step = limit.worst(times)
    what = f"{STEP_TIME} without saving, at its slowest step {step} of {shown_steps(series.steps)},"
    return (judged(name, times[step], limit, what=what, metric=STEP_TIME, step=step),)


def _memory_growth(metrics: Metrics) -> tuple[Check, ...]:
    """Check that the peak of a process does not keep rising in the second half of the run, as a leak makes it."""
    name = "throughput.memory-growth"
    if len(metrics.training_steps) < _FEWEST_FOR_GROWTH:
        return (not_made(name, needed=_FEWEST_FOR_GROWTH, metric=MEMORY),)
    series = usable_series(metrics, MEMORY, name=name)
    if isinstance(series, Check):
        return (series,)
    half, values = len(series) // 2, series.values
    highest = list(itertools.accumulate(values, max))
    peaks = sum(later > earlier for earlier, later in itertools.pairwise(highest[half - 1 :]))
    doubt = chance_of_peaks(half, len(values), peaks)
    part = highest[-1] / highest[half - 1] - 1 if highest[half - 1] > 0 else 0.0
    what = (
        f"{MEMORY} reaches a new peak at {peaks} of the steps {shown_steps(series.steps[half:])}, by chance with p = {doubt:.2g}; "
        "its growth there, in parts,"
    )
    if doubt >= _GROWTH_DOUBT:
        return (passed(name, f"{what} is {part:.3g}: no sign of a leak", metric=MEMORY, value=part),)
    origin = f"a peak that rises this often is no chance (limit {_GROWTH_DOUBT:g}); simulated runs grow by less where they do"
    limit = Limit(comparison="<=", value=_GROWTH_LIMIT, origin=origin)
    return (judged(name, part, limit, what=what, metric=MEMORY),)


def chance_of_peaks(first: int, last: int, peaks: int) -> float:
    """Return the probability of `peaks` or more new peaks at the positions `first` to `last` - 1 of values in random order.

    Renyi, "Theorie des elements saillants d'une suite d'observations" (1962): these events are independent. Of more than
    `_MOST_PEAKS`, the probability of so many is told, which is above theirs and next to nothing.
    """
    peaks = min(peaks, _MOST_PEAKS)
    fewer = [1.0, *[0.0] * (peaks - 1)][:peaks]
    for position in range(first, last):
        chance = 1 / (position + 1)
        fewer = [now * (1 - chance) + before * chance for before, now in zip([0.0, *fewer], fewer, strict=False)]
    return max(0.0, 1.0 - math.fsum(fewer))


def _devices(metrics: Metrics, devices: int) -> Check:
    """Check that verl divided by the devices that the run was given: a run on fewer leaves the others idle."""
    name = "throughput.devices"
    parts = [usable_series(metrics, key, name=name) for key in (THROUGHPUT, _TOKENS, _TIME)]
    series = []
    for part in parts:
        if isinstance(part, Check):
            return part
        series.append(part)
    rates, tokens, times = series
    counts: dict[int, float] = {}
    for step, rate, count, seconds in zip(rates.steps, rates, tokens, times, strict=True):
        if not (rate > 0 and count > 0 and seconds > 0):
            return failed(
                name, f"{THROUGHPUT}, {_TOKENS} or {_TIME} is not above zero at step {step}", metric=THROUGHPUT, step=step
            )
        counts[step] = count / seconds / rate
    step = max(counts, key=lambda at: abs(counts[at] - devices))
    limit = Limit(
        comparison="<=", value=_DEVICES_TOLERANCE, origin="verl divides tokens per second by its devices; rounding of logs"
    )
    what = f"the run was given {devices} devices and verl counted {counts[step]:.4g} (step {step}); the difference, in parts of it,"
    return judged(name, abs(counts[step] / devices - 1), limit, what=what, metric=THROUGHPUT, step=step)


def _reported(metrics: Metrics, devices: int, warmup: int) -> Check:
    name = "throughput.reported"
    if 0 < len(metrics.training_steps) <= warmup:
        return not_made(name, needed=warmup + 1, metric=THROUGHPUT)  # nothing was claimed
    series = after_warmup(metrics, THROUGHPUT, warmup=warmup, name=name)
    if isinstance(series, Check):
        return series
    rate = series.median()
    message = (
        f"{over(THROUGHPUT, 'median', series.steps)} is {rate:.6g} tokens per second and device, "
        f"{rate * devices:.6g} for {devices} devices; reported only, no limit was asked for"
    )
    return passed(name, message, metric=THROUGHPUT, value=rate)
