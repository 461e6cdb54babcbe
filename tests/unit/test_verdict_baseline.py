"""Baselines: direction, tolerance, provenance, and their form as plain data."""

from __future__ import annotations

import copy
import dataclasses
import math
import statistics
from typing import Any

import pytest

from pytest_ascend_e2e.errors import BaselineError
from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.verdict import Baseline, Direction, check_baseline, direction_of, parse_baselines, to_mapping
from tests.fakes.logged_run import logged_run, seeded

DATA: dict[str, Any] = {
    "date": "2026-11-20",
    "commit": "0a1b2c",
    "device": "A3 x 4",
    "versions": {"verl": "0.9.1", "vllm": "0.11.0"},
    "runs": 5,
    "metrics": {
        "perf/throughput": {"value": 376.0, "spread": 3.0, "direction": "higher-is-better"},
        "timing_s/step": {"value": 41.0, "spread": 0.4, "direction": "lower-is-better", "runs": 6},
        "response_length/mean": {"value": 410, "spread": 6, "direction": "two-sided", "floor": 0.05, "reason": "new reward"},
    },
}


def one(direction: Direction, *, value: float, spread: float = 1.0, metric: str = "a/b") -> dict[str, Baseline]:
    return {
        metric: Baseline(
            metric=metric,
            value=value,
            spread=spread,
            runs=5,
            direction=direction,
            date="2026-11-20",
            commit="0a1b2c",
            device="A3",
            versions={"vllm": "0.11.0"},
        )
    }


def run_of(*values: float, key: str = "a/b") -> Metrics:
    return Metrics({step: {key: value} for step, value in enumerate(values, start=1)})


def test_a_run_like_those_of_the_baseline_passes() -> None:
    checks = check_baseline(Metrics(logged_run(15)), parse_baselines(DATA, origin="baselines.yaml"))

    assert [check.name for check in checks if check.is_failed] == []
    assert len(checks) == 3
    assert all("commit 0a1b2c" in check.origin for check in checks)


@pytest.mark.parametrize(
    ("direction", "value", "fails"),
    [
        (Direction.HIGHER_IS_BETTER, 90.0, True),
        (Direction.HIGHER_IS_BETTER, 110.0, False),
        (Direction.LOWER_IS_BETTER, 90.0, False),
        (Direction.LOWER_IS_BETTER, 110.0, True),
        (Direction.TWO_SIDED, 90.0, True),
        (Direction.TWO_SIDED, 110.0, True),
        (Direction.TWO_SIDED, 101.0, False),
    ],
)
def test_only_the_side_that_is_a_regression_fails(direction: Direction, value: float, fails: bool) -> None:
    (check,) = check_baseline(run_of(0.0, value, value), one(direction, value=100.0))

    assert check.is_failed is fails


@pytest.mark.parametrize(("direction", "value"), [(Direction.HIGHER_IS_BETTER, 110.0), (Direction.LOWER_IS_BETTER, 90.0)])
def test_a_value_that_is_far_better_passes_and_calls_the_baseline_stale(direction: Direction, value: float) -> None:
    (check,) = check_baseline(run_of(0.0, value), one(direction, value=100.0))

    assert not check.is_failed
    assert "the baseline is stale" in check.message


def test_a_failure_names_what_changed_since_the_baseline() -> None:
    (check,) = check_baseline(run_of(0.0, 50.0), one(Direction.HIGHER_IS_BETTER, value=100.0), versions={"vllm": "0.11.2"})

    assert "vllm 0.11.0 -> 0.11.2" in check.message


def test_a_baseline_of_another_device_fails() -> None:
    (check,) = check_baseline(run_of(0.0, 100.0), one(Direction.HIGHER_IS_BETTER, value=100.0), device="A2")

    assert check.is_failed
    assert "'A3'" in check.message


def test_a_missing_metric_fails() -> None:
    (check,) = check_baseline(run_of(0.0, 1.0), one(Direction.TWO_SIDED, value=1.0, metric="perf/throughput"))

    assert check.is_failed


def test_no_baseline_at_all_fails() -> None:
    (check,) = check_baseline(run_of(1.0), {})

    assert check.is_failed


def test_memory_is_held_at_its_peak_of_all_steps() -> None:
    key = "actor/perf/max_memory_allocated_gb"

    (check,) = check_baseline(run_of(30.0, 20.0, 20.0, key=key), one(Direction.LOWER_IS_BETTER, value=20.0, metric=key))

    assert check.value == 30.0


