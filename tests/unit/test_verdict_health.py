"""Update health: a sound run passes each check, and each is seen to fail on the fault that it is for."""

from __future__ import annotations

import math

import pytest

from pytest_ascend_e2e.errors import CheckError
from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.records import Check
from pytest_ascend_e2e.verdict import check_update_health
from tests.fakes.logged_run import Rows, logged_run

NAMES = {
    "health.gradient",
    "health.gradient-size",
    "health.learning-rate",
    "health.entropy-collapse",
    "health.entropy-explosion",
    "health.clip-fraction",
    "health.aborted",
    "health.cut-responses",
    "health.response-length",
}


def failures(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks if check.is_failed}


def with_values(key: str, *values: float) -> Metrics:
    """Return a sound run whose metric has these values, the last one at all further steps."""
    rows = logged_run(15)
    for step, row in rows.items():
        row[key] = values[min(step, len(values)) - 1]
    return Metrics(rows)


def test_a_sound_run_is_healthy() -> None:
    checks = check_update_health(Metrics(logged_run(15)), lr=1e-6)

    assert {check.name for check in checks} == NAMES
    assert not failures(checks)
    assert all(check.origin for check in checks)


def test_a_gradient_of_zero_at_a_step_with_advantages_fails() -> None:
    rows = logged_run(15)
    rows[6]["actor/grad_norm"] = 0.0

    failed = failures(check_update_health(Metrics(rows)))

    assert set(failed) == {"health.gradient"}
    assert failed["health.gradient"].step == 6


def test_a_gradient_of_zero_at_a_step_without_advantages_is_sound() -> None:
    rows = logged_run(15)
    rows[6] |= {"actor/grad_norm": 0.0, "critic/advantages/max": 0.0, "critic/advantages/min": 0.0}

    assert not failures(check_update_health(Metrics(rows)))


def test_a_run_without_any_advantage_fails() -> None:
    rows: Rows = {step: {**row, "critic/advantages/max": 0.0, "critic/advantages/min": 0.0} for step, row in logged_run(15).items()}

    assert "no step of 1..15 has an advantage" in failures(check_update_health(Metrics(rows)))["health.gradient"].message


def test_a_gradient_that_explodes_fails_with_its_step() -> None:
    rows = logged_run(15)
    rows[11]["actor/grad_norm"] = 400.0

    assert failures(check_update_health(Metrics(rows)))["health.gradient-size"].step == 11


def test_a_given_size_of_the_gradient_is_the_limit() -> None:
    failed = failures(check_update_health(Metrics(logged_run(15)), grad_norm_max=0.5))["health.gradient-size"]

    assert (failed.limit, failed.origin) == (0.5, "given by the test")


def test_a_learning_rate_of_zero_fails() -> None:
    assert set(failures(check_update_health(with_values("actor/lr", 0.0)))) == {"health.learning-rate"}


@pytest.mark.parametrize("rate", [1e-5, 1e-7])
def test_another_learning_rate_than_the_recipes_fails(rate: float) -> None:
    assert set(failures(check_update_health(with_values("actor/lr", rate), lr=1e-6))) == {"health.learning-rate"}


def test_a_learning_rate_that_rises_to_the_recipes_is_sound() -> None:
    assert not failures(check_update_health(with_values("actor/lr", 0.0, 5e-7, 1e-6), lr=1e-6))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("health.entropy-collapse", (0.8, 0.8, 0.8, 0.8, 0.8, 0.4, 0.1, 0.01, 0.001)),
        ("health.entropy-collapse", (0.0,)),
        ("health.entropy-explosion", (0.3, 0.3, 0.3, 0.3, 0.3, 1.0, 3.0, 7.0)),
    ],
)
def test_an_entropy_that_collapses_or_explodes_fails(name: str, values: tuple[float, ...]) -> None:
    assert set(failures(check_update_health(with_values("actor/entropy", *values)))) == {name}


def test_growing_from_next_to_nothing_is_no_explosion() -> None:
    assert not failures(check_update_health(with_values("actor/entropy", 0.01, 0.01, 0.01, 0.01, 0.01, 0.3)))


@pytest.mark.parametrize(
    ("limits", "name"), [({"entropy_min": 0.9}, "health.entropy-collapse"), ({"entropy_max": 0.5}, "health.entropy-explosion")]
)
def test_a_given_entropy_is_the_limit(limits: dict[str, float], name: str) -> None:
    failed = failures(check_update_health(Metrics(logged_run(15)), **limits))  # type: ignore[arg-type]  # one of several numbers

    assert set(failed) == {name}
    assert failed[name].origin == "given by the test"


