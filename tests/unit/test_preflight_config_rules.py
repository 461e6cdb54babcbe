"""Rules on a configuration by verl's own keys: each with a value that it takes and one that it does not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pytest_ascend_e2e.preflight.config_rules import config_findings
from pytest_ascend_e2e.preflight.findings import Values

ACTOR, REFERENCE, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.ref", "actor_rollout_ref.rollout"
MODEL, MEGATRON = "actor_rollout_ref.model", f"{ACTOR}.megatron"
TRANSFORMER = f"{MEGATRON}.override_transformer_config"
REPLAY, LENGTH = f"{MEGATRON}.router_replay.mode", f"{ROLLOUT}.max_model_len"
LENGTHS = {"data.max_prompt_length": 512, "data.max_response_length": 512}

Flat = Mapping[str, object]
# The rule, whether it is an error, a configuration that it does not take, the key that is named, and one that it takes.
CASES: tuple[tuple[str, bool, Flat, str, Flat], ...] = (
    (
        "M11",
        True,
        {f"{TRANSFORMER}.recompute_granularity": "full", f"{TRANSFORMER}.recompute_num_layers": 1},
        f"{TRANSFORMER}.recompute_granularity",
        {
            f"{TRANSFORMER}.recompute_granularity": "full",
            f"{TRANSFORMER}.recompute_num_layers": 1,
            f"{TRANSFORMER}.recompute_method": "uniform",
        },
    ),
    (
        "M11",
        True,
        {f"{TRANSFORMER}.recompute_granularity": "full", f"{TRANSFORMER}.recompute_method": "block"},
        f"{TRANSFORMER}.recompute_granularity",
        {f"{TRANSFORMER}.recompute_granularity": None},
    ),
    (
        "M11",
        True,
        {f"{TRANSFORMER}.recompute_granularity": "selective", f"{TRANSFORMER}.recompute_num_layers": 1},
        f"{TRANSFORMER}.recompute_num_layers",
        {f"{TRANSFORMER}.recompute_granularity": "selective", f"{TRANSFORMER}.recompute_num_layers": None},
    ),
    ("M13", True, {f"{MEGATRON}.use_mbridge": False}, f"{MEGATRON}.use_mbridge", {f"{MEGATRON}.use_mbridge": True}),
    (
        "M13",
        True,
        {f"{ACTOR}.strategy": "megatron", f"{MEGATRON}.dtype": "float32"},
        f"{MEGATRON}.dtype",
        {f"{ACTOR}.strategy": "megatron", f"{MEGATRON}.dtype": "float16"},
    ),
    ("M14", False, {"engine.vanilla_mbridge": True}, "engine.vanilla_mbridge", {"engine.vanilla_mbridge": False}),
    (
        "M15",
        True,
        {f"{MEGATRON}.tensor_model_parallel_size": 2, "critic.megatron.tensor_model_parallel_size": 1},
        "critic.megatron.tensor_model_parallel_size",
        {
            "algorithm.adv_estimator": "grpo",  # no critic
            f"{MEGATRON}.tensor_model_parallel_size": 2,
            "critic.megatron.tensor_model_parallel_size": 1,
        },
    ),
    (
        "M19",
        True,
        {REPLAY: "R2", "algorithm.rollout_correction.bypass_mode": True},
        f"{MEGATRON}.router_replay.mode",
        {REPLAY: "R3", "algorithm.rollout_correction.bypass_mode": True},
    ),
    (
        "M20",
        True,
        {
            f"{MEGATRON}.dynamic_context_parallel": True,
            f"{MEGATRON}.max_seqlen_per_dp_cp_rank": 4096,
            f"{MEGATRON}.pad_to_length": True,
        },
        f"{MEGATRON}.dynamic_context_parallel",
        {f"{MEGATRON}.pad_to_length": True},
    ),
    (
        "F3",
        True,
        {f"{ACTOR}.ulysses_sequence_parallel_size": 2, f"{MODEL}.use_remove_padding": False},
        f"{ACTOR}.ulysses_sequence_parallel_size",
        {f"{ACTOR}.ulysses_sequence_parallel_size": 2, f"{MODEL}.use_remove_padding": True},
    ),
    (
        "F10",
        True,
        {f"{ACTOR}.optim.exp_avg_dtype": "fp8"},
        f"{ACTOR}.optim.exp_avg_dtype",
        {f"{ACTOR}.optim.exp_avg_dtype": "bf16"},
    ),
    (
        "B5",
        True,
        {
            "critic.use_dynamic_bsz": False,
            "critic.ppo_micro_batch_size": 8,
            "critic.ppo_micro_batch_size_per_gpu": 1,
        },
        "critic.ppo_micro_batch_size",
        {"critic.use_dynamic_bsz": False, "critic.ppo_micro_batch_size_per_gpu": 1},
    ),
    (
        "B5",
        True,
        {f"{REFERENCE}.log_prob_use_dynamic_bsz": False, f"{REFERENCE}.log_prob_micro_batch_size_per_gpu": None},
        f"{REFERENCE}.log_prob_micro_batch_size_per_gpu",
        {f"{REFERENCE}.log_prob_use_dynamic_bsz": True, f"{REFERENCE}.log_prob_micro_batch_size_per_gpu": None},
    ),
    (
        "B6",
        True,
        {"critic.ppo_micro_batch_size": 6, "critic.ppo_mini_batch_size": 16},
        "critic.ppo_micro_batch_size",
        {"critic.ppo_micro_batch_size": 8, "critic.ppo_mini_batch_size": 16},
    ),
    (
        "B6",
        True,
        {f"{ACTOR}.ppo_micro_batch_size": 4, f"{ACTOR}.ppo_mini_batch_size": 16, "trainer.n_gpus_per_node": 8},
        f"{ACTOR}.ppo_micro_batch_size",
        {f"{ACTOR}.ppo_micro_batch_size": 8, f"{ACTOR}.ppo_mini_batch_size": 16, "trainer.n_gpus_per_node": 8},
    ),
    (
        "B9",
        True,
        {f"{ROLLOUT}.log_prob_use_dynamic_bsz": False, f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": None},
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu",
        {f"{ROLLOUT}.log_prob_use_dynamic_bsz": False, f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 2},
    ),
    (
        "B9",
        True,
        {f"{ACTOR}.use_dynamic_bsz": True, f"{ACTOR}.ppo_max_token_len_per_gpu": None},
        f"{ACTOR}.ppo_max_token_len_per_gpu",
        {f"{ACTOR}.use_dynamic_bsz": True, f"{ACTOR}.ppo_max_token_len_per_gpu": 8192},
    ),
    (
        "R4",
        True,
        {f"{ROLLOUT}.expert_parallel_size": 4, f"{ROLLOUT}.tensor_model_parallel_size": 2},
        f"{ROLLOUT}.expert_parallel_size",
        {
            f"{ROLLOUT}.expert_parallel_size": 4,
            f"{ROLLOUT}.tensor_model_parallel_size": 2,
            f"{ROLLOUT}.data_parallel_size": 2,
        },
    ),
    (
        "R14",
        False,
        {f"{ROLLOUT}.checkpoint_engine.backend": "nccl"},
        f"{ROLLOUT}.checkpoint_engine.backend",
        {f"{ROLLOUT}.checkpoint_engine.backend": "naive"},
    ),
    (
        "R14",
        True,
        {"trainer.v1.trainer_mode": "separate_async", f"{ROLLOUT}.checkpoint_engine.backend": "naive"},
        f"{ROLLOUT}.checkpoint_engine.backend",
        {"trainer.v1.trainer_mode": "separate_async", f"{ROLLOUT}.checkpoint_engine.backend": "nccl"},
    ),
    (
        "R14",
        True,
        {"trainer.v1.trainer_mode": "separate_async", f"{ROLLOUT}.nnodes": 0},
        f"{ROLLOUT}.nnodes",
        {"trainer.v1.trainer_mode": "separate_async", f"{ROLLOUT}.nnodes": 1},
    ),
    (
        "R14",
        True,
        {
            "trainer.v1.trainer_mode": "separate_async",
            "reward.reward_model.enable": True,
            "reward.reward_model.enable_resource_pool": False,
        },
        "reward.reward_model.enable",
        {
            "trainer.v1.trainer_mode": "separate_async",
            "reward.reward_model.enable": True,
            "reward.reward_model.enable_resource_pool": True,
        },
    ),
    (
        "K5",
        True,
        {f"{ACTOR}.policy_loss.loss_mode": "foo"},
        f"{ACTOR}.policy_loss.loss_mode",
        {f"{ACTOR}.policy_loss.loss_mode": "cispo"},
    ),
    ("K6", True, {"algorithm.adv_estimator": "foo"}, "algorithm.adv_estimator", {"algorithm.adv_estimator": "opo"}),
    (
        "M19",
        True,
        {REPLAY: "R4"},
        f"{MEGATRON}.router_replay.mode",
        {REPLAY: "R3"},
    ),
    (
        "M20",
        True,
        {f"{MEGATRON}.dynamic_context_parallel": True, f"{MEGATRON}.max_seqlen_per_dp_cp_rank": None},
        f"{MEGATRON}.dynamic_context_parallel",
        {f"{MEGATRON}.dynamic_context_parallel": True, f"{MEGATRON}.max_seqlen_per_dp_cp_rank": 4096},
    ),
    (
        "M20",
        True,
        {
            f"{MEGATRON}.dynamic_context_parallel": True,
            f"{MEGATRON}.max_seqlen_per_dp_cp_rank": 4096,
            f"{MEGATRON}.virtual_pipeline_model_parallel_size": 2,
        },
        f"{MEGATRON}.dynamic_context_parallel",
        {f"{MEGATRON}.dynamic_context_parallel": False, f"{MEGATRON}.virtual_pipeline_model_parallel_size": 2},
    ),
    (
        "M20",
        True,
        {
            f"{MEGATRON}.dynamic_context_parallel": True,
            f"{MEGATRON}.max_seqlen_per_dp_cp_rank": 4096,
            f"{MODEL}.use_remove_padding": False,
        },
        f"{MEGATRON}.dynamic_context_parallel",
        {
            f"{MEGATRON}.dynamic_context_parallel": True,
            f"{MEGATRON}.max_seqlen_per_dp_cp_rank": 4096,
            f"{MODEL}.use_remove_padding": True,
        },
    ),
    ("F1", True, {f"{ACTOR}.strategy": "fsdp3"}, f"{ACTOR}.strategy", {f"{ACTOR}.strategy": "fsdp2"}),
    (
        "F6",
        False,
        {"critic.ulysses_sequence_parallel_size": 2},
        "critic.ulysses_sequence_parallel_size",
        {"critic.fsdp.ulysses_sequence_parallel_size": 2},
    ),
    (
        "F9",
        True,
        {f"{ACTOR}.veomni.router_replay.mode": "R2", f"{MODEL}.use_remove_padding": False},
        f"{ACTOR}.veomni.router_replay.mode",
        {f"{ACTOR}.veomni.router_replay.mode": "R2", f"{MODEL}.use_remove_padding": True},
    ),
    (
        "F10",
        True,
        {f"{ACTOR}.strategy": "fsdp", f"{ACTOR}.optim.lr_scheduler_type": "linear"},
        f"{ACTOR}.optim.lr_scheduler_type",
        {f"{ACTOR}.strategy": "fsdp", f"{ACTOR}.optim.lr_scheduler_type": "cosine"},
    ),
    (
        "B7",
        True,
        {**LENGTHS, f"{ROLLOUT}.log_prob_use_dynamic_bsz": True, f"{ROLLOUT}.log_prob_max_token_len_per_gpu": 1000},
        f"{ROLLOUT}.log_prob_max_token_len_per_gpu",
        {
            **LENGTHS,
            f"{ROLLOUT}.log_prob_use_dynamic_bsz": True,
            f"{ROLLOUT}.log_prob_max_token_len_per_gpu": 512,
            f"{ACTOR}.fsdp_config.ulysses_sequence_parallel_size": 2,
        },
    ),
    (
        "B7",
        True,
        {**LENGTHS, f"{REFERENCE}.log_prob_use_dynamic_bsz": True, f"{REFERENCE}.log_prob_max_token_len_per_gpu": 1000},
        f"{REFERENCE}.log_prob_max_token_len_per_gpu",
        {**LENGTHS, f"{REFERENCE}.log_prob_use_dynamic_bsz": False, f"{REFERENCE}.log_prob_max_token_len_per_gpu": 1000},
    ),
    (
        "B7",
        True,
        {**LENGTHS, "critic.use_dynamic_bsz": True, "critic.ppo_max_token_len_per_gpu": 1000},
        "critic.ppo_max_token_len_per_gpu",
        {**LENGTHS, "critic.use_dynamic_bsz": True, "critic.ppo_max_token_len_per_gpu": 1024},
    ),
    (
        "B8",
        True,
        {f"{ACTOR}.use_dynamic_bsz": True, f"{ROLLOUT}.log_prob_use_dynamic_bsz": False},
        f"{ROLLOUT}.log_prob_use_dynamic_bsz",
        {f"{ACTOR}.use_dynamic_bsz": True, f"{ROLLOUT}.log_prob_use_dynamic_bsz": True},
    ),
    (
        "B10",
        True,
        {"data.train_batch_size": 64, "data.gen_batch_size": 5},
        "data.gen_batch_size",
        {"data.train_batch_size": 64, "data.gen_batch_size": 4},
    ),
    (
        "R5",
        True,
        {f"{ROLLOUT}.pipeline_model_parallel_size": 2},
        f"{ROLLOUT}.pipeline_model_parallel_size",
        {f"{ROLLOUT}.pipeline_model_parallel_size": 1},
    ),
    ("R6", True, {f"{ROLLOUT}.mode": "sync"}, f"{ROLLOUT}.mode", {f"{ROLLOUT}.mode": "async"}),
    (
        "R7",
        True,
        {**LENGTHS, LENGTH: 512},
        f"{ROLLOUT}.max_model_len",
        {**LENGTHS, LENGTH: 1024},
    ),
    (
        "R7",
        False,
        {**LENGTHS, LENGTH: 600},
        f"{ROLLOUT}.max_model_len",
        {**LENGTHS, LENGTH: None},
    ),
    (
        "R10",
        True,
        {f"{ROLLOUT}.moe_tensor_parallel_size": 2, f"{ROLLOUT}.name": "vllm"},
        f"{ROLLOUT}.moe_tensor_parallel_size",
        {f"{ROLLOUT}.moe_tensor_parallel_size": 2, f"{ROLLOUT}.name": "trtllm"},
    ),
    (
        "R11",
        True,
        {f"{ROLLOUT}.val_kwargs.do_sample": True, f"{ROLLOUT}.temperature": 0},
        f"{ROLLOUT}.val_kwargs.do_sample",
        {f"{ROLLOUT}.val_kwargs.do_sample": True, f"{ROLLOUT}.temperature": 0.7},
    ),
    (
        "R12",
        True,
        {f"{MODEL}.lora_rank": 1024, f"{ROLLOUT}.name": "vllm"},
        f"{MODEL}.lora_rank",
        {f"{MODEL}.lora_rank": 512, f"{ROLLOUT}.name": "vllm"},
    ),
    ("K11", False, {f"{ACTOR}.optim.warmup_style": "cosine"}, f"{ACTOR}.optim.warmup_style", {f"{ACTOR}.optim.warmup_style": None}),
    ("K12", False, {"trainer.use_v1": False}, "trainer.use_v1", {"trainer.use_v1": True}),
    ("K13", True, {"trainer.resume_mode": "always"}, "trainer.resume_mode", {"trainer.resume_mode": "auto"}),
    (
        "K13",
        True,
        {"trainer.resume_mode": "resume_path", "trainer.resume_from_path": "checkpoints"},
        "trainer.resume_from_path",
        {"trainer.resume_mode": "resume_path", "trainer.resume_from_path": "checkpoints/global_step_3"},
    ),
    (
        "K13",
        False,
        {"trainer.resume_mode": "auto", "trainer.resume_from_path": "checkpoints/global_step_3"},
        "trainer.resume_from_path",
        {"trainer.resume_mode": "auto", "trainer.resume_from_path": None},
    ),
)


@pytest.mark.parametrize(("rule", "is_error", "bad", "key", "good"), CASES)
def test_a_rule_finds_the_bad_value_and_takes_the_good_one(rule: str, is_error: bool, bad: Flat, key: str, good: Flat) -> None:
    origins = {name: f"overrides[{name!r}]" for name in {*bad, *good}}

    (finding,) = config_findings(Values(flat=bad, origins=origins))

    assert (finding.rule, finding.is_error) == (rule, is_error)
    assert finding.text.startswith(f"overrides[{key!r}]: {bad[key]!r}")
    assert str(finding).endswith(f"[{rule}]")
    assert config_findings(Values(flat=good, origins=origins)) == []


def test_all_findings_of_a_configuration_are_told_together() -> None:
    found = config_findings(Values(flat={f"{ROLLOUT}.mode": "sync", "trainer.resume_mode": "always"}, origins={}))

    assert [finding.rule for finding in found] == ["R6", "K13"]


def test_a_value_of_verls_own_yaml_is_told_by_its_key() -> None:
    (finding,) = config_findings(Values(flat={f"{ROLLOUT}.mode": "sync"}, origins={}))

    assert finding.text.startswith(f"{ROLLOUT}.mode: 'sync'")


def test_an_empty_configuration_is_not_judged() -> None:
    assert config_findings(Values(flat={}, origins={})) == []
