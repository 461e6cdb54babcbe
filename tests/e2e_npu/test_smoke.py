"""The smoke suite: verl's real trainer on two simulated NPUs, in a few minutes, on any machine.

Each model is a tiny one of the architecture of the model that is named, warmed up until it earns some reward; batch sizes and
learning rate are for those.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_ascend_e2e import FSDP2, GRPO, GSPO, Recipe, Run, Vllm, npu_e2e

TINY = Recipe(
    algorithm=GSPO(),
    model="Qwen/Qwen3-30B-A3B",
    dataset="gsm8k",
    engine=FSDP2(),
    rollout=Vllm(tp=1, n=4),
    train_batch_size=16,
    use_dynamic_bsz=True,
    ppo_max_token_len_per_gpu=16384,
    max_prompt_length=64,
    max_response_length=48,
    steps=20,
    lr=5e-4,
)


@npu_e2e(
    runner="sim-2",
    timeout="20m",
    silence="5m",
    recipe=replace(TINY, algorithm=GRPO(use_kl_loss=True, kl_loss_coef=0.001), model="Qwen/Qwen3-0.6B"),
)
def test_grpo_qwen3_gsm8k(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="rises")
    run.check_logprob_consistency()
    run.check_update_health()
    run.check_throughput(report_only=True)


@npu_e2e(
    runner="sim-2",
    timeout="20m",
    silence="5m",
    recipe=replace(TINY, model="Qwen/Qwen3-VL-2B-Instruct", dataset="geometry3k", max_prompt_length=128, max_response_length=32),
)
def test_gspo_qwen3_vl_geometry3k(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="rises")
    run.check_logprob_consistency()
    run.check_update_health()
    run.check_throughput(report_only=True)


@npu_e2e(runner="sim-2", timeout="20m", silence="5m", recipe=TINY)
def test_gspo_qwen3_moe_gsm8k(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="rises")
    run.check_logprob_consistency()
    run.check_update_health()
    run.check_throughput(report_only=True)
