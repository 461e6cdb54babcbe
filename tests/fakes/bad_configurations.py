"""Thirty-one configurations that cannot work, each a real case with one thing wrong, as somebody writes it by mistake.

verl's own driver (Hydra's composition and `validate_config` of verl 0.9.1) takes 22 of them: they end on the devices, or nothing
says that a setting does nothing. `accepted` tells which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_ascend_e2e.recipe import FSDP2, GRPO, Megatron, Recipe, Vllm

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
MEGATRON = f"{ACTOR}.megatron"
MIXTURE, DENSE = "Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen/Qwen3-8B"


@dataclass(frozen=True, kw_only=True, slots=True)
class BadConfiguration:
    """One of them: the fields of a recipe, what a session lays over it (`--e2e-set`), and what must be said of it.

    `named` begins the text, `rule` ends it. Where `is_composed`, only verl's own composition can tell.
    """

    name: str
    rule: str
    named: str
    accepted: bool
    fields: Mapping[str, Any]
    changes: Mapping[str, Any] = field(default_factory=dict)
    devices: int = 16
    is_composed: bool = False

    def recipe(self) -> Recipe:
        """Build the recipe.

        Raises:
            RecipeError: the mistake is one that a recipe itself refuses.
        """
        given: dict[str, Any] = {
            "algorithm": GRPO(use_kl_loss=True),
            "model": DENSE,
            "dataset": "gsm8k",
            "engine": FSDP2(),
            "rollout": Vllm(n=4, tp=2),
            "train_batch_size": 64,
            "max_prompt_length": 1024,
            "max_response_length": 1024,
            "steps": 2,
            **self.fields,
        }
        return Recipe(**given)


def bad(name: str, rule: str, named: str, fields: Mapping[str, Any], *, accepted: bool = True, **rest: Any) -> BadConfiguration:
    """Return one of them; most are accepted by verl's driver."""
    return BadConfiguration(name=name, rule=rule, named=named, fields=fields, accepted=accepted, **rest)


def overridden(key: str) -> str:
    """Return how an override is named."""
    return f"overrides[{key!r}]"


def changed(key: str) -> str:
    """Return how what a session lays over a recipe is named."""
    return f"extra[{key!r}]"


