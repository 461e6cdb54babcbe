"""What verl prints, and when: the option behind each metric key.

Owns the knowledge of verl's key names (`trainer/ppo/metric_utils.py`, `trainer/ppo/v1/trainer_base.py`, `utils/debug/metrics.py`
and `trainer/ppo/rollout_corr_helper.py` of verl 0.9). Must not know the values of any run.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

_ALWAYS = "verl prints it at every training step, whatever the options"
_LOG_PROBS = (
    "verl prints it with actor_rollout_ref.rollout.calculate_log_probs=True, "
    "and not with algorithm.rollout_correction.bypass_mode=True"
)
_CRITIC = "verl prints it when a critic is trained: algorithm.adv_estimator=gae or critic.enable=True"
_VALIDATION = "verl prints it when it validates: trainer.val_before_train=True, or trainer.test_freq=N with N > 0"

# The first pattern that fits decides.
_OPTIONS: tuple[tuple[str, str], ...] = (
    ("training/rollout_probs_diff_*", _LOG_PROBS),
    ("training/rollout_actor_probs_pearson_corr", _LOG_PROBS),
    ("rollout_corr/rollout_is_*", "verl prints it with algorithm.rollout_correction.rollout_is set (token or sequence)"),
    ("rollout_corr/rollout_rs_*", "verl prints it with algorithm.rollout_correction.rollout_rs set"),
    ("rollout_corr/*", _LOG_PROBS),
    ("actor/kl_*", "verl prints it with actor_rollout_ref.actor.use_kl_loss=True"),
    ("actor/reward_kl_penalty*", "verl prints it with algorithm.use_kl_in_reward=True"),
    (
        "actor/entropy_loss",
        "verl prints it with actor_rollout_ref.actor.calculate_entropy=True or actor_rollout_ref.actor.entropy_coeff != 0",
    ),
    ("actor/entropy", "verl prints it unless algorithm.rollout_correction.bypass_mode=True"),
    ("actor/perf/*", _ALWAYS),
    (
        "actor/pg_clipfrac_lower",
        "verl prints it with a policy loss that has a lower clip (actor_rollout_ref.actor.policy_loss.loss_mode=vanilla, gspo)",
    ),
    ("actor/*", "verl prints it at every step that updates the actor: those from trainer.critic_warmup on"),
    ("critic/rewards/*", _ALWAYS),
    ("critic/score/*", _ALWAYS),
    ("critic/advantages/*", _ALWAYS),
    ("critic/returns/*", _ALWAYS),
    ("critic/*", _CRITIC),
    ("perf/mfu/critic", _CRITIC),
    ("timing_s/values", _CRITIC),
    ("timing_s/update_critic", _CRITIC),
    (
        "timing_s/ref",
        "verl prints it with a reference: actor_rollout_ref.actor.use_kl_loss=True or algorithm.use_kl_in_reward=True",
    ),
    ("timing_s/save_checkpoint", "verl prints it at the steps that save: trainer.save_freq=N with N > 0"),
    ("timing_s/testing", _VALIDATION),
    ("timing_s/reward", "verl prints it with a reward model beside the actor: reward.reward_model.enable=True"),
    ("rollout/moe/*", "verl prints it with actor_rollout_ref.rollout.moe_load_balance_metrics_interval=N with N > 0"),
    ("rollout/spec_*", "verl prints it with speculative decoding (MTP) in the rollout"),
    ("val-*", _VALIDATION),
    ("val/*", _VALIDATION),
    ("train/*", "verl prints it in supervised fine-tuning (verl.trainer.sft_trainer)"),
    ("perf/*", _ALWAYS),
    ("timing_s/*", _ALWAYS),
    ("response_length*/*", _ALWAYS),
    ("response/*", _ALWAYS),
    ("prompt_length/*", _ALWAYS),
    ("global_seqlen/*", _ALWAYS),
    ("training/*", _ALWAYS),
)

_VALIDATION_KEYS = ("val-*", "val/*", "timing_s/testing")

# Printed at some training steps only, by design.
_SPARSE_KEYS = (
    *_VALIDATION_KEYS,
    "timing_s/save_checkpoint",
    "timing_s/start_profile",
    "timing_s/stop_profile",
    "timing_s/dump_rollout_generations",
    "rollout/moe/*",
    "rollout/spec_*",
    # Where samples were thrown away (trainer/ppo/v1/replay_buffer.py): by DAPO's filter, for their age, or as failed.
    "training/filter_groups/*",
    "training/off_policy/evicted_samples*",
    "training/rollout_failure/*",
    # From the second time on, and where it switches at all (trainer/ppo/v1/trainer_separate_async.py).
    "separate_async/decision/*_seconds",
    "timing_s/switch_to_rollout",
)


def fits(key: str, patterns: Iterable[str]) -> bool:
    """Tell whether `key` fits one of the patterns (`*` stands for any text)."""
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def option_for(key: str) -> str:
    """Return the sentence that says what makes verl print `key`, empty where nothing is known of it."""
    return next((sentence for pattern, sentence in _OPTIONS if fnmatchcase(key, pattern)), "")


def is_validation(key: str) -> bool:
    """Tell whether `key` comes from a validation, so that a step with nothing else is no training step."""
    return fits(key, _VALIDATION_KEYS)


def is_sparse(key: str) -> bool:
    """Tell whether verl prints `key` at some training steps only, by design."""
    return fits(key, _SPARSE_KEYS)