def test_the_tolerance_is_a_prediction_limit_and_rarely_alarms() -> None:
    """A run drawn like the five of its baseline fails in about 1 % of cases, whatever the spread."""
    noise = seeded(11)
    cases = 4000
    alarms = 0
    for _ in range(cases):
        figures = [noise.gauss(100, 5) for _ in range(5)]
        mean, spread = statistics.fmean(figures), statistics.stdev(figures)
        baseline = one(Direction.HIGHER_IS_BETTER, value=mean, spread=spread)["a/b"]
        alarms += noise.gauss(100, 5) < mean - baseline.tolerance

    assert alarms <= cases * (0.01 + 2 * math.sqrt(0.01 * 0.99 / cases))


def test_the_floor_keeps_a_lucky_spread_from_alarming() -> None:
    baseline = one(Direction.HIGHER_IS_BETTER, value=100.0, spread=0.0)["a/b"]

    assert baseline.tolerance == 2.0


def test_a_baseline_is_made_of_several_runs() -> None:
    baseline = Baseline.of_runs(
        "perf/throughput", [70.0, 74.0, 72.0], date="2026-11-20", commit="c", device="A3", versions={"verl": "1"}
    )

    assert (baseline.value, baseline.spread, baseline.runs) == (72.0, 2.0, 3)
    assert baseline.direction is Direction.HIGHER_IS_BETTER


@pytest.mark.parametrize("figures", [[70.0], [70.0, 71.0], [70.0, 71.0, math.nan]])
def test_too_few_or_broken_figures_give_no_baseline(figures: list[float]) -> None:
    with pytest.raises(BaselineError, match="3 runs or more"):
        Baseline.of_runs("perf/throughput", figures, date="2026-11-20", commit="c", device="A3", versions={"verl": "1"})


def test_a_baseline_survives_the_round_trip() -> None:
    baselines = parse_baselines(DATA, origin="baselines.yaml")

    again = parse_baselines({"metrics": {key: to_mapping(baseline) for key, baseline in baselines.items()}}, origin="again")

    assert again == baselines


def test_what_a_metric_says_wins_over_what_stands_beside() -> None:
    assert parse_baselines(DATA, origin="baselines.yaml")["timing_s/step"].runs == 6


@pytest.mark.parametrize("name", ["date", "commit", "device", "versions", "runs"])
def test_a_baseline_without_provenance_is_refused(name: str) -> None:
    data = copy.deepcopy(DATA)
    del data[name], data["metrics"]["timing_s/step"], data["metrics"]["response_length/mean"]

    with pytest.raises(BaselineError, match=f"baselines.yaml: perf/throughput: {name} is missing"):
        parse_baselines(data, origin="baselines.yaml")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("value", "fast", "expected a number"),
        ("value", math.nan, "finite"),
        ("value", True, "expected a number"),
        ("spread", -1.0, "standard deviation"),
        ("runs", 1, "3 runs or more"),
        ("runs", 2.5, "number of runs"),
        ("direction", "up", "expected one of higher-is-better"),
        ("floor", 1.5, "part of the value"),
        ("versions", ["verl"], "expected a mapping"),
        ("versions", {}, "versions is empty"),
        ("commit", "", "commit is empty"),
        ("tolerance", 0.1, "no field of a baseline"),
        ("given_tolerance", 0.1, "no other baseline has one"),
        ("false_alarms", 0.0, "probability"),
        ("ceiling", math.inf, "ceiling"),
        ("ceiling", "high", "expected a number"),
        ("run_ids", "one", "list of names"),
    ],
)
def test_a_field_that_cannot_be_used_is_refused(name: str, value: object, text: str) -> None:
    data = copy.deepcopy(DATA)
    data["metrics"]["perf/throughput"][name] = value

    with pytest.raises(BaselineError, match=text):
        parse_baselines(data, origin="baselines.yaml")


def test_all_problems_come_at_once() -> None:
    data = copy.deepcopy(DATA)
    data["metrics"]["perf/throughput"]["value"] = "fast"
    data["metrics"]["timing_s/step"]["direction"] = "up"

    with pytest.raises(BaselineError) as caught:
        parse_baselines(data, origin="baselines.yaml")

    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("data", [None, [], {}, {"metrics": {}}, {"metrics": []}, {"metrics": {"a/b": 3}}])
