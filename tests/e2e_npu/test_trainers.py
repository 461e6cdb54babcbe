"""Pull-request cases of several trainers: PPO, profiling, Megatron through MindSpeed, pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_ascend_e2e import FSDP, FSDP2, GRPO, PPO, Megatron, Profiling, Recipe, Run, Vllm, npu_e2e

GRAPHS = {"compilation_config": {"cudagraph_mode": "FULL_AND_PIECEWISE"}}
# Where a model lies that was converted to Megatron's own format beforehand; resolved on the runner.
CONVERTED = "${oc.env:HOME}/dist_ckpt"


@npu_e2e(
    runner="a3-8",
    timeout="2h",
    estimate="20m",
    recipe=Recipe(
        algorithm=PPO(),
        model="Qwen/Qwen3-0.6B",
        dataset="gsm8k",
        engine=FSDP(sp=2, offload=True),
        rollout=Vllm(gpu_memory_utilization=0.8, engine_kwargs=GRAPHS),
        train_batch_size=16,
        ppo_mini_batch_size=8,
        use_dynamic_bsz=True,
        max_prompt_length=512,
        max_response_length=128,
        steps=2,
        shuffle=False,
        filter_overlong_prompts=False,
    ),
)
def test_ppo_qwen3_0_6b_fsdp_vllm(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()


@npu_e2e(
    runner="a3-8",
    timeout="2h",
    estimate="20m",
    recipe=Recipe(
        algorithm=GRPO(),
        model="Qwen/Qwen3-8B",
        dataset="gsm8k",
        engine=FSDP(sp=2, offload=True),
        rollout=Vllm(gpu_memory_utilization=0.9, max_num_batched_tokens=4000, max_num_seqs=64),
        train_batch_size=32,
        use_dynamic_bsz=True,
        max_prompt_length=1024,
        max_response_length=2048,
        steps=1,
        shuffle=False,
        filter_overlong_prompts=False,
        profiling=Profiling(steps=[1], ranks=[2, 4], discrete=True),
        overrides={"actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes": 4096},
    ),
)
def test_grpo_qwen3_8b_fsdp_vllm_profiling(run: Run) -> None:
    run.check_completed()
    assert profiles(run), "the profiler wrote nothing"


def profiles(run: Run) -> list[Path]:
    """Return what the NPU profiler wrote into the run directory: a directory for each rank and step."""
    return sorted((run.directory / "profiler").rglob("*_ascend_pt"))


MEGATRON = Megatron(tp=2, pp=2, vanilla_mbridge=True, transformer={"use_flash_attn": True})
MINDSPEED = Recipe(
    algorithm=GRPO(use_kl_loss=True),
    model="Qwen/Qwen3-0.6B",
    dataset="gsm8k",
    lr=5e-7,
    engine=MEGATRON,
    rollout=Vllm(tp=2, n=2, gpu_memory_utilization=0.6, enable_chunked_prefill=False, engine_kwargs=GRAPHS),
    train_batch_size=16,
    ppo_mini_batch_size=8,
    max_prompt_length=512,
    max_response_length=128,
    steps=1,
    overrides={
        "actor_rollout_ref.actor.megatron": {
            "use_dist_checkpointing": True,
            "dist_checkpointing_path": f"{CONVERTED}/qwen3_06b_grpo_mindspeed",
        }
    },
)


@npu_e2e(runner="a3-8", timeout="2h", estimate="20m", recipe=MINDSPEED)
def test_grpo_qwen3_0_6b_megatron_vllm_mindspeed(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()


@npu_e2e(
    runner="a3-8",
    timeout="2h",
    estimate="20m",
    recipe=replace(
        MINDSPEED,
        algorithm=GRPO(clip_ratio_high=0.28, clip_ratio_c=10.0, kl_loss_coef=0.0, kl_coef=0.0),
        # A few layers of the real architecture with random weights.
        model="mindspeed/Qwen3-30B-A3B-minimal",
        lr=1e-6,
        engine=replace(MEGATRON, ep=2),
        rollout=replace(MINDSPEED.rollout, enforce_eager=True),
        use_dynamic_bsz=True,
        ppo_max_token_len_per_gpu=1536,
        max_response_length=1024,
        shuffle=False,
        overrides={
            "actor_rollout_ref.actor.megatron": {
                "use_dist_checkpointing": True,
                "dist_checkpointing_path": f"{CONVERTED}/qwen3_30b_grpo_mindspeed_dummy",
            }
        },
    ),
)
def test_grpo_qwen3_30b_megatron_vllm_mindspeed(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()


@npu_e2e(
    runner="a2b3-8",
    timeout="2h",
    estimate="20m",
    recipe=Recipe(
        algorithm=GRPO(use_kl_loss=True, kl_loss_coef=0.01),
        model="Qwen/Qwen3-VL-8B-Instruct",
        dataset="geometry3k",
        engine=FSDP2(offload=True),
        rollout=Vllm(
            tp=2, n=5, gpu_memory_utilization=0.6, enable_chunked_prefill=False, engine_kwargs={"mm_processor_cache_gb": 0}
        ),
        train_batch_size=16,
        ppo_mini_batch_size=8,
        use_dynamic_bsz=True,
        ppo_max_token_len_per_gpu=24576,
        max_prompt_length=1024,
        max_response_length=2048,
        steps=1,
        env={"HCCL_CONNECT_TIMEOUT": "1500"},
    ),
)
def test_grpo_qwen3_vl_8b_fsdp2_vllm(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()
