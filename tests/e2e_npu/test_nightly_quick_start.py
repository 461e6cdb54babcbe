"""The quick starts of verl's documentation for NPUs, one step each: what they say must work."""

from __future__ import annotations

from dataclasses import replace

from pytest_ascend_e2e import FSDP2, GRPO, Megatron, Recipe, Run, Sglang, Vllm, npu_nightly

PATIENT = {"HCCL_CONNECT_TIMEOUT": "1500"}

ON_FSDP2 = Recipe(
    algorithm=GRPO(use_kl_loss=True, kl_loss_coef=0.01),
    model="Qwen/Qwen3-0.6B",
    dataset="gsm8k",
    engine=FSDP2(offload=True),
    rollout=Vllm(tp=2, n=5, gpu_memory_utilization=0.6, enable_chunked_prefill=False),
    train_batch_size=16,
    ppo_mini_batch_size=8,
    use_dynamic_bsz=True,
    ppo_max_token_len_per_gpu=24576,
    max_prompt_length=1024,
    max_response_length=2048,
    steps=1,
    env=PATIENT,
)
ON_MEGATRON = replace(
    ON_FSDP2,
    algorithm=GRPO(use_kl_loss=True),
    lr=5e-7,
    engine=Megatron(tp=2, pp=2, vanilla_mbridge=True),
    rollout=Vllm(
        tp=2,
        n=2,
        gpu_memory_utilization=0.6,
        enable_chunked_prefill=False,
        engine_kwargs={"compilation_config": {"cudagraph_mode": "FULL_AND_PIECEWISE"}},
    ),
    use_dynamic_bsz=False,
    ppo_max_token_len_per_gpu=None,
)

ON_SGLANG = Sglang(tp=2, n=2, gpu_memory_utilization=0.6)


@npu_nightly(runner="a2b3-8", timeout="3h", estimate="20m", recipe=ON_FSDP2)
def test_grpo_qwen3_0_6b_fsdp2_vllm(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()


@npu_nightly(runner="a2b3-8", timeout="3h", estimate="20m", recipe=replace(ON_FSDP2, rollout=ON_SGLANG))
def test_grpo_qwen3_0_6b_fsdp2_sglang(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()


@npu_nightly(runner="a2b3-8", timeout="3h", estimate="20m", recipe=ON_MEGATRON)
def test_grpo_qwen3_0_6b_megatron_vllm(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()


@npu_nightly(
    runner="a2b3-8",
    timeout="3h",
    estimate="20m",
    recipe=replace(ON_MEGATRON, rollout=Sglang(tp=2, n=2, gpu_memory_utilization=0.6)),
)
def test_grpo_qwen3_0_6b_megatron_sglang(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()
