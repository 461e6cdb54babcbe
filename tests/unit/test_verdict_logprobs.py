"""Log-prob consistency: every step, every limit, and when reference and actor can be compared."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.errors import CheckError
from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.records import Check, Verdict
from pytest_ascend_e2e.verdict import LogprobLimits, check_logprob_consistency
from tests.fakes.logged_run import Rows, logged_run


def failures(checks: tuple[Check, ...]) -> dict[str, Check]:
    return {check.name: check for check in checks if check.is_failed}


def without(rows: Rows, *keys: str) -> Metrics:
    return Metrics({step: {key: value for key, value in row.items() if key not in keys} for step, row in rows.items()})


def spoilt(key: str, step: int, value: float) -> Metrics:
    rows = logged_run(15)
    rows[step][key] = value
    return Metrics(rows)


def test_a_sound_run_is_consistent() -> None:
    checks = check_logprob_consistency(Metrics(logged_run(15)), has_reference=True)

    assert {check.name for check in checks} == {
        "logprob.valid",
        "logprob.mean-difference",
        "logprob.max-difference",
        "logprob.pearson",
        "logprob.k3",
        "logprob.perplexity",
        "logprob.growth",
        "logprob.reference",
        "logprob.reference-start",
    }
    assert not failures(checks)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("logprob.valid", "training/rollout_probs_diff_valid", 0.0),
        ("logprob.mean-difference", "training/rollout_probs_diff_mean", 0.05),
        ("logprob.pearson", "training/rollout_actor_probs_pearson_corr", 0.81),
        ("logprob.max-difference", "training/rollout_probs_diff_max", float("nan")),
        ("logprob.k3", "rollout_corr/k3_kl", 0.2),
        ("logprob.k3", "rollout_corr/k3_kl", -0.2),
        ("logprob.k3", "rollout_corr/k3_kl", float("nan")),
        ("logprob.perplexity", "rollout_corr/ppl_ratio", 1.3),
        ("logprob.perplexity", "rollout_corr/ppl_ratio", 0.7),
        ("logprob.growth", "training/rollout_probs_diff_mean", 0.031),
        ("logprob.reference", "actor/kl_loss", float("inf")),
    ],
)
def test_one_bad_step_fails_and_is_named(name: str, key: str, value: float) -> None:
    failed = failures(check_logprob_consistency(spoilt(key, 9, value), has_reference=True))

    assert failed[name].step == 9
    assert failed[name].metric == key


def test_a_maximum_is_judged_where_a_limit_is_given() -> None:
    metrics = spoilt("training/rollout_probs_diff_max", 4, 0.97)

    assert not failures(check_logprob_consistency(metrics, has_reference=True))
    assert failures(check_logprob_consistency(metrics, has_reference=True, max_limit=0.9))["logprob.max-difference"].step == 4


@pytest.mark.parametrize(
    "key",
    [
        "training/rollout_probs_diff_valid",
        "training/rollout_probs_diff_mean",
        "training/rollout_probs_diff_max",
        "training/rollout_actor_probs_pearson_corr",
        "rollout_corr/k3_kl",
        "rollout_corr/ppl_ratio",
    ],
)
def test_a_missing_metric_fails_and_names_verls_option(key: str) -> None:
    failed = failures(check_logprob_consistency(without(logged_run(15), key), has_reference=True))

    assert [check.metric for check in failed.values()] == [key]
    assert all("calculate_log_probs=True" in check.message for check in failed.values())


def test_a_step_far_above_the_first_ones_fails_although_it_keeps_the_fixed_limit() -> None:
    failed = failures(check_logprob_consistency(spoilt("training/rollout_probs_diff_mean", 12, 0.021), has_reference=True))

    assert set(failed) == {"logprob.growth"}
    assert "against the first steps 1..5" in failed["logprob.growth"].message


def test_a_multiple_of_rounding_is_no_growth() -> None:
    rows = logged_run(15)
    for step, row in rows.items():
        row["training/rollout_probs_diff_mean"] = 1e-6 if step < 15 else 9e-6

    assert not failures(check_logprob_consistency(Metrics(rows), has_reference=True))


def test_a_run_of_one_step_has_no_later_one_to_compare() -> None:
    checks = check_logprob_consistency(Metrics(logged_run(1)), has_reference=True)

    assert not failures(checks)
    assert {check.name: check.verdict for check in checks}["logprob.growth"] is Verdict.NOT_MADE


def test_limits_of_ones_own_judge_only_what_they_say() -> None:
    limits = LogprobLimits(mean=0.03, max=None, pearson=0.98, start_kl=1e-3)

    checks = check_logprob_consistency(Metrics(logged_run(15)), has_reference=False, limits=limits)

    assert {"logprob.k3", "logprob.perplexity", "logprob.growth"} & {check.name for check in checks} == set()


def test_a_missing_kl_of_a_reference_fails_and_names_both_options() -> None:
    (failed,) = failures(check_logprob_consistency(without(logged_run(15), "actor/kl_loss"), has_reference=True)).values()

    assert "use_kl_loss=True" in failed.message
    assert "use_kl_in_reward=True" in failed.message


def test_without_a_reference_nothing_is_said_of_one() -> None:
    checks = check_logprob_consistency(without(logged_run(15), "actor/kl_loss"), has_reference=False)

    assert not any("reference" in check.name for check in checks)
    assert not failures(checks)


def test_actor_and_reference_that_differ_at_the_start_fail() -> None:
    failed = failures(check_logprob_consistency(spoilt("actor/kl_loss", 1, 0.004), has_reference=True))

    assert failed["logprob.reference-start"].step == 1
    assert "bfloat16" in failed["logprob.reference-start"].origin


def test_a_negative_estimate_at_the_start_fails_by_its_size() -> None:
    assert "logprob.reference-start" in failures(check_logprob_consistency(spoilt("actor/kl_loss", 1, -0.004), has_reference=True))


def test_a_missing_kl_at_the_first_update_fails() -> None:
    rows = logged_run(15)
    del rows[1]["actor/kl_loss"]

    assert failures(check_logprob_consistency(Metrics(rows), has_reference=True))["logprob.reference"].step == 1


def test_the_first_update_after_a_warm_up_of_the_critic_is_the_start() -> None:
    rows = logged_run(15)
    for step in (1, 2):
        del rows[step]["actor/kl_loss"], rows[step]["actor/grad_norm"]
    rows[3]["actor/kl_loss"] = 0.0

    assert not failures(check_logprob_consistency(Metrics(rows), has_reference=True))


def test_other_weights_may_differ_at_the_start() -> None:
    metrics = spoilt("actor/kl_loss", 1, 0.4)

    checks = check_logprob_consistency(metrics, has_reference=True, same_start=False)

    assert not failures(checks)
    assert not any(check.name == "logprob.reference-start" for check in checks)


def test_a_resumed_run_cannot_be_decided_and_fails() -> None:
    rows = {step: row for step, row in logged_run(15).items() if step > 5}

    failed = failures(check_logprob_consistency(Metrics(rows), has_reference=True))

    assert "same_start=False" in failed["logprob.reference-start"].message


@pytest.mark.parametrize(("kl", "fails"), [(0.004, False), (0.05, True)])
def test_several_updates_in_a_step_are_held_to_a_wider_bound_that_says_so(kl: float, fails: bool) -> None:
    checks = check_logprob_consistency(spoilt("actor/kl_loss", 1, kl), has_reference=True, updates_per_step=4)

    (start,) = [check for check in checks if check.name == "logprob.reference-start"]
    assert start.is_failed is fails
    assert start.limit == 0.02
    assert "a mean over 4 updates" in start.message


def test_the_penalty_in_the_reward_is_before_the_updates_and_so_exact() -> None:
    rows = {step: {**row, "actor/reward_kl_penalty": 0.004} for step, row in logged_run(15).items()}

    failed = failures(check_logprob_consistency(without(rows, "actor/kl_loss"), has_reference=True, updates_per_step=4))

    assert set(failed) == {"logprob.reward-reference-start"}


def test_limits_for_float32_are_tighter() -> None:
    failed = failures(
        check_logprob_consistency(Metrics(logged_run(15)), has_reference=True, limits=LogprobLimits.for_dtype("float32"))
    )

    assert set(failed) == {
        "logprob.mean-difference",
        "logprob.max-difference",
        "logprob.k3",
        "logprob.perplexity",
    }
    assert all("float32" in check.origin for check in failed.values())


def test_a_given_limit_says_so() -> None:
    failed = failures(
        check_logprob_consistency(Metrics(logged_run(15)), has_reference=True, mean_limit=0.001, pearson_limit=0.9999)
    )

    assert {check.origin for check in failed.values()} == {"given by the test"}


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(CheckError, match="'float8' has no limits"):
        LogprobLimits.for_dtype("float8")


def test_no_update_at_all_is_refused() -> None:
    with pytest.raises(CheckError, match="updates_per_step 0"):
        check_logprob_consistency(Metrics(logged_run(2)), has_reference=True, updates_per_step=0)
