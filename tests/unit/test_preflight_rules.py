"""Every rule of the register: a value that it does not take and one that it does, found and named by whatever finds it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_ascend_e2e.errors import RecipeError
from pytest_ascend_e2e.preflight import Composition, all_rules, judge, rules_table
from pytest_ascend_e2e.recipe import (
    DAPO,
    FSDP,
    FSDP2,
    GRPO,
    PPO,
    SFT,
    FSDPTurbo,
    Lora,
    Megatron,
    Recipe,
    SeparateAsync,
    Sglang,
    VeOmni,
    Vllm,
)
from tests.unit.test_preflight_config_rules import CASES

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "rules.md"
CONFIG = {
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "num_hidden_layers": 24,
    "hidden_size": 4096,
    "vocab_size": 100_000,
    "max_position_embeddings": 4096,
}
EXPERTS = {**CONFIG, "num_experts": 64}
GATED = {**CONFIG, "linear_num_key_heads": 2, "linear_num_value_heads": 8}
WIDE = {**CONFIG, "vocab_size": 151_936}
VISION = {**CONFIG, "vision_config": {"depth": 1}}
REFERENCE = GRPO(use_kl_loss=True)
ROUTER = {"moe_router_dtype": "fp32"}
ROLLOUT, MEGATRON = "actor_rollout_ref.rollout", "actor_rollout_ref.actor.megatron"

Fields = Mapping[str, Any]


def recipe_with(**given: Any) -> Recipe:
    fields: dict[str, Any] = {
        "algorithm": GRPO(),
        "model": "some/model",
        "dataset": "gsm8k",
        "engine": FSDP2(),
        "rollout": Vllm(n=4),
        "train_batch_size": 48,
        "max_prompt_length": 64,
        "max_response_length": 64,
        "steps": 4,
        **given,
    }
    return Recipe(**fields)


def tuning_with(**given: Any) -> SFT:
    fields: dict[str, Any] = {"model": "some/model", "dataset": "gsm8k_sft", "engine": FSDP2(), "steps": 4, **given}
    return SFT(**fields)


def said(
    build: Callable[..., Recipe | SFT], fields: Fields, *, devices: int = 8, nodes: int = 1, config: Fields = CONFIG
) -> tuple[str, ...]:
    """Return what is said of a recipe, when it is built or when it is judged."""
    try:
        plan = judge(build(**fields), devices, nodes, model_config=config)
    except RecipeError as error:
        return error.problems
    return (*plan.problems, *plan.warnings)


# The rule; what it does not take; the field or override that is named; what it takes. Then whatever else the case needs.
RULES: tuple[tuple[str, Fields, str, Fields, dict[str, Any]], ...] = (
    ("M1", {"engine": Megatron(tp=3, etp=1)}, "engine", {"engine": Megatron(tp=2)}, {}),
    (
        "M2",
        {"engine": Megatron(tp=2, pp=2, ep=8)},
        "engine.etp",
        {"engine": Megatron(tp=2, pp=2, ep=8, etp=1)},
        {"devices": 16, "config": EXPERTS},
    ),
    ("M3", {"engine": Megatron(vpp=2)}, "engine.vpp", {"engine": Megatron(pp=2, vpp=2)}, {}),
    ("M3", {"engine": Megatron(vpp=1)}, "engine.vpp", {"engine": Megatron()}, {}),
    ("M6", {"engine": Megatron(tp=3)}, "engine.tp", {"engine": Megatron(tp=4)}, {"devices": 12}),
    ("M7", {"engine": Megatron(tp=6, etp=1)}, "engine.tp", {"engine": Megatron(tp=8)}, {"devices": 48}),
    ("M8", {"engine": Megatron(ep=2)}, "engine.ep", {"engine": Megatron()}, {}),
    ("M8", {"engine": Megatron(ep=3)}, "engine.ep", {"engine": Megatron(ep=2)}, {"devices": 6, "config": EXPERTS}),
    ("M9", {"engine": Megatron(pp=4)}, "engine.pp", {"engine": Megatron(pp=2)}, {"config": {**CONFIG, "num_hidden_layers": 22}}),
    ("M10", {"engine": Megatron(tp=4)}, "engine.tp", {"engine": Megatron(tp=2)}, {"config": GATED}),
    ("M10", {"engine": Megatron(cp=2)}, "engine.cp", {"engine": Megatron()}, {"config": GATED}),
    ("M12", {"engine": Megatron(sequence_parallel=True)}, "engine.sequence_parallel", {"engine": Megatron()}, {}),
    (
        "M13",
        {"engine": Megatron(dtype="fp8")},
        "engine.dtype",
        {"engine": Megatron(dtype="float16"), "rollout": Vllm(n=4, dtype="float16")},
        {},
    ),
    (
        "M13",
        {"engine": Megatron(), "overrides": {f"{MEGATRON}.use_mbridge": False}},
        f"overrides['{MEGATRON}.use_mbridge']",
        {"engine": Megatron(), "overrides": {f"{MEGATRON}.use_mbridge": True}},
        {},
    ),
    ("M14", {"engine": Megatron(vanilla_mbridge=True)}, "engine.vanilla_mbridge", {"engine": Megatron()}, {}),
    (
        "M15",
        {"algorithm": REFERENCE, "engine": Megatron(tp=2), "reference": Megatron(tp=1)},
        "reference.tp",
        {"algorithm": REFERENCE, "engine": Megatron(tp=2), "reference": Megatron(tp=2)},
        {},
    ),
    (
        "M16",
        {"engine": Megatron(pp=2, vpp=2), "ppo_mini_batch_size": 1, "rollout": Vllm(n=12)},
        "engine.vpp",
        {"engine": Megatron(pp=2, vpp=2)},
        {},
    ),
    (
        "M16",
        {"engine": Megatron(pp=4, vpp=2), "ppo_mini_batch_size": 1, "use_dynamic_bsz": True},
        "engine.vpp",
        {"engine": Megatron(pp=4, vpp=2), "ppo_mini_batch_size": 2, "use_dynamic_bsz": True},
        {},
    ),
    (
        "M17",
        {"engine": Megatron(pp=2), "ppo_micro_batch_size_per_gpu": 5},
        "ppo_micro_batch_size_per_gpu",
        {"engine": Megatron(pp=2), "ppo_micro_batch_size_per_gpu": 2},
        {},
    ),
    (
        "M20",
        {
            "engine": Megatron(),
            "overrides": {f"{MEGATRON}.dynamic_context_parallel": True, f"{MEGATRON}.max_seqlen_per_dp_cp_rank": 64},
        },
        f"overrides['{MEGATRON}.dynamic_context_parallel']",
        {"engine": Megatron(), "overrides": {f"{MEGATRON}.dynamic_context_parallel": False}},
        {"config": VISION},
    ),
    ("F2", {"engine": FSDP2(sp=3)}, "engine", {"engine": FSDP2(sp=4)}, {}),
    ("F3", {"engine": FSDP2(sp=2), "use_remove_padding": False}, "engine.sp", {"engine": FSDP2(sp=2)}, {}),
    ("F4", {"engine": FSDP2(sp=3)}, "engine.sp", {"engine": FSDP2(sp=4)}, {"devices": 12}),
    ("F5", {"engine": FSDP2(fsdp_size=3)}, "engine.fsdp_size", {"engine": FSDP2(fsdp_size=4)}, {}),
    (
        "F7",
        {"engine": FSDP2(offload_policy=True, offload=True)},
        "engine.offload_policy",
        {"engine": FSDP2(offload_policy=True)},
        {},
    ),
    ("F8", {"engine": FSDPTurbo(sp=2)}, "engine.sp", {"engine": FSDPTurbo(ulysses=2)}, {}),
    ("F8", {"engine": FSDPTurbo(fully_shard=3, ulysses=2)}, "engine", {"engine": FSDPTurbo(fully_shard=4, ulysses=2)}, {}),
    ("F9", {"engine": VeOmni(sp=2, fsdp_size=3)}, "engine.fsdp_size", {"engine": VeOmni(sp=2, fsdp_size=2)}, {}),
    ("F9", {"engine": VeOmni(ep=3)}, "engine", {"engine": VeOmni(ep=4)}, {"config": EXPERTS}),
    ("F11", {"engine": FSDP2(dtype="float16")}, "engine.dtype", {"engine": FSDP2()}, {}),
    ("B1", {"train_batch_size": 9}, "train_batch_size", {"train_batch_size": 10}, {}),
    ("B2", {"ppo_mini_batch_size": 64}, "ppo_mini_batch_size", {"ppo_mini_batch_size": 16}, {}),
    ("B2", {"ppo_mini_batch_size": 64, "use_dynamic_bsz": True}, "ppo_mini_batch_size", {"use_dynamic_bsz": True}, {}),
    (
        "B2",
        {"algorithm": PPO(), "overrides": {"critic.ppo_mini_batch_size": 64}},
        "overrides['critic.ppo_mini_batch_size']",
        {"algorithm": PPO(), "overrides": {"critic.ppo_mini_batch_size": 8}},
        {},
    ),
    ("B3", {"ppo_mini_batch_size": 3}, "ppo_mini_batch_size", {"ppo_mini_batch_size": 4}, {}),
    (
        "B3",
        {"algorithm": PPO(), "overrides": {"critic.ppo_mini_batch_size": 3}},
        "overrides['critic.ppo_mini_batch_size']",
        {"algorithm": PPO(), "overrides": {"critic.ppo_mini_batch_size": 4}},
        {},
    ),
    ("B4", {"ppo_micro_batch_size_per_gpu": 5}, "ppo_micro_batch_size_per_gpu", {"ppo_micro_batch_size_per_gpu": 4}, {}),
    ("B5", {"ppo_micro_batch_size_per_gpu": None}, "ppo_micro_batch_size_per_gpu", {"ppo_micro_batch_size_per_gpu": 1}, {}),
    (
        "B7",
        {"use_dynamic_bsz": True, "ppo_max_token_len_per_gpu": 100},
        "ppo_max_token_len_per_gpu",
        {"use_dynamic_bsz": True, "ppo_max_token_len_per_gpu": 128},
        {},
    ),
    (
        "B10",
        {"trainer": SeparateAsync(rollout_devices=4, parameter_sync_step=3)},
        "train_batch_size",
        {"trainer": SeparateAsync(rollout_devices=4, parameter_sync_step=2), "ppo_mini_batch_size": 24},
        {},
    ),
    (
        "B11",
        {"train_batch_size": 24, "ppo_mini_batch_size": 16},
        "train_batch_size",
        {"train_batch_size": 32, "ppo_mini_batch_size": 16},
        {},
    ),
    ("B12", {"dataset_size": 47}, "dataset_size", {"dataset_size": 48}, {}),
    (
        "B12",
        {"dataset_size": 100, "overrides": {"trainer.total_epochs": 1}},
        "overrides['trainer.total_epochs']",
        {"dataset_size": 100, "overrides": {"trainer.total_epochs": 2}},
        {},
    ),
    ("B13", {"filter_overlong_prompts": False}, "filter_overlong_prompts", {}, {}),
    ("B13", {"overrides": {"data.truncation": "error"}}, "overrides['data.truncation']", {}, {}),
    ("R1", {"rollout": Vllm(n=4, tp=3)}, "rollout", {"rollout": Vllm(n=4, tp=2)}, {}),
    (
        "R2",
        {"rollout": Vllm(n=4, tp=12)},
        "rollout",
        {"rollout": Vllm(n=4, tp=16)},
        {"nodes": 6, "config": {**CONFIG, "num_attention_heads": 48}},
    ),
    (
        "R3",
        {"rollout": Vllm(n=4, tp=3)},
        "rollout.tp",
        {"rollout": Vllm(n=4, tp=8)},
        {"devices": 24, "config": {**CONFIG, "num_attention_heads": 32}},
    ),
    ("R4", {"rollout": Vllm(n=4, tp=2, ep=4)}, "rollout.ep", {"rollout": Vllm(n=4, tp=4, ep=4)}, {}),
    ("R7", {"max_response_length": 4096}, "max_prompt_length", {"max_response_length": 4032}, {}),
    ("R7", {"rollout": Vllm(n=4, max_model_len=5000)}, "rollout.max_model_len", {"rollout": Vllm(n=4, max_model_len=4096)}, {}),
    ("R8", {"rollout": Vllm(n=4, tp=3, dp=2)}, "rollout.tp", {"rollout": Vllm(n=4, tp=2, dp=2)}, {}),
    (
        "R13",
        {},
        "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes",
        {"overrides": {f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes": 3072}},
        {"config": WIDE},
    ),
    (
        "R14",
        {"trainer": SeparateAsync(rollout_devices=4, checkpoint_backend="naive")},
        "trainer.checkpoint_backend",
        {"trainer": SeparateAsync(rollout_devices=4)},
        {},
    ),
    (
        "K1",
        {"overrides": {"actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": 2}},
        "overrides['actor_rollout_ref.ref.",
        {"algorithm": REFERENCE, "overrides": {"actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": 2}},
        {},
    ),
    ("K1", {"reference": FSDP2()}, "reference", {"algorithm": REFERENCE, "reference": FSDP2()}, {}),
    (
        "K2",
        {"overrides": {"critic.grad_clip": 1.0}},
        "overrides['critic.grad_clip']",
        {"algorithm": PPO(), "overrides": {"critic.grad_clip": 1.0}},
        {},
    ),
    ("K3", {"algorithm": GRPO(use_kl_loss=True, use_kl_in_reward=True)}, "algorithm", {"algorithm": REFERENCE}, {}),
    (
        "K4",
        {"algorithm": GRPO(loss_agg_mode="mean")},
        "algorithm.loss_agg_mode",
        {"algorithm": GRPO(loss_agg_mode="token-sum")},
        {},
    ),
    ("K6", {"algorithm": GRPO(adv_estimator="foo")}, "algorithm.adv_estimator", {"algorithm": GRPO(adv_estimator="rloo")}, {}),
    (
        "K9",
        {"overrides": {"reward_model.enable": True}},
        "overrides['reward_model.enable']",
        {"overrides": {"reward.reward_model.enable": True}},
        {},
    ),
    (
        "K10",
        {"overrides": {"trainer.save_freq": 1, "trainer": {"save_freq": 2}}},
        "overrides['trainer.save_freq']",
        {"overrides": {"trainer.save_freq": 1}},
        {},
    ),
    ("K11", {"overrides": {"trainer.balance_batch": False}}, "overrides['trainer.balance_batch']", {}, {}),
    (
        "K14",
        {"overrides": {"skip.rollout.enable": True}},
        "overrides['skip.rollout.enable']",
        {"overrides": {"skip.rollout_tq.enable": True}},
        {},
    ),
    (
        "K17",
        {"overrides": {f"{MEGATRON}.load_weight": True}},
        f"overrides['{MEGATRON}.load_weight']",
        {"engine": Megatron(), "overrides": {f"{MEGATRON}.load_weight": True}},
        {},
    ),
    ("K18", {"engine": Megatron(), "lora": Lora(rank=8)}, "lora", {"engine": FSDP(), "lora": Lora(rank=8)}, {}),
    ("K19", {"algorithm": REFERENCE, "reference": FSDP()}, "reference", {"algorithm": REFERENCE, "reference": FSDP2()}, {}),
    ("K20", {"rollout": Vllm(n=1)}, "rollout.n", {"rollout": Vllm(n=2)}, {}),
    (
        "K21",
        {"overrides": {"trainer.logger": ["console"]}},
        "overrides['trainer.logger']",
        {"overrides": {"trainer.logger": ["console", "file"]}},
        {},
    ),
    (
        "K22",
        {"algorithm": DAPO(overlong_buffer_len=65)},
        "algorithm.overlong_buffer_len",
        {"algorithm": DAPO(overlong_buffer_len=64)},
        {},
    ),
    (
        "K23",
        {"overrides": {"data.train_batch_size": 8}},
        "overrides['data.train_batch_size']",
        {"overrides": {"data.val_batch_size": 8}},
        {},
    ),
    (
        "A1",
        {"algorithm": REFERENCE, "engine": Megatron(transformer=ROUTER), "reference": Megatron()},
        "engine.transformer['moe_router_dtype']",
        {"algorithm": REFERENCE, "engine": Megatron(transformer=ROUTER), "reference": Megatron(transformer=ROUTER)},
        {},
    ),
    ("A2", {"rollout": Sglang(n=4, dtype="float16")}, "rollout.dtype", {"rollout": Sglang(n=4)}, {}),
)
TUNING: tuple[tuple[str, Fields, str, Fields, dict[str, Any]], ...] = (
    ("S1", {"train_batch_size": 12}, "train_batch_size", {"train_batch_size": 16}, {}),
    ("S2", {}, "launcher", {"launcher": "ray"}, {"nodes": 2}),
    ("S3", {"processes_per_node": 16}, "processes_per_node", {"processes_per_node": 4}, {}),
    ("S4", {"max_token_len_per_gpu": 512}, "max_token_len_per_gpu", {"max_token_len_per_gpu": 1024}, {}),
    ("F3", {"engine": FSDP2(sp=2), "use_remove_padding": False}, "engine.sp", {"engine": FSDP2(sp=2)}, {}),
    ("K18", {"engine": Megatron(), "lora": Lora(rank=8)}, "lora", {"lora": Lora(rank=8)}, {}),
)
BY_OTHERS = {
    "K7": "tests/system/test_preflight_composition.py",
    "K8": "tests/system/test_preflight_composition.py",
    "K24": "tests/system/test_preflight_composition.py",
    "A3": "tests/unit/test_preflight_roles.py",
}


@pytest.mark.parametrize(
    ("build", "rule", "bad", "named", "good", "rest"),
    [*((recipe_with, *case) for case in RULES), *((tuning_with, *case) for case in TUNING)],
)
def test_a_rule_finds_the_bad_value_and_takes_the_good_one(
    *, build: Callable[..., Recipe | SFT], rule: str, bad: Fields, named: str, good: Fields, rest: dict[str, Any]
) -> None:
    found = [text for text in said(build, bad, **rest) if text.endswith(f"[{rule}]")]

    assert found, said(build, bad, **rest)
    assert all(text.startswith(named) for text in found)
    assert said(build, good, **rest) == ()


def test_every_rule_that_is_checked_is_shown_to_find_something() -> None:
    shown = {case[0] for case in (*RULES, *TUNING, *CASES)} | set(BY_OTHERS)

    assert {rule.id for rule in all_rules() if rule.by is not None} == shown


def test_a_rule_that_is_tested_elsewhere_is_named_there() -> None:
    for rule, path in BY_OTHERS.items():
        assert f"[{rule}]" in (ROOT / path).read_text(), rule


def test_every_rule_is_registered_once_and_says_why_it_is_not_checked() -> None:
    rules = all_rules()

    assert len({rule.id for rule in rules}) == len(rules)
    assert all((rule.by is None) == bool(rule.unchecked) == (rule.is_error is None) for rule in rules)


def test_every_id_in_the_code_is_registered() -> None:
    known = {rule.id for rule in all_rules()}
    texts = [path.read_text() for room in ("recipe", "preflight") for path in (ROOT / "pytest_ascend_e2e" / room).glob("*.py")]

    named = {
        found for text in texts for found in re.findall(r"\[([MFBRKAS]\d+)\]|\"([MFBRKAS]\d+)\"", text) for found in found if found
    }

    assert named == {rule.id for rule in all_rules() if rule.by is not None}
    assert named <= known


def test_the_docs_show_every_rule_as_it_is_registered() -> None:
    assert rules_table(all_rules()) in PAGE.read_text(), "paste what `ascend-e2e rules` prints into docs/rules.md"


def test_a_composed_configuration_is_judged_by_the_same_rules() -> None:
    plan = judge(recipe_with(), 8, model_config=CONFIG)

    composed = plan.with_composition(Composition(is_checked=True, config={"trainer": {"resume_mode": "always"}}))

    assert [problem.rpartition(" ")[2] for problem in composed.problems] == ["[K13]"]
