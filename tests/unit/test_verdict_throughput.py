"""Throughput: warm-up, limits, baselines, and the devices that verl counted."""

from __future__ import annotations

import itertools

import pytest

from pytest_ascend_e2e.errors import CheckError
from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.records import Check, Verdict
from pytest_ascend_e2e.verdict import Baseline, check_throughput
from pytest_ascend_e2e.verdict.throughput import chance_of_peaks
from tests.fakes.logged_run import DEVICES, logged_run


def failures(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks if check.is_failed}


def baseline_of(metric: str, *figures: float) -> dict[str, Baseline]:
    return {metric: Baseline.of_runs(metric, figures, date="2026-11-20", commit="0a1b2c", device="A3", versions={"verl": "0.9.1"})}


def test_limits_that_are_kept_pass() -> None:
    checks = check_throughput(Metrics(logged_run(15)), devices=DEVICES, minimum=350, step_time_max_s=45, memory_max_gb=25)

    assert [check.name.partition(".")[2] for check in checks] == [
        "devices", "tokens", "step-time", "memory", "slow-step", "memory-growth",
    ]  # fmt: skip
    assert not failures(checks)


def test_a_limit_above_what_was_reached_fails() -> None:
    failed = failures(check_throughput(Metrics(logged_run(15)), devices=DEVICES, minimum=400))

    assert failed["throughput.tokens"].limit == 400
    assert "median of steps 2..15" in failed["throughput.tokens"].message


def test_the_median_of_one_step_is_told_as_that_step() -> None:
    checks = check_throughput(Metrics(logged_run(2)), devices=DEVICES, minimum=400)
    reported = check_throughput(Metrics(logged_run(2)), devices=DEVICES, report_only=True)

    assert failures(checks)["throughput.tokens"].message.startswith("perf/throughput at step 2 is ")
    assert any(check.message.startswith("perf/throughput at step 2 is ") for check in reported)


def test_the_slow_first_step_does_not_count() -> None:
    metrics = Metrics(logged_run(2))

    assert not failures(check_throughput(metrics, devices=DEVICES, step_time_max_s=45))
    assert failures(check_throughput(metrics, devices=DEVICES, step_time_max_s=45, warmup=0))


def test_a_warm_up_that_leaves_no_step_fails() -> None:
    failed = failures(check_throughput(Metrics(logged_run(3)), devices=DEVICES, minimum=1, warmup=3))

    assert "no step is left" in failed["throughput.tokens"].message


def test_steps_that_are_too_slow_fail() -> None:
    assert "throughput.step-time" in failures(check_throughput(Metrics(logged_run(15)), devices=DEVICES, step_time_max_s=40))


def test_memory_is_judged_at_its_peak() -> None:
    rows = logged_run(15)
    rows[8]["actor/perf/max_memory_allocated_gb"] = 30.0

    failed = failures(check_throughput(Metrics(rows), devices=DEVICES, memory_max_gb=25))

    assert failed["throughput.memory"].step == 8


def test_without_any_limit_the_check_fails() -> None:
    assert set(failures(check_throughput(Metrics(logged_run(15)), devices=DEVICES))) == {"throughput.no-limit"}


def test_report_only_claims_nothing_of_a_run_that_ends_with_its_warm_up() -> None:
    checks = check_throughput(Metrics(logged_run(1)), devices=DEVICES, report_only=True)

    assert not failures(checks)
    assert {check.name: check.verdict for check in checks}["throughput.reported"] is Verdict.NOT_MADE
    assert "throughput.tokens" in failures(check_throughput(Metrics(logged_run(1)), devices=DEVICES, minimum=1))


def test_report_only_shows_the_figure_and_claims_nothing() -> None:
    checks = check_throughput(Metrics(logged_run(15)), devices=DEVICES, report_only=True)

    assert not failures(checks)
    assert "reported only" in checks[-1].message
    assert checks[-1].value is not None


@pytest.mark.parametrize("key", ["perf/throughput", "perf/total_num_tokens", "perf/time_per_step"])
def test_report_only_fails_where_there_is_nothing_to_report(key: str) -> None:
    rows = {step: {name: value for name, value in row.items() if name != key} for step, row in logged_run(15).items()}

    assert failures(check_throughput(Metrics(rows), devices=DEVICES, report_only=True))


def test_a_run_on_fewer_devices_than_it_was_given_fails() -> None:
    failed = failures(check_throughput(Metrics(logged_run(15)), devices=4 * DEVICES, minimum=1))

    assert "given 16 devices and verl counted 4" in failed["throughput.devices"].message


def test_a_throughput_of_zero_fails() -> None:
    rows = logged_run(15)
    rows[3]["perf/throughput"] = 0.0

    assert failures(check_throughput(Metrics(rows), devices=DEVICES, minimum=1))["throughput.devices"].step == 3


