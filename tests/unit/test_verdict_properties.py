"""What holds for every check: a NaN, an absence or an empty log never passes anything, and a number that decides says why."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ascend_e2e.errors import CheckError
from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.records import Check
from pytest_ascend_e2e.verdict import (
    Baseline,
    Direction,
    Limit,
    check_baseline,
    check_completed,
    check_each_value,
    check_every_step,
    check_level,
    check_logprob_consistency,
    check_median,
    check_rewards,
    check_throughput,
    check_trend,
    check_update_health,
)
from tests.fakes.logged_run import DEVICES, logged_run

KEY = "actor/entropy"
ANY = Limit(comparison=">=", value=-1e300)
BASELINE = Baseline(
    metric=KEY,
    value=0.7,
    spread=1.0,
    runs=3,
    direction=Direction.TWO_SIDED,
    date="2026-11-20",
    commit="0a1b2c",
    device="A3",
    versions={"verl": "0.9.1"},
)

CHECKS: dict[str, tuple[Callable[[Metrics], Sequence[Check]], Sequence[str]]] = {
    "completed": (lambda metrics: check_completed(metrics, steps=12), sorted(logged_run(1)[1])),
    "rewards": (
        lambda metrics: check_rewards(metrics, minimum=0.1, trend="rises"),
        ["critic/rewards/mean", "critic/rewards/max", "critic/rewards/min", "critic/advantages/max", "critic/advantages/min"],
    ),
    "logprobs": (
        lambda metrics: check_logprob_consistency(metrics, has_reference=True),
        ["actor/kl_loss", *(key for key in sorted(logged_run(1)[1]) if key.startswith(("training/rollout", "rollout_corr/")))],
    ),
    "health": (
        lambda metrics: check_update_health(metrics, cut_max=0.5),
        [
            "actor/entropy",
            "actor/grad_norm",
            "actor/lr",
            "actor/pg_clipfrac",
            "critic/advantages/max",
            "response/aborted_ratio",
            "response_length/clip_ratio",
            "response_length/mean",
        ],
    ),
    "throughput": (
        lambda metrics: check_throughput(metrics, devices=DEVICES, minimum=1, memory_max_gb=99),
        ["perf/throughput", "perf/time_per_step", "perf/total_num_tokens", "actor/perf/max_memory_allocated_gb"],
    ),
    "reported": (lambda metrics: check_throughput(metrics, devices=DEVICES, report_only=True), ["perf/throughput"]),
    "every-step": (lambda metrics: check_every_step(metrics, KEY), [KEY]),
    "each-value": (lambda metrics: check_each_value(metrics, KEY, ANY), [KEY]),
    "level": (lambda metrics: check_level(metrics, KEY, ANY, window=3), [KEY]),
    "median": (lambda metrics: check_median(metrics, KEY, ANY, warmup=0), [KEY]),
    "trend": (lambda metrics: check_trend(metrics, KEY, "falls"), [KEY]),
    "not-falling": (lambda metrics: check_trend(metrics, KEY, "not-rising"), [KEY]),
    "baseline": (lambda metrics: check_baseline(metrics, {KEY: BASELINE}, warmup=0), [KEY]),
}


def is_red(checks: Sequence[Check]) -> bool:
    return any(check.is_failed for check in checks)


@pytest.mark.parametrize("name", CHECKS)
def test_a_sound_run_passes(name: str) -> None:
    assert not is_red(CHECKS[name][0](Metrics(logged_run(12))))


@settings(max_examples=25, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("name", CHECKS)
def test_a_value_that_is_not_finite_never_passes(name: str, data: st.DataObject) -> None:
    check, keys = CHECKS[name]
    rows = logged_run(12)
    bad = data.draw(st.sampled_from([math.nan, math.inf, -math.inf]))
    # Beyond the warm-up of a median and the first step of a trainer, wherever it stands.
    for step in data.draw(st.sets(st.integers(2, 12), min_size=1)):
        rows[step][data.draw(st.sampled_from(list(keys)))] = bad

    assert is_red(check(Metrics(rows)))


@settings(max_examples=15, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("name", CHECKS)
def test_an_absent_value_never_passes(name: str, data: st.DataObject) -> None:
    check, keys = CHECKS[name]
    rows = logged_run(12)
    key = data.draw(st.sampled_from([key for key in keys if key != "training/global_step"]))
    for step in data.draw(st.sets(st.integers(2, 12), min_size=1)):
        del rows[step][key]

    assert is_red(check(Metrics(rows)))


@pytest.mark.parametrize("name", CHECKS)
def test_an_empty_log_never_passes(name: str) -> None:
    assert is_red(CHECKS[name][0](Metrics({})))


@pytest.mark.parametrize("name", CHECKS)
def test_a_log_of_validation_only_never_passes(name: str) -> None:
    assert is_red(CHECKS[name][0](Metrics({0: {"val-core/x/acc/mean@1": 0.5}})))


@pytest.mark.parametrize("name", CHECKS)
def test_every_limit_says_where_it_comes_from(name: str) -> None:
    checks = CHECKS[name][0](Metrics(logged_run(12)))

    assert all(check.origin and check.comparison for check in checks if check.limit is not None)
    assert all(check.message and check.name for check in checks)


@pytest.mark.parametrize("comparison", [">=", ">", "<=", "<", "=="])
def test_a_nan_keeps_no_limit(comparison: str) -> None:
    limit = Limit(comparison=comparison, value=0.0)

    assert not any(limit.allows(value) for value in (math.nan, math.inf, -math.inf))


@pytest.mark.parametrize(
    ("comparison", "value", "origin"), [("~", 1.0, "x"), (">=", math.nan, "x"), ("<=", math.inf, "x"), (">=", 1.0, " ")]
)
def test_a_limit_that_says_nothing_is_refused(comparison: str, value: float, origin: str) -> None:
    with pytest.raises(CheckError):
        Limit(comparison=comparison, value=value, origin=origin)


@given(
    st.sampled_from([">=", "<=", "=="]),
    st.floats(-10, 10),
    st.dictionaries(st.integers(1, 9), st.floats(-10, 10), min_size=1),
)
def test_if_the_worst_value_keeps_the_limit_all_do(comparison: str, value: float, values: dict[int, float]) -> None:
    limit = Limit(comparison=comparison, value=value)

    assert limit.allows(values[limit.worst(values)]) == all(map(limit.allows, values.values()))
