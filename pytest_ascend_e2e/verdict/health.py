"""Are the updates of the policy sound: gradients, entropy, learning rate, clipping, and the responses they are made from?

Owns the limits that hold for any run of reinforcement learning, and their origins. Must not know the recipe: what a recipe asks for
is given.
"""

from __future__ import annotations

from ..errors import CheckError
from ..metrics import Metrics, MetricSeries, shown_steps
from ..records import Check
from .blocks import check_each_value, over, usable_series
from .limits import GIVEN, Limit, failed, judged, not_made

GRADIENT = "actor/grad_norm"
ENTROPY = "actor/entropy"
RATE = "actor/lr"
CLIPPED_TOKENS = "actor/pg_clipfrac"
ABORTED = "response/aborted_ratio"
CUT = "response_length/clip_ratio"
LENGTH = "response_length/mean"
CRITIC_GRADIENT = "critic/grad_norm"
CRITIC_RATE = "critic/lr"

_SIZE = "health.gradient-size"
_REACHED = "health.learning-rate"
_ADVANTAGES = ("critic/advantages/max", "critic/advantages/min")

# The largest gradient of 27 sound simulated runs is 6.4 times the median of its run.
_GRADIENT_TIMES = 100.0
# The same runs end with 0.67 to 1.36 of the entropy that they begin with; less than a twentieth is no policy that explores.
_ENTROPY_LEFT = 0.05
_ENTROPY_TIMES = 10.0
# One nat: a policy that chooses among e equally likely tokens on average. Below it, growing from next to nothing is no explosion.
_ENTROPY_EXPLODED = 1.0
_LENGTH_LEFT = 0.1
_CLIPPED_LIMIT = 0.5
_RATE_TOLERANCE = 0.01


def check_update_health(  # noqa: PLR0913  # each limit is one claim a test may make
    metrics: Metrics,
    *,
    window: int = 5,
    lr: float | None = None,
    grad_norm_max: float | None = None,
    entropy_min: float | None = None,
    entropy_max: float | None = None,
    clip_fraction_max: float | None = None,
    aborted_max: float = 0.0,
    cut_max: float | None = None,
    clips_sequences: bool = False,
    has_critic: bool = False,
    critic_lr: float | None = None,
) -> tuple[Check, ...]:
    """Check that the updates of a run can have taught the policy something, and did not break it.

    The gradient is not zero at a step that has advantages, and nowhere `grad_norm_max` or a hundred times its median. The learning
    rate reaches `lr` (of a recipe without warm-up), or is above zero somewhere. The mean entropy of the last `window` steps is at
    least `entropy_min` and at most `entropy_max`, by default relative to the first steps. At no step are more than
    `clip_fraction_max` of the tokens clipped (by default half of them, or, of a loss that `clips_sequences` as that of GSPO does,
    fewer than all), or more than `aborted_max` of the responses without a token. Responses that
    `max_response_length` cuts are at most `cut_max` in the last `window` steps, and never all; their length does not collapse.
    With a critic (`has_critic`), its gradient is zero at no step and nowhere a hundred times its median, and its learning rate
    reaches `critic_lr`.
    """
    if window < 1:
        raise CheckError(f"window {window!r} cannot be used: expected a number of steps, 1 or more")
    return (
        _gradient_at_work(metrics),
        _size(_updates(metrics, GRADIENT, _SIZE), _SIZE, grad_norm_max),
        _rate(_updates(metrics, RATE, _REACHED), _REACHED, lr),
        *_entropy(metrics, window, entropy_min, entropy_max),
        *_clipped(metrics, clip_fraction_max, clips_sequences=clips_sequences),
        *check_each_value(metrics, ABORTED, _aborted_limit(aborted_max), name="health.aborted"),
        *_cut(metrics, window, cut_max),
        _length(metrics, window),
        *(_critic(metrics, critic_lr) if has_critic else ()),
    )


