"""Two runs, step by step: limits at each step and on average, equal values, and steps that differ."""

from __future__ import annotations

import math

import pytest

from pytest_ascend_e2e.errors import CheckError
from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.records import Check
from pytest_ascend_e2e.verdict import check_same
from tests.fakes.logged_run import Rows, logged_run

KEY = "critic/rewards/mean"


def shifted(by: float, *steps: int, key: str = KEY) -> Metrics:
    rows = logged_run(15)
    for step in steps or rows:
        rows[step][key] += by
    return Metrics(rows)


def failures(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks if check.is_failed}


SOUND = Metrics(logged_run(15))


def test_a_run_is_the_same_as_itself_bit_by_bit_in_all_but_what_is_measured() -> None:
    slower = logged_run(15)
    for row in slower.values():
        row |= {"timing_s/step": 99.0, "perf/throughput": 1.0, "actor/perf/max_memory_allocated_gb": 3.0}

    checks = check_same(SOUND, Metrics(slower), is_bitwise=True)

    assert not failures(checks)
    assert {check.metric for check in checks} >= {KEY, "actor/grad_norm", "training/rollout_probs_diff_mean"}


def test_the_last_bit_of_one_step_fails_and_is_named() -> None:
    rows: Rows = logged_run(15)
    rows[9]["actor/grad_norm"] = math.nextafter(rows[9]["actor/grad_norm"], 1)

    failed = failures(check_same(SOUND, Metrics(rows), is_bitwise=True))

    assert {(check.metric, check.step) for check in failed.values()} == {("actor/grad_norm", 9)}


def test_one_step_beyond_the_maximum_fails_although_the_mean_is_kept() -> None:
    failed = failures(check_same(SOUND, shifted(0.08, 4), [KEY], max_limit=0.05, mean_limit=0.02))

    assert set(failed) == {f"same.{KEY}"}
    assert failed[f"same.{KEY}"].step == 4


def test_a_small_difference_at_every_step_fails_the_mean() -> None:
    assert set(failures(check_same(SOUND, shifted(0.03), [KEY], max_limit=0.05, mean_limit=0.02))) == {f"same.{KEY}.mean"}


def test_differences_within_both_limits_pass() -> None:
    assert not failures(check_same(SOUND, shifted(-0.01), [KEY], max_limit=0.05, mean_limit=0.02))


def test_runs_of_different_steps_fail_unless_it_is_said_where_to_compare() -> None:
    resumed = Metrics({step: row for step, row in logged_run(15).items() if step > 10})

    assert set(failures(check_same(SOUND, resumed, [KEY], max_limit=0.1))) == {"same.steps"}
    assert not failures(check_same(SOUND, resumed, [KEY], max_limit=0.1, steps=range(11, 16)))
    assert failures(check_same(SOUND, resumed, [KEY], max_limit=0.1, steps=range(10, 16)))[f"same.{KEY}"].step == 10


@pytest.mark.parametrize("is_first", [True, False])
def test_a_metric_that_one_run_lacks_fails(is_first: bool) -> None:
    lacking = Metrics({step: {key: value for key, value in row.items() if key != KEY} for step, row in logged_run(15).items()})
    pair = (lacking, SOUND) if is_first else (SOUND, lacking)

    assert f"same.{KEY}" in failures(check_same(*pair, is_bitwise=True))
    assert failures(check_same(*pair, [KEY], max_limit=1.0))


def test_a_nan_is_never_the_same() -> None:
    rows = logged_run(15)
    rows[3][KEY] = math.nan

    assert failures(check_same(Metrics(rows), Metrics(rows), is_bitwise=True))


def test_two_runs_without_a_metric_are_not_the_same() -> None:
    assert failures(check_same(Metrics({}), Metrics({}), is_bitwise=True))


@pytest.mark.parametrize(
    ("keys", "limits", "text"),
    [
        ([KEY], {}, "nothing limits"),
        ([], {"max_limit": 0.1}, "name the metrics"),
        ([KEY], {"max_limit": -0.1}, "0 or more"),
        ([KEY], {"mean_limit": math.nan}, "0 or more"),
        ([KEY], {"max_limit": 0.1, "is_bitwise": True}, "give either"),
    ],
)
def test_a_demand_that_makes_no_sense_is_refused(keys: list[str], limits: dict[str, float], text: str) -> None:
    with pytest.raises(CheckError, match=text):
        check_same(SOUND, SOUND, keys, **limits)  # type: ignore[arg-type]  # what a user may write
