"""Numbers that went wrong are found in the step lines where no error explains the failure."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pytest_ascend_e2e.diagnosis import diagnose
from pytest_ascend_e2e.records import Kind

SOUND = {
    "training/global_step": "1",
    "actor/grad_norm": "0.5",
    "critic/rewards/mean": "0.4",
    "critic/rewards/max": "1.0",
    "critic/rewards/min": "0.0",
    "training/rollout_probs_diff_valid": "1",
    "training/rollout_probs_diff_mean": "0.004",
    "training/rollout_actor_probs_pearson_corr": "0.998",
}


def step(number: int, /, **changes: str) -> bytes:
    values = {**SOUND, **{key.replace("__", "/"): value for key, value in changes.items()}}
    return f"(TaskRunner pid=7) step:{number} - {' - '.join(f'{key}:{value}' for key, value in values.items())}\n".encode()


def finish(steps: Iterable[bytes]) -> list[bytes]:
    return [*steps, b"Final validation metrics: None\n"]


def test_sound_numbers_are_no_cause() -> None:
    assert diagnose(finish(step(number) for number in range(1, 40))).kind is Kind.UNKNOWN


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "np.float64(nan)", "NaN"])
def test_the_first_value_that_is_not_finite_is_the_cause(value: str) -> None:
    found = diagnose(finish([step(1), step(2, actor__grad_norm=value), step(3, actor__grad_norm="nan"), step(4)]))

    assert found.kind is Kind.NUMERIC
    assert found.line.startswith("step:2 - ")
    assert f"actor/grad_norm:{value}" in found.line + ")"
    assert not found.infra


def test_a_masked_difference_may_be_nan() -> None:
    masked = step(2, training__rollout_probs_diff_valid="0", training__rollout_probs_diff_mean="nan")

    assert diagnose(finish([step(1), masked])).kind is Kind.UNKNOWN


def test_log_probs_apart_in_the_last_steps_are_the_cause() -> None:
    found = diagnose(finish([step(1), *(step(number, training__rollout_probs_diff_mean="0.11") for number in (2, 3))]))

    assert found.kind is Kind.NUMERIC
    assert "training/rollout_probs_diff_mean:0.11" in found.line


def test_one_outlier_of_the_log_probs_is_no_cause() -> None:
    assert diagnose(finish([step(1), step(2, training__rollout_probs_diff_mean="0.11"), step(3)])).kind is Kind.UNKNOWN


def test_a_low_correlation_is_the_cause() -> None:
    steps = [step(number, training__rollout_actor_probs_pearson_corr="0.2") for number in (1, 2)]

    assert "pearson_corr:0.2" in diagnose(finish(steps)).line


@pytest.mark.parametrize("zero", ["0.0", "0", "np.float64(0.0)"])
def test_rewards_that_are_all_zero_are_the_cause(zero: str) -> None:
    found = diagnose([step(number, critic__rewards__max=zero, critic__rewards__min=zero) for number in (8, 9)])

    assert found.kind is Kind.NUMERIC
    assert found.line == f"step:8 - … - critic/rewards/max:{zero} - …"


def test_rewards_that_were_zero_earlier_are_no_cause() -> None:
    assert diagnose(finish([step(1, critic__rewards__max="0.0"), step(2)])).kind is Kind.UNKNOWN


def test_a_reward_that_is_lost_is_the_cause() -> None:
    rewards = ["0.7"] * 20 + ["0.2"] * 5

    found = diagnose(finish(step(number, critic__rewards__mean=reward) for number, reward in enumerate(rewards, 1)))

    assert found.kind is Kind.NUMERIC
    assert "from 0.7 to 0.2" in found.advice


def test_gradients_that_jump_are_the_cause() -> None:
    norms = ["0.5"] * 20 + ["90", "120"]

    found = diagnose(finish(step(number, actor__grad_norm=norm) for number, norm in enumerate(norms, 1)))

    assert found.kind is Kind.NUMERIC
    assert "actor/grad_norm:120" in found.line


def test_an_answer_of_one_character_is_the_cause() -> None:
    found = diagnose([step(1), b"(TaskRunner pid=7) [response] " + b"?" * 300 + b"\n"])

    assert found.kind is Kind.NUMERIC
    assert found.line.startswith("[response] ????")


def test_an_error_explains_more_than_a_number() -> None:
    assert diagnose([step(1, actor__grad_norm="nan"), b"KeyError: 'x'\n"]).kind is Kind.CODE_ERROR


def test_a_broken_number_is_left_alone() -> None:
    assert diagnose(finish([step(1, actor__grad_norm="1.2.3")])).kind is Kind.UNKNOWN
