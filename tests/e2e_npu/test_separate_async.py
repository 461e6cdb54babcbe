"""Pull-request cases of the asynchronous trainer: four devices train while four others roll out with weights of a while ago."""

from __future__ import annotations

from dataclasses import replace

from pytest_ascend_e2e import DAPO, FSDP2, Megatron, Recipe, Run, SeparateAsync, Vllm, npu_e2e

ON_FSDP2 = Recipe(
    algorithm=DAPO(filter_groups=False, overlong_buffer_len=128, kl_loss_coef=0.0),
    model="Qwen/Qwen2.5-0.5B-Instruct",
    dataset="gsm8k",
    trainer=SeparateAsync(rollout_devices=4, parameter_sync_step=4),
    engine=FSDP2(fsdp_size=2, offload=True),
    rollout=Vllm(tp=2, n=16, gpu_memory_utilization=0.5),
    train_batch_size=64,
    ppo_mini_batch_size=16,
    use_dynamic_bsz=True,
    ppo_max_token_len_per_gpu=4096,
    max_prompt_length=1024,
    max_response_length=2048,
    steps=2,
    filter_overlong_prompts=False,
    overrides={
        # The log-probs of the rollout stand for those of the old policy.
        "algorithm.rollout_correction.bypass_mode": True,
        "actor_rollout_ref.actor.optim.weight_decay": 0.1,
        "actor_rollout_ref.rollout": {
            "disable_log_stats": False,
            "checkpoint_engine.update_weights_bucket_megabytes": 1024,
        },
        "skip.rollout_tq": {"enable": True, "dump_dir": "rollouts", "steps": [1], "action": "cache"},
    },
)


@npu_e2e(runner="a3-8", timeout="1h", estimate="20m", recipe=ON_FSDP2)
def test_dapo_qwen2_5_0_5b_fsdp2_vllm_separate_async(run: Run) -> None:
    run.check_completed()


@npu_e2e(
    runner="a3-8",
    timeout="1h",
    estimate="20m",
    recipe=replace(
        ON_FSDP2,
        engine=Megatron(tp=2, pp=2, offload=True, vanilla_mbridge=True),
        rollout=replace(ON_FSDP2.rollout, gpu_memory_utilization=0.6),
        overrides={**ON_FSDP2.overrides, "actor_rollout_ref.actor.optim.lr_decay_steps": 10_000_000},
    ),
)
def test_dapo_qwen2_5_0_5b_megatron_vllm_separate_async(run: Run) -> None:
    run.check_completed()