def test_what_is_no_mapping_of_baselines_is_refused(data: object) -> None:
    with pytest.raises(BaselineError, match="expected a mapping"):
        parse_baselines(data, origin="baselines.yaml")


@pytest.mark.parametrize(
    ("key", "direction"),
    [
        ("perf/throughput", Direction.HIGHER_IS_BETTER),
        ("timing_s/update_actor", Direction.LOWER_IS_BETTER),
        ("actor/perf/max_memory_allocated_gb", Direction.LOWER_IS_BETTER),
        ("training/rollout_probs_diff_mean", Direction.LOWER_IS_BETTER),
        ("actor/entropy", Direction.TWO_SIDED),
    ],
)
def test_each_metric_has_its_direction(key: str, direction: Direction) -> None:
    assert direction_of(key) is direction


@pytest.mark.parametrize("false_alarms", [0.05, 0.01, 0.001])
@pytest.mark.parametrize("direction", [Direction.HIGHER_IS_BETTER, Direction.TWO_SIDED])
def test_the_rate_of_false_alarms_is_the_one_that_was_wanted(false_alarms: float, direction: Direction) -> None:
    noise = seeded(17)
    cases = 2000
    alarms = 0
    for _ in range(cases):
        figures = [noise.gauss(100, 5) for _ in range(5)]
        baseline = dataclasses.replace(
            one(direction, value=statistics.fmean(figures), spread=statistics.stdev(figures))["a/b"],
            false_alarms=false_alarms,
            floor=0.0,
        )
        (check,) = check_baseline(run_of(0.0, noise.gauss(100, 5)), {"a/b": baseline})
        alarms += check.is_failed

    assert alarms == pytest.approx(cases * false_alarms, abs=4 * math.sqrt(cases * false_alarms) + 1)


@pytest.mark.parametrize(
    ("direction", "ceiling", "value"),
    [(Direction.LOWER_IS_BETTER, 101.0, 101.5), (Direction.HIGHER_IS_BETTER, 99.0, 98.5), (Direction.TWO_SIDED, 101.0, 101.5)],
)
def test_a_ceiling_holds_inside_the_tolerance(direction: Direction, ceiling: float, value: float) -> None:
    held = one(direction, value=100.0)
    tight = {"a/b": dataclasses.replace(held["a/b"], ceiling=ceiling)}

    assert not check_baseline(run_of(0.0, value), held)[0].is_failed
    assert check_baseline(run_of(0.0, value), tight)[0].is_failed
    assert "ceiling" in check_baseline(run_of(0.0, value), tight)[0].origin


def published(**more: object) -> dict[str, Any]:
    entry = {"value": 68.56, "direction": "higher-is-better", "published": "somebody", "given_tolerance": 3.4}
    return {"date": "2026-08-24", "device": "Ascend910B3", "metrics": {"perf/throughput": {**entry, **more}}}


def test_a_published_figure_is_held_with_its_own_tolerance_and_says_so() -> None:
    baselines = parse_baselines(published(), origin="x")

    (sound,) = check_baseline(run_of(0.0, 66.0, key="perf/throughput"), baselines)
    (slow,) = check_baseline(run_of(0.0, 60.0, key="perf/throughput"), baselines)

    assert not sound.is_failed
    assert slow.is_failed
    assert "one run" in slow.origin
    assert parse_baselines({"metrics": {"perf/throughput": to_mapping(baselines["perf/throughput"])}}, origin="y") == baselines


@pytest.mark.parametrize("tolerance", [None, 0.0, math.nan])
def test_a_published_figure_without_a_tolerance_is_refused(tolerance: float | None) -> None:
    with pytest.raises(BaselineError, match="given_tolerance"):
        parse_baselines(published(given_tolerance=tolerance), origin="x")


@pytest.mark.parametrize("direction", list(Direction))
def test_a_check_carries_what_its_baseline_expects_from_least_to_most(direction: Direction) -> None:
    baselines = one(direction, value=100.0)

    (check,) = check_baseline(run_of(0.0, 90.0, 90.0), baselines)

    tolerance = baselines["a/b"].tolerance
    assert check.band == (100.0 - tolerance, 100.0 + tolerance)
    assert check.limit in check.band
