"""Pull-request cases with a reward from a function: FSDP and FSDP2, text and pictures, LoRA, padding, a reward of one's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_ascend_e2e import FSDP, FSDP2, GRPO, PPO, Lora, Recipe, Run, Sglang, Vllm, npu_e2e
from tests.e2e_npu.custom_reward import SCORE

NO_RECOMPUTING_CRITIC = {"critic.model.enable_gradient_checkpointing": False}
SAVING = {
    "actor_rollout_ref.actor.checkpoint.save_contents": ["model", "hf_model", "optimizer", "extra"],
    "trainer.save_freq": 1,
    "trainer.default_local_dir": "checkpoints",
}
VALIDATING = {"trainer.test_freq": 1, "trainer.val_before_train": True}

BASE = Recipe(
    algorithm=PPO(),
    model="Qwen/Qwen2.5-0.5B",
    dataset="gsm8k",
    engine=FSDP(offload=True),
    rollout=Vllm(tp=2, n=4, gpu_memory_utilization=0.7),
    train_batch_size=16,
    ppo_mini_batch_size=8,
    ppo_micro_batch_size_per_gpu=2,
    max_prompt_length=512,
    max_response_length=512,
    steps=1,
    filter_overlong_prompts=False,
    overrides=NO_RECOMPUTING_CRITIC,
)
PICTURES = replace(
    BASE,
    algorithm=GRPO(use_kl_loss=True, use_kl_in_reward=True),
    model="Qwen/Qwen2.5-VL-3B-Instruct",
    dataset="geometry3k",
    engine=FSDP(sp=2, offload=True),
    rollout=replace(BASE.rollout, enable_chunked_prefill=False),
    max_prompt_length=1536,
    max_response_length=1536,
    overrides={},
)
# Adapters only reach a rollout that has the weights already.
FOR_ADAPTERS = {
    "actor_rollout_ref": {"model.use_shm": True, "rollout": {"load_format": "safetensors", "layered_summon": True}},
}


@npu_e2e(runner="a3-8", timeout="90m", estimate="15m", recipe=replace(BASE, rollout=Sglang(tp=2, n=4, gpu_memory_utilization=0.7)))
def test_ppo_qwen2_5_0_5b_fsdp_sglang(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()


@npu_e2e(
    runner="a2b3-8",
    timeout="90m",
    estimate="15m",
    recipe=replace(
        BASE,
        algorithm=PPO(use_kl_loss=True, use_kl_in_reward=True),
        engine=FSDP(fsdp_size=4, offload=True),  # two copies of the model, each on four devices
        overrides={**NO_RECOMPUTING_CRITIC, **SAVING, **VALIDATING},
    ),
)
def test_ppo_qwen2_5_0_5b_fsdp_vllm_two_copies(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()
    assert (run.directory / "checkpoints" / "global_step_1" / "actor").is_dir()


@npu_e2e(
    runner="a2b3-8",
    timeout="90m",
    estimate="15m",
    recipe=replace(BASE, engine=FSDP2(offload=True), overrides={**NO_RECOMPUTING_CRITIC, **SAVING, **VALIDATING}),
)
def test_ppo_qwen2_5_0_5b_fsdp2_vllm_save(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()
    assert (run.directory / "checkpoints" / "global_step_1" / "actor").is_dir()


@npu_e2e(runner="a2b3-8", timeout="90m", estimate="15m", recipe=replace(BASE, use_remove_padding=False))
def test_ppo_qwen2_5_0_5b_fsdp_vllm_with_padding(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()


@npu_e2e(
    runner="a2b3-8",
    timeout="90m",
    estimate="15m",
    recipe=replace(
        BASE,
        algorithm=GRPO(use_kl_loss=True, use_kl_in_reward=True),
        overrides={
            "reward.custom_reward_function": {
                "path": str(Path(__file__).with_name("custom_reward.py")),
                "name": "my_reward_function",
            }
        },
    ),
)
def test_grpo_qwen2_5_0_5b_fsdp_vllm_custom_reward(run: Run) -> None:
    run.check_completed()
    assert abs(run.metrics["critic/score/mean"].last(1).mean() - SCORE) < 1e-6, "the scores are not those of our function"


@npu_e2e(
    runner="a2b3-8",
    timeout="90m",
    estimate="15m",
    recipe=replace(
        BASE,
        algorithm=GRPO(),
        engine=FSDP(fsdp_size=4, offload=True),
        lora=Lora(rank=32, alpha=32),
        overrides={**FOR_ADAPTERS, "trainer.save_freq": 1, "trainer.default_local_dir": "checkpoints"},
    ),
)
def test_grpo_qwen2_5_0_5b_fsdp_vllm_lora(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()
    adapters = run.directory / "checkpoints" / "global_step_1" / "actor" / "lora_adapter"
    assert (adapters / "adapter_model.safetensors").is_file()


@npu_e2e(
    runner="a2b3-8",
    timeout="90m",
    estimate="15m",
    recipe=replace(
        BASE,
        algorithm=GRPO(),
        engine=FSDP2(offload=True),
        lora=Lora(rank=32, alpha=32),
        overrides=FOR_ADAPTERS,
    ),
)
def test_grpo_qwen2_5_0_5b_fsdp2_vllm_lora(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()


@npu_e2e(runner="a2b3-8", timeout="1h", estimate="15m", recipe=PICTURES)
def test_grpo_qwen2_5_vl_3b_fsdp_vllm(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()


@npu_e2e(
    runner="a2b3-8",
    timeout="1h",
    estimate="15m",
    recipe=replace(PICTURES, algorithm=PPO(use_kl_loss=True, use_kl_in_reward=True), overrides=NO_RECOMPUTING_CRITIC),
)
def test_ppo_qwen2_5_vl_3b_fsdp_vllm(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()


@npu_e2e(
    runner="a2b3-8",
    timeout="1h",
    estimate="15m",
    recipe=replace(PICTURES, lora=Lora(rank=32, alpha=32, exclude_modules=".*visual.*")),
)
def test_grpo_qwen2_5_vl_3b_fsdp_vllm_lora(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()
