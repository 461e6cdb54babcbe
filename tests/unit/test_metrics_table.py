"""All metrics of a run: the error for a missing one, and what counts as a training step."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.errors import MetricError
from pytest_ascend_e2e.metrics import Metrics, is_sparse, is_validation, option_for


def test_a_metric_is_found_by_verls_key() -> None:
    metrics = Metrics({1: {"actor/entropy": 0.5}, 2: {"actor/entropy": 0.4}})

    assert metrics["actor/entropy"].items() == ((1, 0.5), (2, 0.4))


def test_a_missing_metric_names_the_nearest() -> None:
    metrics = Metrics({1: {"critic/rewards/mean": 0.5, "actor/lr": 1e-6}})

    with pytest.raises(MetricError, match="nearest: critic/rewards/mean"):
        _ = metrics["critic/reward/mean"]


@pytest.mark.parametrize(
    ("key", "option"),
    [
        ("training/rollout_probs_diff_mean", "rollout.calculate_log_probs=True"),
        ("actor/kl_loss", "actor.use_kl_loss=True"),
        ("actor/reward_kl_penalty", "algorithm.use_kl_in_reward=True"),
        ("val-core/openai/gsm8k/acc/mean@1", "trainer.test_freq"),
        ("critic/vf_loss", "adv_estimator=gae"),
        ("timing_s/save_checkpoint", "trainer.save_freq"),
    ],
)
def test_a_missing_metric_names_the_option_that_makes_verl_print_it(key: str, option: str) -> None:
    with pytest.raises(MetricError) as caught:
        _ = Metrics({1: {"actor/lr": 1e-6}})[key]

    assert option in str(caught.value)


def test_a_missing_metric_names_the_problems_of_the_log() -> None:
    with pytest.raises(MetricError, match="actor/lr: the run has no metrics; the log is empty"):
        _ = Metrics({}, problems=["the log is empty"])["actor/lr"]


def test_a_step_of_validation_only_is_no_training_step() -> None:
    metrics = Metrics(
        {0: {"val-core/a/acc/mean@1": 0.1}, 1: {"actor/lr": 1e-6}, 2: {"actor/lr": 1e-6, "val-core/a/acc/mean@1": 0.2}}
    )

    assert metrics.steps == (0, 1, 2)
    assert metrics.training_steps == (1, 2)


def test_a_row_holds_what_was_printed_at_a_step() -> None:
    metrics = Metrics({1: {"a/b": 1.0, "a/c": 2.0}, 2: {"a/b": 3.0}})

    assert metrics.row(2) == {"a/b": 3.0}


def test_a_row_of_no_step_is_an_error() -> None:
    with pytest.raises(MetricError, match="no step 7"):
        Metrics({1: {"a/b": 1.0}}).row(7)


def test_the_first_fitting_pattern_decides_on_the_option() -> None:
    assert "critic is trained" not in option_for("critic/rewards/mean")
    assert "critic is trained" in option_for("critic/grad_norm")
    assert not option_for("my/own/metric")


def test_keys_of_validation_and_saving_are_sparse() -> None:
    assert is_sparse("timing_s/save_checkpoint")
    assert is_sparse("training/filter_groups/discarded_surplus_samples")
    assert is_validation("val-aux/num_turns/mean")
    assert not is_sparse("critic/values/mean")
