"""Completion: steps, gaps, values that are not finite, and problems of the log."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from pytest_ascend_e2e.errors import CheckError
from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.records import Check
from pytest_ascend_e2e.verdict import check_completed
from tests.fakes.logged_run import Rows, logged_run


def failures(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks if check.is_failed}


def test_a_sound_run_is_completed() -> None:
    checks = check_completed(Metrics(logged_run(15)), steps=15)

    assert len(checks) == 6
    assert not failures(checks)


def spoil_last_step(rows: Rows) -> None:
    del rows[15]


def spoil_middle_step(rows: Rows) -> None:
    del rows[7]


def add_step(rows: Rows) -> None:
    rows[16] = dict(rows[15], **{"training/global_step": 16.0})


def add_foreign_validation(rows: Rows) -> None:
    rows[40] = {"val-core/x/acc/mean@1": 0.5}


def leave_validation_only(rows: Rows) -> None:
    rows[15] = {"val-core/x/acc/mean@1": 0.5}


def train_step_zero(rows: Rows) -> None:
    rows[0] = dict(rows[1], **{"training/global_step": 0.0})


def lose_all(rows: Rows) -> None:
    rows.clear()


@pytest.mark.parametrize(
    "spoil",
    [spoil_last_step, spoil_middle_step, add_step, add_foreign_validation, leave_validation_only, train_step_zero, lose_all],
)
def test_other_steps_than_those_asked_for_fail(spoil: Callable[[Rows], None]) -> None:
    rows = logged_run(15)
    spoil(rows)

    checks = check_completed(Metrics(rows), steps=15)

    assert "completed.steps" in failures(checks)


def test_the_validation_before_the_first_step_is_allowed() -> None:
    rows = {0: {"val-core/x/acc/mean@1": 0.5}, **logged_run(15)}

    assert not failures(check_completed(Metrics(rows), steps=15))


def test_a_resumed_run_begins_at_its_first_step() -> None:
    rows = {step: row for step, row in logged_run(15).items() if step > 10}

    assert not failures(check_completed(Metrics(rows), steps=15, first_step=11))
    assert "completed.steps" in failures(check_completed(Metrics(rows), steps=15))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_fails_with_metric_and_step(value: float) -> None:
    rows = logged_run(15)
    rows[6]["actor/pg_loss"] = value

    failed = failures(check_completed(Metrics(rows), steps=15))["completed.finite"]

    assert (failed.metric, failed.step) == ("actor/pg_loss", 6)


def test_a_nan_of_a_validation_fails() -> None:
    rows = logged_run(15)
    rows[15]["val-core/x/acc/mean@1"] = math.nan

    assert "completed.finite" in failures(check_completed(Metrics(rows), steps=15))


def test_a_metric_that_is_absent_at_one_step_fails_with_metric_and_step() -> None:
    rows = logged_run(15)
    del rows[9]["actor/entropy"]

    failed = failures(check_completed(Metrics(rows), steps=15))["completed.every-metric"]

    assert (failed.metric, failed.step) == ("actor/entropy", 9)


def test_a_metric_that_verl_prints_at_some_steps_only_may_be_absent() -> None:
    rows = logged_run(15)
    rows[10]["timing_s/save_checkpoint"] = 3.0

    assert not failures(check_completed(Metrics(rows), steps=15))


def test_patterns_of_the_test_may_be_absent_at_some_steps() -> None:
    rows = logged_run(15)
    for step in (1, 2):
        rows[step] = {key: value for key, value in rows[step].items() if not key.startswith("actor/")}

    assert "completed.every-metric" in failures(check_completed(Metrics(rows), steps=15))
    assert not failures(check_completed(Metrics(rows), steps=15, sparse=("actor/*",)))


def test_a_required_metric_that_is_absent_fails_and_says_what_prints_it() -> None:
    rows = {step: {key: value for key, value in row.items() if key != "actor/grad_norm"} for step, row in logged_run(15).items()}

    failed = failures(check_completed(Metrics(rows), steps=15))["completed.every-metric"]

    assert "actor/grad_norm is not among" in failed.message
    assert "trainer.critic_warmup" in failed.message


def test_a_problem_of_the_log_fails() -> None:
    metrics = Metrics(logged_run(15), problems=["line 9 is broken"])

    assert "line 9 is broken" in failures(check_completed(metrics, steps=15))["completed.log"].message


def test_a_step_number_that_is_not_verls_fails() -> None:
    rows = logged_run(15)
    rows[4]["training/global_step"] = 5.0

    assert failures(check_completed(Metrics(rows), steps=15))["completed.numbering"].step == 4


def test_a_gradient_that_is_zero_at_every_step_fails() -> None:
    rows = logged_run(15)
    for row in rows.values():
        row["actor/grad_norm"] = 0.0

    assert "completed.gradient" in failures(check_completed(Metrics(rows), steps=15))


def test_supervised_training_requires_other_metrics() -> None:
    rows = {step: {"train/loss": 1 / step} for step in range(1, 4)}

    assert not failures(check_completed(Metrics(rows), steps=3, required=("train/loss",)))


@pytest.mark.parametrize(("steps", "first_step"), [(0, 1), (5, 0), (5, 6)])
def test_steps_that_cannot_be_asked_for_are_refused(steps: int, first_step: int) -> None:
    with pytest.raises(CheckError, match="1 <= first_step <= steps"):
        check_completed(Metrics({}), steps=steps, first_step=first_step)