def _critic(metrics: Metrics, lr: float | None) -> tuple[Check, ...]:
    """Check what is told of the critic, which is updated at every step, those of a `critic_warmup` too."""
    names = ("health.critic-gradient", "health.critic-gradient-size", "health.critic-learning-rate")
    origin = "values that are not exact have a gradient; zero says that none reached the critic's weights"
    return (
        *check_each_value(metrics, CRITIC_GRADIENT, Limit(comparison=">", value=0.0, origin=origin), name=names[0]),
        _size(usable_series(metrics, CRITIC_GRADIENT, name=names[1]), names[1], None),
        _rate(usable_series(metrics, CRITIC_RATE, name=names[2]), names[2], lr),
    )


def _updates(metrics: Metrics, key: str, name: str) -> MetricSeries | Check:
    """Return the values of `key` at the steps from the first update on: the first ones of a `critic_warmup` have none."""
    first = metrics[GRADIENT].steps[0] if GRADIENT in metrics else 0
    steps = [step for step in metrics.training_steps if step >= first]
    return usable_series(metrics, key, name=name, steps=steps)


def _gradient_at_work(metrics: Metrics) -> Check:
    name = "health.gradient"
    norms = _updates(metrics, GRADIENT, name)
    if isinstance(norms, Check):
        return norms
    sizes: dict[int, float] = {}
    for key in _ADVANTAGES:
        series = usable_series(metrics, key, name=name)
        if isinstance(series, Check):
            return series
        sizes = {step: max(sizes.get(step, 0.0), abs(value)) for step, value in series.items()}
    with_advantages = {step: value for step, value in norms.items() if sizes.get(step, 0.0) > 0}
    if not with_advantages:
        return failed(name, f"no step of {shown_steps(norms.steps)} has an advantage that is not zero: nothing can be learned")
    step = min(with_advantages, key=with_advantages.__getitem__)
    limit = Limit(
        comparison=">", value=0.0, origin="a step with advantages has a gradient; zero says that none reached the weights"
    )
    what = f"the least {GRADIENT} of a step with advantages (step {step})"
    return judged(name, with_advantages[step], limit, what=what, metric=GRADIENT, step=step)


def _size(norms: MetricSeries | Check, name: str, largest: float | None) -> Check:
    """Return the check of the size of a gradient."""
    if isinstance(norms, Check):
        return norms
    if largest is not None:
        limit = Limit(comparison="<=", value=largest, origin=GIVEN)
    else:
        positive = [value for value in norms if value > 0]
        if not positive:
            return failed(name, f"{norms.name} is zero at every step", metric=norms.name)
        usual = MetricSeries(name=norms.name, steps=tuple(range(len(positive))), values=tuple(positive)).median()
        origin = f"{_GRADIENT_TIMES:g} times the median {usual:.3g} of the run; sound simulated runs show 6.4 times at most"
        limit = Limit(comparison="<=", value=_GRADIENT_TIMES * usual, origin=origin)
    step = limit.worst(dict(norms.items()))
    what = f"{norms.name} at its largest step {step} of {shown_steps(norms.steps)}"
    return judged(name, norms.at(step), limit, what=what, metric=norms.name, step=step)


def _rate(rates: MetricSeries | Check, name: str, asked: float | None) -> Check:
    """Return the check of a learning rate."""
    if isinstance(rates, Check):
        return rates
    if asked is None:
        limit = Limit(comparison=">", value=0.0, origin="an update with a learning rate of zero changes nothing")
        return judged(name, rates.max(), limit, what=f"the largest {rates.name}", metric=rates.name)
    if not asked > 0:
        raise CheckError(f"lr {asked!r} cannot be used: expected the learning rate of the recipe, above 0")
    limit = Limit(comparison="<=", value=_RATE_TOLERANCE, origin="the learning rate of the recipe; rounding of logs")
    what = f"the largest {rates.name} is {rates.max():.6g} and {asked:.6g} was asked for; the difference, in parts of it,"
    return judged(name, abs(rates.max() / asked - 1), limit, what=what, metric=rates.name)