BAD_CONFIGURATIONS: tuple[BadConfiguration, ...] = (
    bad("three expert groups on sixteen devices", "M2", "engine.etp", {"model": MIXTURE, "engine": Megatron(ep=3)}),
    bad("experts split as TP is", "M2", "engine.etp is not set", {"model": MIXTURE, "engine": Megatron(tp=2, pp=2, ep=8)}),
    bad("TP 3, dynamic batches", "M1", "engine", {"engine": Megatron(tp=3, etp=1), "use_dynamic_bsz": True}),
    bad("a virtual pipeline without a pipeline", "M3", "engine.vpp", {"engine": Megatron(vpp=2)}),
    bad(
        "mini-batch above the batch, dynamic batches",
        "B2",
        "ppo_mini_batch_size",
        {"ppo_mini_batch_size": 128, "use_dynamic_bsz": True},
    ),
    bad("sequences split with their padding", "F3", "engine.sp", {"engine": FSDP2(sp=2), "use_remove_padding": False}),
    bad(
        "sequences split with their padding, in the session",
        "F3",
        changed(f"{ACTOR}.fsdp_config.ulysses_sequence_parallel_size"),
        {"use_remove_padding": False},
        changes={f"{ACTOR}.fsdp_config.ulysses_sequence_parallel_size": 2},
    ),
    bad(
        "fewer tokens than a sequence has",
        "B7",
        "ppo_max_token_len_per_gpu",
        {"engine": FSDP2(sp=2), "use_dynamic_bsz": True, "ppo_max_token_len_per_gpu": 1000},
    ),
    bad("rollout TP 3", "R1", "rollout", {"rollout": Vllm(n=4, tp=3)}),
    bad("rollout EP 4 with TP 2", "R4", "rollout.ep", {"model": MIXTURE, "rollout": Vllm(n=4, tp=2, ep=4)}),
    bad(
        "rollout PP 2",
        "R5",
        overridden(f"{ROLLOUT}.pipeline_model_parallel_size"),
        {"overrides": {f"{ROLLOUT}.pipeline_model_parallel_size": 2}},
    ),
    bad("a synchronous rollout", "R6", overridden(f"{ROLLOUT}.mode"), {"overrides": {f"{ROLLOUT}.mode": "sync"}}),
    bad(
        "a loss that does not exist",
        "K5",
        changed(f"{ACTOR}.policy_loss.loss_mode"),
        {},
        changes={f"{ACTOR}.policy_loss.loss_mode": "foo"},
    ),
    bad("an estimator that does not exist", "K6", "algorithm.adv_estimator", {"algorithm": GRPO(adv_estimator="foo")}),
    bad(
        "log-probs in batches of another kind",
        "B8",
        changed(f"{ROLLOUT}.log_prob_use_dynamic_bsz"),
        {},
        changes={f"{ROLLOUT}.log_prob_use_dynamic_bsz": True},
    ),
    bad("an engine that does not exist", "F1", changed(f"{ACTOR}.strategy"), {}, changes={f"{ACTOR}.strategy": "fsdp3"}),
    bad("a reference laid out otherwise", "M15", "reference.tp", {"engine": Megatron(tp=2), "reference": Megatron(tp=1)}),
    bad(
        "Megatron without its bridge",
        "M13",
        overridden(f"{MEGATRON}.use_mbridge"),
        {"engine": Megatron(tp=2), "overrides": {f"{MEGATRON}.use_mbridge": False}},
    ),
    bad("a mini-batch that does not divide over dp", "B3", "ppo_mini_batch_size", {"ppo_mini_batch_size": 6}),
    bad(
        "the reward model of older versions", "K9", overridden("reward_model.enable"), {"overrides": {"reward_model.enable": True}}
    ),
    bad(
        "the reward manager of older versions",
        "K9",
        overridden("reward_model.reward_manager"),
        {"overrides": {"reward_model.reward_manager": "dapo"}},
    ),
    bad(
        "a key given twice",
        "K10",
        "overrides['trainer.save_freq'] and overrides['trainer']['save_freq']",
        {"overrides": {"trainer.save_freq": 1, "trainer": {"save_freq": 2}}},
    ),
    bad(
        "a key that does not exist",
        "K7",
        overridden(f"{ROLLOUT}.max_num_seq"),
        {"overrides": {f"{ROLLOUT}.max_num_seq": 64}},
        accepted=False,
        is_composed=True,
    ),
    bad(
        "a key appended to a dataclass that has no such field",
        "K8",
        overridden(f"{ACTOR}.+clip_ratios"),
        {"overrides": {f"{ACTOR}.+clip_ratios": 0.2}},
        accepted=False,
        is_composed=True,
    ),
    bad("TP 3", "M1", "engine", {"engine": Megatron(tp=3, etp=1)}, accepted=False),
    bad("mini-batch above the batch", "B2", "ppo_mini_batch_size", {"ppo_mini_batch_size": 128}, accepted=False),
    bad(
        "no micro-batch",
        "B5",
        "ppo_micro_batch_size_per_gpu",
        {"engine": Megatron(), "ppo_micro_batch_size_per_gpu": None},
        accepted=False,
    ),
    bad("a mean that does not exist", "K4", "algorithm.loss_agg_mode", {"algorithm": GRPO(loss_agg_mode="mean")}, accepted=False),
    bad(
        "sampling in validation at temperature 0",
        "R11",
        overridden(f"{ROLLOUT}.val_kwargs.do_sample"),
        {"rollout": Vllm(n=4, tp=2, temperature=0.0), "overrides": {f"{ROLLOUT}.val_kwargs.do_sample": True}},
        accepted=False,
    ),
    bad(
        "a replay that does not exist",
        "M19",
        overridden(f"{MEGATRON}.router_replay.mode"),
        {"model": MIXTURE, "engine": Megatron(), "overrides": {f"{MEGATRON}.router_replay.mode": "R4"}},
        accepted=False,
    ),
    bad(
        "sequences split with their padding, by the deprecated field",
        "F3",
        changed(f"{ACTOR}.ulysses_sequence_parallel_size"),
        {"use_remove_padding": False},
        changes={f"{ACTOR}.ulysses_sequence_parallel_size": 2},
        accepted=False,
    ),
)
