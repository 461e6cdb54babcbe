"""Do rollout and training, and reference and actor, give the same tokens the same probability?

Owns the limits of that agreement and their origins. Must not know how the engines were set up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..errors import CheckError
from ..metrics import Metrics, MetricSeries, shown_steps
from ..records import Check
from .blocks import check_each_value, check_every_step, usable_series
from .limits import GIVEN, Limit, failed, judged, not_made

_VALID = "training/rollout_probs_diff_valid"
_MEAN = "training/rollout_probs_diff_mean"
_MAX = "training/rollout_probs_diff_max"
_PEARSON = "training/rollout_actor_probs_pearson_corr"
_K3 = "rollout_corr/k3_kl"
_PERPLEXITY = "rollout_corr/ppl_ratio"
_KL_LOSS = "actor/kl_loss"
_KL_REWARD = "actor/reward_kl_penalty"
_UPDATE = "actor/grad_norm"

_KL_NAMES: Mapping[str, str] = MappingProxyType({_KL_LOSS: "logprob.reference", _KL_REWARD: "logprob.reward-reference"})

# How many of the first steps say what is usual for a run.
_FIRST = 5
# A difference below this part of the mean's limit is rounding, of which a multiple means nothing.
_ROUNDING = 0.1

# verl's default clip_ratio of 0.2 keeps an update where |log p - log p_old| is about 0.2 or less; k3 = exp(d) - d - 1 = 0.02 there.
_DRIFT_LIMIT = 0.02
_DRIFT_ORIGIN = (
    "k3 of tokens at the edge of clip_ratio 0.2: the mean over several updates of one step holds the policy's own first moves, "
    "so that only a large difference between actor and reference is seen; it is exact with ppo_mini_batch_size = train_batch_size"
)


_GROWTH_ORIGIN = (
    "no step of 27 simulated runs comes near it (the largest is 3.3 times the median of the first, all of it rounding); more "
    "says that weights are stale, or that the engines drift apart"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LogprobLimits:
    """How far the probabilities of the same tokens may lie apart, and why.

    `mean` and `max` limit the absolute difference of probabilities, `pearson` their correlation, `start_kl` the KL divergence
    of actor and reference before the first update. `max` None: a single token decides a maximum, and is not judged. `k3` limits
    the KL divergence of rollout and training by Schulman's third estimator, `perplexity` how far the ratio of their perplexities
    lies from 1, `growth` how many times the mean difference of the first steps a later one may be; None: not judged.
    """

    mean: float
    max: float | None
    pearson: float
    start_kl: float
    k3: float | None = None
    perplexity: float | None = None
    growth: float | None = None
    mean_origin: str = GIVEN
    max_origin: str = GIVEN
    pearson_origin: str = GIVEN
    start_kl_origin: str = GIVEN
    k3_origin: str = GIVEN
    perplexity_origin: str = GIVEN
    growth_origin: str = GIVEN

    @classmethod
    def for_dtype(cls, dtype: str) -> LogprobLimits:
        """Return the limits for weights and activations of `bfloat16` or `float32`; the coarser, where the sides differ."""
        if dtype == "bfloat16":
            return cls(
                mean=0.03,
                max=None,
                pearson=0.98,
                start_kl=1e-3,
                k3=0.1,
                perplexity=0.1,
                growth=3.0,
                mean_origin="bfloat16: public smoke gates use 0.03; sound runs on Ascend NPUs show 0.004 (dense) to 0.025 (MoE)",
                pearson_origin="bfloat16: used by public smoke gates of rollout against training; sound runs show 0.99",
                start_kl_origin="bfloat16: log-probs of two passes differ by up to 0.04 (2**-8 of logits of 10); k3 of it is 8e-4",
                k3_origin="bfloat16: public runs of verl show 0.002 with vLLM and with SGLang; fifty times that",
                perplexity_origin="bfloat16: the KL of sound runs is 0.002, which is a ratio of 1.002; fifty times that difference",
                growth_origin=_GROWTH_ORIGIN,
            )
        if dtype == "float32":
            return cls(
                mean=1e-4,
                max=1e-2,
                pearson=0.99,
                start_kl=1e-5,
                k3=1e-4,
                perplexity=1e-3,
                growth=3.0,
                mean_origin="float32: simulated runs of verl's trainer with vLLM on a CPU show 4e-7 to 5e-6; twenty times that",
                max_origin="float32: a hundred times the limit of the mean, as one token decides it",
                pearson_origin="float32: simulated runs show 0.9999 and more",
                start_kl_origin="float32: log-probs of two passes of a model differ by less than 1e-5, whatever the estimator",
                k3_origin="float32: simulated runs show 6e-9 at most; one with wrongly packed weights 1.5 and more",
                perplexity_origin="float32: simulated runs show 3e-6 at most; one with wrongly packed weights 7 and more",
                growth_origin=_GROWTH_ORIGIN,
            )
        raise CheckError(f"dtype {dtype!r} has no limits: expected 'bfloat16' or 'float32', or give LogprobLimits(...)")


def check_logprob_consistency(
    metrics: Metrics,
    *,
    has_reference: bool,
    same_start: bool = True,
    updates_per_step: int = 1,
    limits: LogprobLimits | None = None,
    mean_limit: float | None = None,
    max_limit: float | None = None,
    pearson_limit: float | None = None,
) -> tuple[Check, ...]:
    """Check at every step that rollout and training agree on the log-probs, and at the first that reference and actor do.

    `has_reference`: the run has a reference policy (`use_kl_loss` or `use_kl_in_reward`); without one nothing is said of it.
    `same_start`: actor and reference start from the same weights, so their KL is zero before the first update (not after a resume).
    `updates_per_step`: optimiser updates of one step, `ppo_epochs * train_batch_size / ppo_mini_batch_size`; with more than one,
    `actor/kl_loss` of the first step is a mean over moving weights, and is held to a wider bound that says so.
    `limits` default to those for bfloat16; the single limits replace them.
    """
    if updates_per_step < 1:
        raise CheckError(f"updates_per_step {updates_per_step!r} cannot be used: expected 1 or more")
    chosen = _with_given(limits or LogprobLimits.for_dtype("bfloat16"), mean_limit, max_limit, pearson_limit)
    checks = [*_rollout(metrics, chosen)]
    if has_reference:
        checks.extend(_reference(metrics, chosen, same_start=same_start, updates_per_step=updates_per_step))
    return tuple(checks)


def _with_given(limits: LogprobLimits, mean: float | None, largest: float | None, pearson: float | None) -> LogprobLimits:
    if mean is not None:
        limits = dataclasses.replace(limits, mean=mean, mean_origin=GIVEN)
    if largest is not None:
        limits = dataclasses.replace(limits, max=largest, max_origin=GIVEN)
    if pearson is not None:
        limits = dataclasses.replace(limits, pearson=pearson, pearson_origin=GIVEN)
    return limits


def _rollout(metrics: Metrics, limits: LogprobLimits) -> tuple[Check, ...]:
    valid = Limit(comparison="==", value=1.0, origin="verl prints 0 where no token of the batch could be compared")
    mean = Limit(comparison="<=", value=limits.mean, origin=limits.mean_origin)
    pearson = Limit(comparison=">=", value=limits.pearson, origin=limits.pearson_origin)
    if limits.max is None:
        largest = check_every_step(metrics, _MAX, name="logprob.max-difference")
    else:
        bound = Limit(comparison="<=", value=limits.max, origin=limits.max_origin)
        largest = check_each_value(metrics, _MAX, bound, name="logprob.max-difference")
    return (
        *check_each_value(metrics, _VALID, valid, name="logprob.valid"),
        *check_each_value(metrics, _MEAN, mean, name="logprob.mean-difference"),
        *largest,
        *check_each_value(metrics, _PEARSON, pearson, name="logprob.pearson"),
        *_divergence(metrics, limits),
        *_growth(metrics, limits),
    )


def _divergence(metrics: Metrics, limits: LogprobLimits) -> tuple[Check, ...]:
    """Check k3 and the ratio of perplexities, each by its distance from what two equal policies have."""
    checks: list[Check] = []
    for name, key, equal, bound, origin in (
        ("logprob.k3", _K3, 0.0, limits.k3, limits.k3_origin),
        ("logprob.perplexity", _PERPLEXITY, 1.0, limits.perplexity, limits.perplexity_origin),
    ):
        if bound is None:
            continue
        series = usable_series(metrics, key, name=name)
        if isinstance(series, Check):
            checks.append(series)
            continue
        distances = {step: abs(value - equal) for step, value in series.items()}
        limit = Limit(comparison="<=", value=bound, origin=origin)
        step = limit.worst(distances)
        what = (
            f"{key} at its worst step {step} of {shown_steps(series.steps)} is {series.at(step):.6g}; its distance from {equal:g}"
        )
        checks.append(judged(name, distances[step], limit, what=what, metric=key, step=step))
    return tuple(checks)


def _growth(metrics: Metrics, limits: LogprobLimits) -> tuple[Check, ...]:
    """Check that no later step lies far above the first ones: stale weights and drift show there before any fixed limit."""
    name = "logprob.growth"
    series = usable_series(metrics, _MEAN, name=name)
    if limits.growth is None or isinstance(series, Check):
        return ()  # values that are missing or broken fail the check of the mean itself
    if len(series) == 1:
        return (not_made(name, needed=2, metric=_MEAN),)
    first = series.first(min(_FIRST, len(series) - 1))
    usual = max(first.median(), _ROUNDING * limits.mean)
    limit = Limit(
        comparison="<=", value=limits.growth * usual, origin=f"{limits.growth:g} times {usual:.3g}; {limits.growth_origin}"
    )
    step = limit.worst(dict(series.items()))
    what = f"{_MEAN} at its highest step {step}, against the first steps {shown_steps(first.steps)},"
    return (judged(name, series.at(step), limit, what=what, metric=_MEAN, step=step),)


def _reference(metrics: Metrics, limits: LogprobLimits, *, same_start: bool, updates_per_step: int) -> tuple[Check, ...]:
    present = [key for key in _KL_NAMES if key in metrics]
    if not present:
        message = f"{metrics.why_missing(_KL_LOSS)}; or {metrics.why_missing(_KL_REWARD)}"
        return (failed(_KL_NAMES[_KL_LOSS], message, metric=_KL_LOSS),)
    checks: list[Check] = []
    for key in present:
        name = _KL_NAMES[key]
        # The loss is printed where the actor is updated, which the first steps of a critic_warmup leave out.
        steps = metrics[_UPDATE].steps if key == _KL_LOSS and _UPDATE in metrics else metrics.training_steps
        series = usable_series(metrics, key, name=name, steps=steps)
        if isinstance(series, Check):
            checks.append(series)
            continue
        checks.extend(check_every_step(metrics, key, name=name, steps=steps))
        if same_start:
            checks.append(_start(metrics, series, limits, updates_per_step if key == _KL_LOSS else 1))
    return tuple(checks)


def _start(metrics: Metrics, series: MetricSeries, limits: LogprobLimits, updates_per_step: int) -> Check:
    name = f"{_KL_NAMES[series.name]}-start"
    first = metrics.training_steps[0]
    if first != 1:
        message = (
            f"{series.name}: whether actor and reference start from the same weights cannot be decided: the first training step of "
            f"the log is {first}, not 1; for a resumed run say same_start=False"
        )
        return failed(name, message, metric=series.name)
    return _judged_start(series, name, limits, updates_per_step)


def _judged_start(series: MetricSeries, name: str, limits: LogprobLimits, updates_per_step: int) -> Check:
    step = series.steps[0]
    if updates_per_step == 1:
        limit = Limit(comparison="<=", value=limits.start_kl, origin=limits.start_kl_origin)
        what = f"the size of {series.name} at step {step}, before the first update,"
    else:
        limit = Limit(comparison="<=", value=max(_DRIFT_LIMIT, limits.start_kl), origin=_DRIFT_ORIGIN)
        what = f"the size of {series.name} at step {step}, a mean over {updates_per_step} updates,"
    return judged(name, abs(series.at(step)), limit, what=what, metric=series.name, step=step)
