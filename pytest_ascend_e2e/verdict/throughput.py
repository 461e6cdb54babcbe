"""How fast was the run, and how much memory did it take?

Must not know the machine: devices, limits and baselines are given.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import CheckError
from ..metrics import Metrics, shown_steps
from ..records import Check
from .baseline import Baseline, check_baseline
from .blocks import after_warmup, check_each_value, check_median, usable_series
from .limits import GIVEN, Limit, failed, judged, passed

THROUGHPUT = "perf/throughput"
STEP_TIME = "timing_s/step"
MEMORY = "actor/perf/max_memory_allocated_gb"

_TOKENS = "perf/total_num_tokens"
_TIME = "perf/time_per_step"

# Three-decimal logs of old verl round time and throughput; the division itself is exact.
_DEVICES_TOLERANCE = 0.02

_NO_LIMIT = (
    "nothing limits this run: give minimum= (tokens per second and device), step_time_max_s=, memory_max_gb=, a baseline, "
    "or say report_only=True"
)

_JUDGED_HERE = ("perf/", "timing_s/", "timing_per_token_ms/", "actor/perf/", "critic/perf/")


def check_throughput(  # noqa: PLR0913  # each limit is one claim a test may make
    metrics: Metrics,
    *,
    devices: int,
    minimum: float | None = None,
    step_time_max_s: float | None = None,
    memory_max_gb: float | None = None,
    baselines: Mapping[str, Baseline] | None = None,
    warmup: int = 1,
    report_only: bool = False,
    device: str = "",
    versions: Mapping[str, str] | None = None,
) -> tuple[Check, ...]:
    """Check tokens per second and device (`minimum`), seconds of a step, and memory of a training process at its peak.

    Medians over the training steps after `warmup` are judged (the first step compiles and fills caches), memory at its peak.
    `baselines` are held as well, those of performance and memory only. Without any limit the check fails, unless `report_only` says
    that figures are wanted and nothing is claimed; then too they must be there and finite.
    """
    if devices < 1:
        raise CheckError(f"devices {devices!r} cannot be used: expected the number of devices of the run, 1 or more")
    own = {key: baseline for key, baseline in (baselines or {}).items() if key.startswith(_JUDGED_HERE)}
    checks = [_devices(metrics, devices)]
    if minimum is not None:
        checks.extend(_at_least(metrics, minimum, warmup))
    checks.extend(_at_most(metrics, step_time_max_s, memory_max_gb, warmup))
    if own:
        checks.extend(check_baseline(metrics, own, warmup=warmup, device=device, versions=versions))
    if report_only:
        checks.append(_reported(metrics, devices, warmup))
    elif (minimum, step_time_max_s, memory_max_gb) == (None, None, None) and not own:
        checks.append(failed("throughput.no-limit", _NO_LIMIT, metric=THROUGHPUT))
    return tuple(checks)


def _at_least(metrics: Metrics, minimum: float, warmup: int) -> tuple[Check, ...]:
    if not minimum > 0:
        raise CheckError(f"minimum {minimum!r} cannot be used: expected tokens per second and device, above 0")
    limit = Limit(comparison=">=", value=minimum, origin=GIVEN)
    return check_median(metrics, THROUGHPUT, limit, warmup=warmup, name="throughput.tokens")


def _at_most(metrics: Metrics, step_time_max_s: float | None, memory_max_gb: float | None, warmup: int) -> tuple[Check, ...]:
    checks: list[Check] = []
    if step_time_max_s is not None:
        limit = Limit(comparison="<=", value=step_time_max_s, origin=GIVEN)
        checks.extend(check_median(metrics, STEP_TIME, limit, warmup=warmup, name="throughput.step-time"))
    if memory_max_gb is not None:
        limit = Limit(comparison="<=", value=memory_max_gb, origin=GIVEN)
        checks.extend(check_each_value(metrics, MEMORY, limit, name="throughput.memory"))
    return tuple(checks)


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
    for step in rates.steps:
        if not (rates.at(step) > 0 and tokens.at(step) > 0 and times.at(step) > 0):
            return failed(
                name, f"{THROUGHPUT}, {_TOKENS} or {_TIME} is not above zero at step {step}", metric=THROUGHPUT, step=step
            )
    counts = {step: tokens.at(step) / times.at(step) / rates.at(step) for step in rates.steps}
    step = max(counts, key=lambda at: abs(counts[at] - devices))
    limit = Limit(
        comparison="<=", value=_DEVICES_TOLERANCE, origin="verl divides tokens per second by its devices; rounding of logs"
    )
    what = f"the run was given {devices} devices and verl counted {counts[step]:.4g} (step {step}); the difference, in parts of it,"
    return judged(name, abs(counts[step] / devices - 1), limit, what=what, metric=THROUGHPUT, step=step)


def _reported(metrics: Metrics, devices: int, warmup: int) -> Check:
    name = "throughput.reported"
    series = after_warmup(metrics, THROUGHPUT, warmup=warmup, name=name)
    if isinstance(series, Check):
        return series
    rate = series.median()
    message = (
        f"{THROUGHPUT}, median of steps {shown_steps(series.steps)}, is {rate:.6g} tokens per second and device, "
        f"{rate * devices:.6g} for {devices} devices; reported only, no limit was asked for"
    )
    return passed(name, message, metric=THROUGHPUT, value=rate)
