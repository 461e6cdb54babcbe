"""Rules on the algorithm, the trainer and fields that nothing reads (K), by verl's own keys. Must not know: recipes."""

from __future__ import annotations

from collections.abc import Iterator

from ..recipe import ACTOR, REFERENCE, ROLLOUT
from .findings import ConfigRule, Finding, Values

# verl: trainer/ppo/core_algos.py, register_policy_loss and AdvantageEstimator.
LOSS_MODES = (
    "vanilla", "dppo_tv", "dppo_kl", "gspo", "sapo", "gpg", "clip_cov", "kl_cov", "geo_mean", "dro", "cispo", "bypass_mode",
)  # fmt: skip
ESTIMATORS = (
    "gae", "grpo", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "remax", "rloo", "opo", "grpo_passk", "gpg",
    "rloo_vectorized", "grpo_vectorized", "optimal_token_baseline", "tir_optimal_token_baseline", "gdpo",
)  # fmt: skip
# Fields that verl 0.9.1 takes and its trainer never reads, or will remove: the rule, and what to do instead.
_UNREAD = {
    "data.truncation": ("B13", "prompts that are too long are dropped where filter_overlong_prompts is set, and cut otherwise"),
    "trainer.balance_batch": ("K11", "the trainer always balances"),
    "skip.rollout": ("K14", "the trainer reads skip.rollout_tq"),
    "algorithm.filter_groups.max_num_gen_batches": ("K11", "the trainer reads max_inflight_gen_batches"),
}
_DEPRECATED = {
    f"{ACTOR}.optim.warmup_style": "use lr_scheduler_type",
    "critic.optim.warmup_style": "use lr_scheduler_type",
    f"{ROLLOUT}.log_prob_micro_batch_size": "use log_prob_micro_batch_size_per_gpu",
    f"{REFERENCE}.log_prob_micro_batch_size": "use log_prob_micro_batch_size_per_gpu",
}


def _registered(values: Values) -> Iterator[Finding]:
    for rule, key, known in (("K5", f"{ACTOR}.policy_loss.loss_mode", LOSS_MODES), ("K6", "algorithm.adv_estimator", ESTIMATORS)):
        if values.get(key) is not None and values.get(key) not in known:
            yield Finding(rule=rule, text=f"{values.said(key)} is not registered with verl; accepted are {', '.join(known)}")


def _unread(values: Values) -> Iterator[Finding]:
    for key, origin in values.origins.items():
        for start, (rule, instead) in _UNREAD.items():
            if origin.startswith(("overrides", "extra")) and (key == start or key.startswith(f"{start}.")):
                yield Finding(rule=rule, text=f"{origin}: verl's trainer never reads {key}: {instead}", is_error=False)


def _deprecated(values: Values) -> Iterator[Finding]:
    for key, advice in _DEPRECATED.items():
        if values.get(key) is not None and values.is_asked(key):
            yield Finding(rule="K11", text=f"{values.said(key)} is deprecated; {advice}", is_error=False)


def _trainer(values: Values) -> Iterator[Finding]:
    if values.get("trainer.use_v1") is False:
        text = f"{values.said('trainer.use_v1')} runs the deprecated trainer, which names its metrics otherwise; leave it out"
        yield Finding(rule="K12", text=text, is_error=False)


def _resume(values: Values) -> Iterator[Finding]:
    mode, path = values.get("trainer.resume_mode"), values.get("trainer.resume_from_path")
    if mode is not None and mode not in ("disable", "auto", "resume_path"):
        text = f"{values.said('trainer.resume_mode')} is no way to resume; set 'disable', 'auto' or 'resume_path'"
        yield Finding(rule="K13", text=text)
    if mode == "resume_path" and "global_step_" not in str(path):
        text = f"{values.said('trainer.resume_from_path')} must name a checkpoint, a directory global_step_<n>"
        yield Finding(rule="K13", text=text)
    if mode in ("auto", "disable") and path is not None:
        text = f"{values.said('trainer.resume_from_path')} is not read with resume_mode {mode!r}; set 'resume_path' or leave it out"
        yield Finding(rule="K13", text=text, is_error=False)


TRAINER_RULES: tuple[ConfigRule, ...] = (_registered, _unread, _deprecated, _trainer, _resume)
