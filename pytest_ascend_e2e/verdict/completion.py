"""Did the run do what it was asked to: every step, every metric, every number finite?

Must not know what a good value is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import CheckError
from ..metrics import Metrics, fits, is_sparse, shown_steps
from ..records import Check
from .blocks import usable_series
from .limits import Limit, failed, judged, passed

# What every trainer of reinforcement learning of verl prints at every step; a log without them is no log of a training.
REQUIRED = ("critic/rewards/mean", "actor/grad_norm", "response_length/mean", "timing_s/step")

_SHOWN = 5


def check_completed(
    metrics: Metrics, *, steps: int, first_step: int = 1, required: Sequence[str] = REQUIRED, sparse: Sequence[str] = ()
) -> tuple[Check, ...]:
    """Check that the run made all steps from `first_step` to `steps`, and that every metric is there and finite.

    `steps` is verl's `trainer.total_training_steps`; `first_step` is above 1 for a run that was resumed. `required` are keys that
    must be there at every step (others must be there at every step if they are there at all); `sparse` are patterns of keys that
    this run prints at some steps only (`actor/*` with `trainer.critic_warmup`), beside those of which verl does so by design.
    """
    if steps < 1 or not 1 <= first_step <= steps:
        raise CheckError(f"steps {steps!r} from first_step {first_step!r} cannot be used: expected 1 <= first_step <= steps")
    wanted = tuple(range(first_step, steps + 1))
    return (
        _log(metrics),
        _steps(metrics, wanted),
        *_numbering(metrics),
        _every_metric(metrics, wanted, required=required, sparse=sparse),
        _finite(metrics),
        *_gradient(metrics, required=required, sparse=sparse),
    )


def _log(metrics: Metrics) -> Check:
    name = "completed.log"
    if metrics.problems:
        return failed(name, f"the log of metrics has {len(metrics.problems)} problems: {_joined(metrics.problems)}")
    return passed(name, "the log of metrics could be read without doubt")


def _steps(metrics: Metrics, wanted: tuple[int, ...]) -> Check:
    name = "completed.steps"
    trained = metrics.training_steps
    done = set(trained)
    missing = [step for step in wanted if step not in done]
    # verl validates before the first step and logs it under the number of the step before.
    allowed = {wanted[0] - 1, *wanted}
    foreign = [step for step in metrics.steps if step not in allowed or (step == wanted[0] - 1 and step in done)]
    asked = f"steps {shown_steps(wanted)} were asked for"
    if missing:
        return failed(name, f"{asked}, {shown_steps(trained)} were trained: {shown_steps(missing)} missing", step=missing[0])
    if foreign:
        return failed(name, f"{asked}, and the log also has {shown_steps(foreign)}", step=foreign[0])
    return passed(name, f"{asked} and trained", value=float(len(wanted)))


def _numbering(metrics: Metrics) -> tuple[Check, ...]:
    name, key = "completed.numbering", "training/global_step"
    if key not in metrics:
        return ()
    for step, value in metrics[key].items():
        if value != step:
            return (failed(name, f"{key} is {value:g} in the line of step {step}", metric=key, step=step),)
    return (passed(name, f"{key} is the number of the step in every line", metric=key),)


def _every_metric(metrics: Metrics, wanted: tuple[int, ...], *, required: Sequence[str], sparse: Sequence[str]) -> Check:
    name = "completed.every-metric"
    absent = [key for key in required if key not in metrics]
    if absent:
        return failed(name, _joined(metrics.why_missing(key) for key in absent), metric=absent[0])
    gaps = []
    there = set(metrics.steps)
    expected = [step for step in wanted if step in there]
    for key, series in metrics.items():
        if is_sparse(key) or fits(key, sparse):
            continue
        missing = series.missing(expected)
        if missing:
            gaps.append((missing[0], key, f"{key} at steps {shown_steps(missing)}"))
    if gaps:
        step, key, _ = min(gaps)
        return failed(
            name, f"{len(gaps)} metrics have no value at some steps: {_joined(gap[2] for gap in gaps)}", metric=key, step=step
        )
    if not metrics:
        return failed(name, "the log has no metric")
    return passed(
        name, f"each of the {len(metrics)} metrics is there at every step at which verl prints it", value=float(len(metrics))
    )


def _finite(metrics: Metrics) -> Check:
    name = "completed.finite"
    found = []
    for key, series in metrics.items():
        broken = series.non_finite_steps
        if broken:
            found.append((broken[0], key, f"{key} is {series.at(broken[0])} at steps {shown_steps(broken)}"))
    if found:
        step, key, _ = min(found)
        in_order = [text for *_, text in sorted(found)]
        return failed(name, f"{len(found)} metrics are not finite: {_joined(in_order)}", metric=key, step=step)
    if not metrics:
        return failed(name, "the log has no number")
    return passed(name, f"every value of the {len(metrics)} metrics is finite")


def _gradient(metrics: Metrics, *, required: Sequence[str], sparse: Sequence[str]) -> tuple[Check, ...]:
    name, key = "completed.gradient", "actor/grad_norm"
    if key not in required:
        return ()
    steps = metrics[key].steps if key in metrics and fits(key, sparse) else None
    series = usable_series(metrics, key, name=name, steps=steps)
    if isinstance(series, Check):
        return (series,)
    limit = Limit(comparison=">", value=0.0, origin="an update whose gradient is zero at every step trains nothing")
    return (judged(name, series.max(), limit, what=f"the largest {key}", metric=key),)


def _joined(texts: Iterable[str]) -> str:
    every = list(texts)
    more = f"; and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return "; ".join(every[:_SHOWN]) + more
