"""The smoke suite: verl's real trainer on two simulated NPUs, in a few minutes, on any machine.

Models are tiny ones of the named model's architecture; sizes and learning rates are theirs.
"""

from __future__ import annotations

from pytest_ascend_e2e import FSDP2, GRPO, Recipe, Run, Vllm, npu_e2e


@npu_e2e(
    runner="sim-2",
    timeout="15m",
    silence="5m",
    recipe=Recipe(
        algorithm=GRPO(use_kl_loss=True, kl_loss_coef=0.001),
        model="Qwen/Qwen3-0.6B",
        dataset="gsm8k",
        engine=FSDP2(),
        rollout=Vllm(tp=1, n=8),
        train_batch_size=16,
        ppo_micro_batch_size_per_gpu=64,
        max_prompt_length=96,
        max_response_length=48,
        steps=20,
        lr=1e-3,
        use_remove_padding=False,
    ),
)
def test_grpo_qwen3_gsm8k(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="rises")
    run.check_logprob_consistency(pearson_limit=0.99)
    run.check_throughput(report_only=True)