def test_a_baseline_is_a_limit() -> None:
    metrics = Metrics(logged_run(15))

    assert not failures(check_throughput(metrics, devices=DEVICES, baselines=baseline_of("perf/throughput", 374, 378, 376)))
    assert failures(check_throughput(metrics, devices=DEVICES, baselines=baseline_of("perf/throughput", 474, 478, 476)))


def test_a_baseline_of_another_concern_is_no_limit_here() -> None:
    checks = check_throughput(
        Metrics(logged_run(15)), devices=DEVICES, baselines=baseline_of("critic/rewards/mean", 0.3, 0.31, 0.32)
    )

    assert set(failures(checks)) == {"throughput.no-limit"}


@pytest.mark.parametrize("minimum", [0.0, -1.0, float("nan")])
def test_a_minimum_that_cannot_fail_is_refused(minimum: float) -> None:
    with pytest.raises(CheckError, match="above 0"):
        check_throughput(Metrics(logged_run(15)), devices=DEVICES, minimum=minimum)


def test_a_run_without_devices_is_refused() -> None:
    with pytest.raises(CheckError, match="devices 0"):
        check_throughput(Metrics(logged_run(15)), devices=0, minimum=1)


def test_a_part_of_the_step_has_its_own_limit() -> None:
    rows = {step: {**row, "timing_s/gen": 20.0} for step, row in logged_run(15).items()}

    assert not failures(check_throughput(Metrics(rows), devices=DEVICES, parts_max_s={"gen": 25}))
    assert set(failures(check_throughput(Metrics(rows), devices=DEVICES, parts_max_s={"gen": 15}))) == {"throughput.gen"}


def test_a_part_that_verl_does_not_print_fails() -> None:
    failed = failures(check_throughput(Metrics(logged_run(15)), devices=DEVICES, parts_max_s={"ref": 15}))

    assert "use_kl_loss=True" in failed["throughput.ref"].message


def test_the_memory_of_the_host_has_a_limit() -> None:
    metrics = Metrics(logged_run(15))

    assert not failures(check_throughput(metrics, devices=DEVICES, host_memory_max_gb=320))
    assert set(failures(check_throughput(metrics, devices=DEVICES, host_memory_max_gb=300))) == {"throughput.host-memory"}


def test_one_stalled_step_fails_although_the_median_is_good() -> None:
    rows = logged_run(15)
    rows[9]["timing_s/step"] = 200.0

    failed = failures(check_throughput(Metrics(rows), devices=DEVICES, step_time_max_s=45))

    assert set(failed) == {"throughput.slow-step"}
    assert failed["throughput.slow-step"].step == 9


def test_a_step_that_saves_may_take_its_time() -> None:
    rows = logged_run(15)
    rows[9] |= {"timing_s/step": 200.0, "timing_s/save_checkpoint": 159.0}

    assert not failures(check_throughput(Metrics(rows), devices=DEVICES, step_time_max_s=45))


def test_a_run_too_short_for_single_steps_and_growth_says_that_they_were_not_judged() -> None:
    verdicts = {check.name: check.verdict for check in check_throughput(Metrics(logged_run(3)), devices=DEVICES, minimum=1)}

    assert verdicts["throughput.slow-step"] is Verdict.NOT_MADE
    assert verdicts["throughput.memory-growth"] is Verdict.NOT_MADE


def test_a_peak_of_memory_that_keeps_rising_fails_below_the_given_maximum() -> None:
    rows = logged_run(15)
    for step, row in rows.items():
        row["actor/perf/max_memory_allocated_gb"] = 20 + 0.4 * step

    failed = failures(check_throughput(Metrics(rows), devices=DEVICES, memory_max_gb=60))

    assert set(failed) == {"throughput.memory-growth"}
    assert "new peak at 8 of the steps 8..15" in failed["throughput.memory-growth"].message


@pytest.mark.parametrize("jump", [3, 12])
def test_a_peak_that_jumps_once_is_no_leak(jump: int) -> None:
    rows = logged_run(15)
    for step, row in rows.items():
        row["actor/perf/max_memory_allocated_gb"] = 20 + 5 * (step >= jump)

    assert not failures(check_throughput(Metrics(rows), devices=DEVICES, memory_max_gb=60))


def test_report_only_claims_nothing_of_single_steps_and_memory() -> None:
    rows = logged_run(15)
    rows[9]["timing_s/step"] = 200.0

    assert not failures(check_throughput(Metrics(rows), devices=DEVICES, report_only=True))


def test_the_chance_of_new_peaks_is_that_of_all_orders() -> None:
    orders = list(itertools.permutations(range(6)))
    counts = [sum(order[at] == max(order[: at + 1]) for at in range(3, 6)) for order in orders]

    for peaks in range(4):
        assert chance_of_peaks(3, 6, peaks) == pytest.approx(sum(count >= peaks for count in counts) / len(orders))