def _entropy(metrics: Metrics, window: int, least: float | None, most: float | None) -> tuple[Check, ...]:
    names = ("health.entropy-collapse", "health.entropy-explosion")
    series = _updates(metrics, ENTROPY, names[0])
    if isinstance(series, Check):
        return (series,)
    size = min(window, max(len(series) // 2, 1))
    first, last = series.first(size).mean(), series.last(size)
    what = over(ENTROPY, "mean", last.steps)
    first_steps = shown_steps(series.first(size).steps)
    if least is None:
        origin = f"{_ENTROPY_LEFT:g} of {first:.3g} at steps {first_steps}: a policy that still explores keeps more"
        low = Limit(comparison=">", value=_ENTROPY_LEFT * first, origin=origin)
    else:
        low = Limit(comparison=">=", value=least, origin=GIVEN)
    if most is None:
        origin = (
            f"{_ENTROPY_TIMES:g} times {first:.3g} at steps {first_steps}, at least {_ENTROPY_EXPLODED:g} nat: a policy guided by "
            "rewards does not become random"
        )
        high = Limit(comparison="<=", value=max(_ENTROPY_TIMES * first, _ENTROPY_EXPLODED), origin=origin)
    else:
        high = Limit(comparison="<=", value=most, origin=GIVEN)
    return (
        judged(names[0], last.mean(), low, what=what, metric=ENTROPY),
        judged(names[1], last.mean(), high, what=what, metric=ENTROPY),
    )


def _clipped(metrics: Metrics, most: float | None, *, clips_sequences: bool) -> tuple[Check, ...]:
    name = "health.clip-fraction"
    series = _updates(metrics, CLIPPED_TOKENS, name)
    if isinstance(series, Check):
        return (series,)
    if most is not None:
        limit = Limit(comparison="<=", value=most, origin=GIVEN)
    elif clips_sequences:
        origin = (
            "where every token is clipped no update is left; one update moves the ratio of a sequence out of its narrow range: "
            "sound simulated runs of 2, 4 and 6 updates a step clip up to 0.50, 0.68 and 0.77"
        )
        limit = Limit(comparison="<", value=1.0, origin=origin)
    else:
        origin = "the ratio of a token leaves its range rarely: an update of which most tokens are clipped is not the one asked for"
        limit = Limit(comparison="<=", value=_CLIPPED_LIMIT, origin=origin)
    return check_each_value(metrics, CLIPPED_TOKENS, limit, name=name, steps=series.steps)


def _aborted_limit(most: float) -> Limit:
    origin = "a response without a single token is one that the rollout engine lost" if most == 0 else GIVEN
    return Limit(comparison="<=", value=most, origin=origin)


def _cut(metrics: Metrics, window: int, most: float | None) -> tuple[Check, ...]:
    name = "health.cut-responses"
    series = usable_series(metrics, CUT, name=name)
    if isinstance(series, Check):
        return (series,)
    limit = Limit(comparison="<", value=1.0, origin="where max_response_length cuts every response, no reward sees an end")
    step = min(series.steps, key=series.at)
    checks = [judged(name, series.at(step), limit, what=f"{CUT} at its lowest step {step}", metric=CUT, step=step)]
    if most is not None:
        last = series.last(min(window, len(series)))
        given = Limit(comparison="<=", value=most, origin=GIVEN)
        what = over(CUT, "mean", last.steps)
        checks.append(judged("health.cut-responses-late", last.mean(), given, what=what, metric=CUT))
    return tuple(checks)


def _length(metrics: Metrics, window: int) -> Check:
    name = "health.response-length"
    series = usable_series(metrics, LENGTH, name=name)
    if isinstance(series, Check):
        return series
    if len(series) == 1:
        return not_made(name, needed=2, metric=LENGTH)
    size = min(window, len(series) // 2)
    first, last = series.first(size), series.last(size)
    origin = (
        f"{_LENGTH_LEFT:g} of {first.mean():.4g} at steps {shown_steps(first.steps)}: answers this much shorter go round the task, "
        "whatever their reward"
    )
    limit = Limit(comparison=">=", value=_LENGTH_LEFT * first.mean(), origin=origin)
    return judged(name, last.mean(), limit, what=over(LENGTH, "mean", last.steps), metric=LENGTH)