def test_updates_of_which_most_tokens_are_clipped_fail() -> None:
    assert set(failures(check_update_health(with_values("actor/pg_clipfrac", 0.1, 0.1, 0.7, 0.1)))) == {"health.clip-fraction"}
    assert failures(check_update_health(Metrics(logged_run(15)), clip_fraction_max=0.001))


def test_a_loss_that_clips_sequences_may_clip_most_tokens_and_never_all() -> None:
    sound, broken = (with_values("actor/pg_clipfrac", 0.58, 0.77, highest, 0.69) for highest in (0.83, 1.0))

    assert not failures(check_update_health(sound, clips_sequences=True))
    assert failures(check_update_health(broken, clips_sequences=True))["health.clip-fraction"].step == 3
    assert failures(check_update_health(sound, clips_sequences=True, clip_fraction_max=0.8))


CRITIC = {"critic/grad_norm": 0.4, "critic/lr": 1e-5}


@pytest.mark.parametrize(
    ("spoilt", "name"),
    [
        ({}, None),
        ({"critic/grad_norm": 0.0}, "health.critic-gradient"),
        ({"critic/grad_norm": 60.0}, "health.critic-gradient-size"),
        ({"critic/lr": 2e-5}, "health.critic-learning-rate"),
    ],
)
def test_a_critic_that_is_not_updated_as_asked_fails(spoilt: dict[str, float], name: str | None) -> None:
    rows = logged_run(15)
    for step, row in rows.items():
        row.update(CRITIC | (spoilt if step == 7 else {}))

    failed = failures(check_update_health(Metrics(rows), has_critic=True, critic_lr=1e-5))

    assert set(failed) == ({name} if name else set())
    assert not failures(check_update_health(Metrics(rows)))
    assert len(failures(check_update_health(Metrics(logged_run(15)), has_critic=True))) == 3


def test_an_aborted_response_fails_unless_it_is_allowed() -> None:
    metrics = with_values("response/aborted_ratio", 0.0, 0.0, 0.02, 0.0)

    assert failures(check_update_health(metrics))["health.aborted"].step == 3
    assert not failures(check_update_health(metrics, aborted_max=0.05))


def test_responses_that_are_all_cut_at_every_step_fail() -> None:
    assert set(failures(check_update_health(with_values("response_length/clip_ratio", 1.0)))) == {"health.cut-responses"}
    assert not failures(check_update_health(with_values("response_length/clip_ratio", 1.0, 0.99)))


def test_a_given_share_of_cut_responses_holds_for_the_last_steps() -> None:
    metrics = with_values("response_length/clip_ratio", 0.9, 0.9, 0.9, 0.2)

    assert not failures(check_update_health(metrics, cut_max=0.3))
    assert set(failures(check_update_health(metrics, cut_max=0.1))) == {"health.cut-responses-late"}


def test_answers_that_shrink_to_a_few_tokens_fail_whatever_their_reward() -> None:
    metrics = with_values("response_length/mean", 410, 410, 410, 410, 410, 200, 60, 12, 3)

    assert set(failures(check_update_health(metrics))) == {"health.response-length"}


@pytest.mark.parametrize(
    "key",
    [
        "actor/grad_norm",
        "actor/lr",
        "actor/entropy",
        "actor/pg_clipfrac",
        "critic/advantages/max",
        "response/aborted_ratio",
        "response_length/clip_ratio",
        "response_length/mean",
    ],
)
@pytest.mark.parametrize("value", [None, math.nan])
def test_a_metric_that_is_absent_or_not_a_number_fails(key: str, value: float | None) -> None:
    rows = logged_run(15)
    for row in rows.values():
        if value is None:
            del row[key]
        else:
            row[key] = value

    assert key in {check.metric for check in failures(check_update_health(Metrics(rows))).values()}


def test_the_first_steps_of_a_critic_warm_up_have_no_update_to_judge() -> None:
    rows = logged_run(15)
    for step in (1, 2):
        rows[step] = {key: value for key, value in rows[step].items() if not key.startswith("actor/")}

    assert not failures(check_update_health(Metrics(rows)))


def test_a_run_of_one_step_can_be_healthy() -> None:
    assert not failures(check_update_health(Metrics(logged_run(1))))


def test_numbers_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(CheckError, match="window 0"):
        check_update_health(Metrics(logged_run(5)), window=0)
    with pytest.raises(CheckError, match="lr 0"):
        check_update_health(Metrics(logged_run(5)), lr=0)
