"""Pull-request cases on Megatron with SGLang: PPO with a reward model, save and resume, profiling, a learning rate schedule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_ascend_e2e import GRPO, PPO, Megatron, Profiling, Recipe, Run, Sglang, Trainer, npu_e2e

SAVED = ["model", "hf_model", "optimizer", "extra"]
REWARD_MODEL = {
    "enable": True,
    "model_path": "${oc.env:HOME}/.cache/models/Skywork/Skywork-Reward-V2-Llama-3.2-1B",
    "rollout": {
        "name": "sglang",
        "gpu_memory_utilization": 0.6,
        "tensor_model_parallel_size": 2,
        "prompt_length": 1024,
        "response_length": 512,
    },
}
# The optimizer's state lives on the host and moves while the device computes.
FRUGAL_OPTIMIZER = {
    "optimizer_cpu_offload": True,
    "overlap_cpu_optimizer_d2h_h2d": True,
    "use_precision_aware_optimizer": True,
}

MEGATRON = Megatron(
    tp=2,
    pp=2,
    cp=2,
    etp=1,
    offload=True,
    vanilla_mbridge=True,
    # MindSpeed reads the context parallel size here.
    transformer={"context_parallel_size": 2, "use_flash_attn": True},
)
PPO_DEEPSEEK = Recipe(
    algorithm=PPO(use_kl_loss=True, critic_lr=2e-5),
    model="deepseek-ai/deepseek-coder-1.3b-instruct",
    dataset="gsm8k",
    engine=MEGATRON,
    rollout=Sglang(tp=2, n=4, gpu_memory_utilization=0.6),
    train_batch_size=16,
    ppo_mini_batch_size=8,
    use_dynamic_bsz=True,
    ppo_max_token_len_per_gpu=2400,
    max_prompt_length=512,
    max_response_length=512,
    steps=1,
    overrides={
        "actor_rollout_ref.actor.checkpoint.save_contents": SAVED,
        "critic": {"checkpoint.save_contents": SAVED, "ppo_max_token_len_per_gpu": 4800},
        "reward.reward_model": REWARD_MODEL,
        "trainer.default_local_dir": "checkpoints",
    },
    env={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
)


def with_overrides(recipe: Recipe, more: dict[str, object]) -> Recipe:
    return replace(recipe, overrides={**recipe.overrides, **more})


@npu_e2e(
    runner="a3-8",
    timeout="90m",
    estimate="20m",
    recipe=with_overrides(replace(PPO_DEEPSEEK, engine=replace(MEGATRON, optimizer=FRUGAL_OPTIMIZER)), {"trainer.save_freq": 1}),
)
def test_ppo_deepseek_coder_1_3b_megatron_sglang_save(run: Run) -> None:
    run.check_completed()
    assert (run.directory / "checkpoints" / "global_step_1" / "actor").is_dir()


RESUMED = with_overrides(replace(PPO_DEEPSEEK, steps=2), {"trainer.resume_mode": "auto"})


@npu_e2e(runner="a3-8", timeout="90m", estimate="40m", recipe=RESUMED)
def test_ppo_deepseek_coder_1_3b_megatron_sglang_resume(train: Trainer) -> None:
    first = train(with_overrides(PPO_DEEPSEEK, {"trainer.save_freq": 1}))
    first.check_completed()

    resumed = train(with_overrides(RESUMED, {"trainer.default_local_dir": str(first.directory / "checkpoints")}))

    # One that started anew would train step 1 again.
    resumed.check_completed(first_step=2)


@npu_e2e(
    runner="a3-8",
    timeout="90m",
    estimate="20m",
    recipe=replace(
        PPO_DEEPSEEK,
        algorithm=GRPO(use_kl_loss=True),
        engine=replace(MEGATRON, vpp=2),
        use_dynamic_bsz=False,
        ppo_micro_batch_size_per_gpu=2,
        ppo_max_token_len_per_gpu=None,
        profiling=Profiling(steps=[1], level="level1", contents=["npu", "cpu", "memory", "shapes", "module"], analysis=False),
        overrides={
            "global_profiler.profile_continuous_steps": True,
            "reward.reward_model": REWARD_MODEL,
        },
    ),
)
def test_grpo_deepseek_coder_1_3b_megatron_sglang_profiling(run: Run) -> None:
    run.check_completed()
    assert profiles(run), "the profiler wrote nothing"


def profiles(run: Run) -> list[Path]:
    """Return what the NPU profiler wrote into the run directory: a directory for each rank and step."""
    return sorted((run.directory / "profiler").rglob("*_ascend_pt"))


@npu_e2e(
    runner="a3-8",
    timeout="90m",
    estimate="20m",
    recipe=with_overrides(
        replace(PPO_DEEPSEEK, model="Qwen/Qwen3-0.6B", engine=replace(MEGATRON, vpp=2), steps=2),
        {
            "actor_rollout_ref.actor.optim.lr_warmup_steps": 1,
            "critic.optim.lr_warmup_steps": 1,
            "trainer": {"save_freq": 1, "test_freq": 1, "val_before_train": True},
        },
    ),
)
def test_ppo_qwen3_0_6b_megatron_sglang_lr_scheduler(run: Run) -> None:
    run.check_completed()
    rates = run.metrics["actor/lr"]
    assert rates.at(1) <= rates.at(2), "the learning rate does not rise while it warms up"
