"""The nightly cases. What a case says is what is special about it: everything else is verl's default, or follows from it."""

from __future__ import annotations

from pytest_ascend_e2e import GRPO, GSPO, Megatron, Recipe, Run, Vllm, npu_nightly

# Activations are computed again in the backward pass, layer by layer: what makes these models fit.
RECOMPUTE = {"recompute_method": "uniform", "recompute_granularity": "full", "recompute_num_layers": 1}


@npu_nightly(
    runner="a3-16",
    timeout="3h",
    recipe=Recipe(
        algorithm=GRPO(use_kl_loss=True, kl_loss_coef=0.01),
        model="Qwen/Qwen3.5-35B-A3B",
        dataset="geometry3k",
        engine=Megatron(
            tp=2,
            pp=2,
            ep=8,
            etp=1,
            offload=True,
            transformer={
                **RECOMPUTE,
                "use_flash_attn": True,
                "attention_backend": "auto",
                "use_naive_l2norm": True,
                "moe_aux_loss_coeff": 0.01,
                "moe_z_loss_coeff": 0.001,
                "moe_permute_fusion": True,
                "moe_grouped_gemm": True,
                "moe_token_dispatcher_type": "alltoall",
            },
            optimizer={
                "optimizer_cpu_offload": True,
                "optimizer_offload_fraction": 1,
                "overlap_cpu_optimizer_d2h_h2d": True,
                "use_precision_aware_optimizer": True,
            },
        ),
        rollout=Vllm(tp=8, n=5, gpu_memory_utilization=0.6, engine_kwargs={"mm_processor_cache_gb": 0}),
        train_batch_size=32,
        max_prompt_length=1024,
        max_response_length=2048,
        steps=15,
        shuffle=False,
        trust_remote_code=True,
        use_remove_padding=False,
        overrides={"actor_rollout_ref.actor.checkpoint.strict": False},
        env={"CPU_AFFINITY_CONF": "1", "HCCL_CONNECT_TIMEOUT": "1500", "VLLM_ALLREDUCE_USE_SYMM_MEM": "0"},
    ),
)
def test_grpo_qwen3_5_35b_megatron_vllm(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="not-falling")
    run.check_logprob_consistency()
    run.check_throughput(report_only=True)


@npu_nightly(
    runner="a3-16",
    timeout="3h",
    recipe=Recipe(
        algorithm=GSPO(clip_ratio_low=3e-4, clip_ratio_high=4e-4, clip_ratio_c=10.0),
        model="Qwen/Qwen3-30B-A3B-Instruct-2507",
        dataset="gsm8k",
        engine=Megatron(
            tp=2,
            ep=8,
            etp=1,
            offload=True,
            vanilla_mbridge=True,
            transformer={**RECOMPUTE, "apply_rope_fusion": True, "moe_permute_fusion": True, "moe_router_dtype": "fp32"},
        ),
        rollout=Vllm(tp=8, n=4, gpu_memory_utilization=0.7),
        train_batch_size=32,
        ppo_mini_batch_size=16,
        use_dynamic_bsz=True,
        ppo_max_token_len_per_gpu=30720,
        max_prompt_length=2048,
        max_response_length=2048,
        steps=15,
        env={"HCCL_OP_EXPANSION_MODE": "AIV"},
    ),
)
def test_gspo_qwen3_30b_megatron_vllm(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="not-falling")
    run.check_logprob_consistency()
    run.check_throughput(report_only=True)
