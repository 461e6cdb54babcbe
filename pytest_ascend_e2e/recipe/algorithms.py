"""The algorithms a recipe can ask for, with verl's own field names and verl's own defaults where the class does not say otherwise.

Must not know: engines, rollouts, or how a field becomes an override (`settings.py`). A field is checked by the Recipe that holds
the algorithm, so that all mistakes of one recipe are told together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from .arguments import told_arguments
from .checking import FieldChecks

# verl: trainer/ppo/core_algos.py, kl_penalty_forward; a "+" asks for the straight-through gradient of k2.
KL_TYPES = ("kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3", "kl+", "k1+", "abs+", "mse+", "k2+", "low_var_kl+", "k3+")
# verl: workers/config/actor.py, ActorConfig.__post_init__.
LOSS_AGG_MODES = ("token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm")
# verl: trainer/ppo/core_algos.py, the estimators that need a group of responses or a baseline, and no critic.
GROUP_ESTIMATORS = (
    "grpo",
    "grpo_vectorized",
    "grpo_passk",
    "gdpo",
    "rloo",
    "rloo_vectorized",
    "opo",
    "gpg",
    "remax",
    "reinforce_plus_plus",
    "reinforce_plus_plus_baseline",
)
# Estimators that compare a response with others of the same prompt: with one response all advantages are zero or undefined.
GROUPING = (
    "grpo",
    "grpo_vectorized",
    "grpo_passk",
    "gdpo",
    "rloo",
    "rloo_vectorized",
    "opo",
    "gpg",
    "reinforce_plus_plus_baseline",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyAlgorithm:
    """What every algorithm has: clipping, aggregation, entropy, and the two places of a KL term.

    `use_kl_loss` adds `kl_loss_coef` times the KL to the reference to the loss; `use_kl_in_reward` takes `kl_coef` times it from
    the reward. Either makes verl build a reference model.
    """

    name: ClassVar[str]
    loss_mode: ClassVar[str] = "vanilla"
    has_critic: ClassVar[bool] = False

    use_kl_loss: bool = False
    kl_loss_coef: float = 0.001
    kl_loss_type: str = "low_var_kl"
    use_kl_in_reward: bool = False
    kl_penalty: str = "kl"
    kl_coef: float = 0.001
    clip_ratio_low: float = 0.2
    clip_ratio_high: float = 0.2
    clip_ratio_c: float = 3.0
    loss_agg_mode: str = "token-mean"
    entropy_coeff: float = 0.0
    ppo_epochs: int = 1

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        checks.boolean("use_kl_loss", self.use_kl_loss)
        checks.boolean("use_kl_in_reward", self.use_kl_in_reward)
        checks.number("kl_loss_coef", self.kl_loss_coef, least=0)
        checks.number("kl_coef", self.kl_coef, least=0)
        checks.choice("kl_loss_type", self.kl_loss_type, KL_TYPES)
        checks.choice("kl_penalty", self.kl_penalty, KL_TYPES)
        checks.number("clip_ratio_low", self.clip_ratio_low, above=0, most=1)
        checks.number("clip_ratio_high", self.clip_ratio_high, above=0)
        checks.number("clip_ratio_c", self.clip_ratio_c, above=1)
        checks.choice("loss_agg_mode", self.loss_agg_mode, LOSS_AGG_MODES, rule="K4")
        checks.number("entropy_coeff", self.entropy_coeff)
        checks.size("ppo_epochs", self.ppo_epochs)

    @property
    def estimator(self) -> str:
        """Tell verl's name of the advantage estimator."""
        raise NotImplementedError


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class GRPO(PolicyAlgorithm):
    """Group relative policy optimisation (Shao et al. 2024): advantages from the group of responses to one prompt, no critic."""

    name: ClassVar[str] = "grpo"

    adv_estimator: str = "grpo"
    norm_adv_by_std_in_grpo: bool = True

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        PolicyAlgorithm.check_into(self, checks)
        checks.choice("adv_estimator", self.adv_estimator, GROUP_ESTIMATORS, rule="K6")
        checks.boolean("norm_adv_by_std_in_grpo", self.norm_adv_by_std_in_grpo)

    @property
    def estimator(self) -> str:
        """Tell verl's name of the advantage estimator."""
        return self.adv_estimator


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class GSPO(GRPO):
    """Group sequence policy optimisation (Zheng et al. 2025): the ratio of a whole sequence is clipped, far more narrowly.

    The defaults of clipping and aggregation are the paper's.
    """

    name: ClassVar[str] = "gspo"
    loss_mode: ClassVar[str] = "gspo"

    clip_ratio_low: float = 3e-4
    clip_ratio_high: float = 4e-4
    loss_agg_mode: str = "seq-mean-token-mean"


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class DAPO(GRPO):
    """Decoupled clip and dynamic sampling (Yu et al. 2025), in verl's synchronous trainer.

    `clip_ratio_high` is above `clip_ratio_low`; `filter_groups` replaces groups whose responses all have the same
    `filter_groups_metric`, with at most `max_inflight_gen_batches` batches of prompts under way; a response that reaches into
    the last `overlong_buffer_len` tokens loses up to `overlong_penalty_factor` of its reward (None: no such penalty).
    """

    name: ClassVar[str] = "dapo"

    clip_ratio_high: float = 0.28
    clip_ratio_c: float = 10.0
    filter_groups: bool = True
    filter_groups_metric: str = "acc"
    max_inflight_gen_batches: int = 1
    overlong_buffer_len: int | None = None
    overlong_penalty_factor: float = 1.0

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        GRPO.check_into(self, checks)
        checks.boolean("filter_groups", self.filter_groups)
        checks.text("filter_groups_metric", self.filter_groups_metric, "acc")
        checks.size("max_inflight_gen_batches", self.max_inflight_gen_batches)
        checks.size("overlong_buffer_len", self.overlong_buffer_len, optional=True)
        checks.number("overlong_penalty_factor", self.overlong_penalty_factor, above=0)


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class PPO(PolicyAlgorithm):
    """Proximal policy optimisation (Schulman et al. 2017) with a critic of the actor's model and the actor's engine.

    Advantages are GAE(`gamma`, `lam`); the actor stands still for the first `critic_warmup` steps.
    """

    name: ClassVar[str] = "ppo"
    has_critic: ClassVar[bool] = True

    gamma: float = 1.0
    lam: float = 1.0
    critic_lr: float = 1e-5
    cliprange_value: float = 0.5
    critic_warmup: int = 0

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        PolicyAlgorithm.check_into(self, checks)
        checks.number("gamma", self.gamma, above=0, most=1)
        checks.number("lam", self.lam, least=0, most=1)
        checks.number("critic_lr", self.critic_lr, above=0)
        checks.number("cliprange_value", self.cliprange_value, above=0)
        checks.size("critic_warmup", self.critic_warmup, minimum=0)

    @property
    def estimator(self) -> str:
        """Tell verl's name of the advantage estimator."""
        return "gae"


Algorithm: TypeAlias = GRPO | GSPO | DAPO | PPO

# The field of an algorithm, and the key of verl that it sets, for the fields that are written as they are.
POLICY_KEYS: Mapping[str, str] = {
    "use_kl_loss": "actor_rollout_ref.actor.use_kl_loss",
    "kl_loss_coef": "actor_rollout_ref.actor.kl_loss_coef",
    "kl_loss_type": "actor_rollout_ref.actor.kl_loss_type",
    "use_kl_in_reward": "algorithm.use_kl_in_reward",
    "kl_penalty": "algorithm.kl_penalty",
    "kl_coef": "algorithm.kl_ctrl.kl_coef",
    "clip_ratio_low": "actor_rollout_ref.actor.clip_ratio_low",
    "clip_ratio_high": "actor_rollout_ref.actor.clip_ratio_high",
    "clip_ratio_c": "actor_rollout_ref.actor.clip_ratio_c",
    "loss_agg_mode": "actor_rollout_ref.actor.loss_agg_mode",
    "entropy_coeff": "actor_rollout_ref.actor.entropy_coeff",
    "ppo_epochs": "actor_rollout_ref.actor.ppo_epochs",
}
