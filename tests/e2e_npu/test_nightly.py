"""The nightly cases. What a case says is what is special about it: everything else is verl's default, or follows from it.

Time limits are those of verl's own jobs; an estimate is a third of the limit until it has been measured.
"""

from __future__ import annotations

from dataclasses import replace

from pytest_ascend_e2e import (
    DAPO,
    FSDP,
    FSDP2,
    GRPO,
    GSPO,
    PPO,
    FSDPTurbo,
    Megatron,
    Recipe,
    Run,
    Sglang,
    VeOmni,
    Vllm,
    npu_nightly,
    quarantine,
)

# Activations are computed again in the backward pass, layer by layer: what makes these models fit.
RECOMPUTE = {"recompute_method": "uniform", "recompute_granularity": "full", "recompute_num_layers": 1}
# Several devices of a node meet late when one of them compiles first.
PATIENT = {"HCCL_CONNECT_TIMEOUT": "1500"}
# Operators of a collective are expanded on the vector cores.
AIV = {"HCCL_OP_EXPANSION_MODE": "AIV"}
# Logits of long responses are reduced to entropies piece by piece.
ENTROPY_IN_CHUNKS = {
    "actor_rollout_ref.actor.entropy_from_logits_with_chunking": True,
    "actor_rollout_ref.actor.fsdp_config.entropy_from_logits_with_chunking": True,
    "actor_rollout_ref.actor.fsdp_config.entropy_checkpointing": True,
}
WEIGHTS_BUCKET = "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes"


@npu_nightly(
    runner="a2b3-8",
    timeout="3h",
    estimate="1h",
    recipe=Recipe(
        algorithm=PPO(),
        model="Qwen/Qwen3-8B",
        dataset="gsm8k",
        engine=FSDP(sp=2, offload=True),
        rollout=Vllm(gpu_memory_utilization=0.9, max_num_batched_tokens=4000, max_num_seqs=64),
        train_batch_size=32,
        use_dynamic_bsz=True,
        max_prompt_length=2000,
        max_response_length=2000,
        steps=15,
        shuffle=False,
        filter_overlong_prompts=False,
        overrides={WEIGHTS_BUCKET: 4096},
    ),
)
def test_ppo_qwen3_8b_fsdp_vllm(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="not-falling")
    run.check_logprob_consistency()
    run.check_throughput(report_only=True)


@npu_nightly(
    runner="a2b3-8",
    timeout="3h",
    estimate="1h",
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
        steps=15,
        env=PATIENT,
    ),
)
def test_grpo_qwen3_vl_8b_fsdp2_vllm(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="not-falling")
    run.check_logprob_consistency()
    run.check_throughput(report_only=True)


@npu_nightly(
    runner="a2b3-8",
    timeout="3h",
    estimate="1h",
    recipe=Recipe(
        algorithm=DAPO(use_kl_loss=True, filter_groups=False, overlong_buffer_len=1024, kl_coef=0.0),
        model="moonshotai/Moonlight-16B-A3B-Instruct",
        dataset="dapo-math-17k",
        lr=3e-6,
        engine=Megatron(
            pp=4,
            cp=2,
            ep=2,
            etp=1,
            offload=True,
            vanilla_mbridge=True,
            transformer={
                **RECOMPUTE,
                "num_layers_in_first_pipeline_stage": 7,
                "num_layers_in_last_pipeline_stage": 6,
                "multi_latent_attention": True,
                "attention_backend": "fused",
                "use_flash_attn": True,
                # MindSpeed reads these two here.
                "tensor_model_parallel_size": 1,
                "context_parallel_size": 2,
            },
        ),
        rollout=Vllm(
            tp=4,
            n=16,
            gpu_memory_utilization=0.65,
            enforce_eager=True,
            enable_chunked_prefill=False,
            max_num_batched_tokens=3072,
        ),
        train_batch_size=32,
        use_dynamic_bsz=True,
        ppo_max_token_len_per_gpu=3072,
        max_prompt_length=1024,
        max_response_length=2048,
        steps=15,
        shuffle=False,
        filter_overlong_prompts=False,
        trust_remote_code=True,
        overrides={
            "actor_rollout_ref": {
                "rollout": {"load_format": "safetensors", "log_prob_max_token_len_per_gpu": 9216},
                "ref": {"log_prob_max_token_len_per_gpu": 9216},
            },
        },
        env=AIV,
    ),
)
def test_dapo_moonlight_16b_megatron_vllm(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="not-falling")
    run.check_logprob_consistency()
    run.check_throughput(report_only=True)


@quarantine(
    reason="verl's own nightly has this job commented out; whether it passes on a3-16 is to be found out",
    owner="verl's Ascend maintainers",
    issue="https://github.com/verl-project/verl/pull/7111",
    until="2027-03-31",
)
@npu_nightly(
    runner="a3-16",
    timeout="3h",
    estimate="1h",
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


GSPO_MEGATRON = Megatron(
    tp=2,
    ep=8,
    etp=1,
    offload=True,
    vanilla_mbridge=True,
    transformer={**RECOMPUTE, "apply_rope_fusion": True, "moe_permute_fusion": True, "moe_router_dtype": "fp32"},
)
GSPO_QWEN3_30B = Recipe(
    algorithm=GSPO(clip_ratio_low=3e-4, clip_ratio_high=4e-4, clip_ratio_c=10.0),
    model="Qwen/Qwen3-30B-A3B-Instruct-2507",
    dataset="gsm8k",
    engine=GSPO_MEGATRON,
    rollout=Vllm(tp=8, n=4, gpu_memory_utilization=0.7),
    train_batch_size=32,
    ppo_mini_batch_size=16,
    use_dynamic_bsz=True,
    ppo_max_token_len_per_gpu=30720,
    max_prompt_length=2048,
    max_response_length=2048,
    steps=15,
    env={"HCCL_OP_EXPANSION_MODE": "AIV"},
)


@npu_nightly(runner="a3-16", timeout="3h", estimate="1h", recipe=GSPO_QWEN3_30B)
def test_gspo_qwen3_30b_megatron_vllm(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="not-falling")
    run.check_logprob_consistency()
    run.check_throughput(report_only=True)


@npu_nightly(
    runner="a3-16",
    nodes=2,
    timeout="4h",
    estimate="80m",
    # Over two nodes the experts are spread twice as far, and a step is one update.
    recipe=replace(GSPO_QWEN3_30B, engine=replace(GSPO_MEGATRON, ep=16), ppo_mini_batch_size=32),
)
def test_gspo_qwen3_30b_megatron_vllm_two_nodes(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="not-falling")
    run.check_logprob_consistency()
    run.check_throughput(report_only=True)


@npu_nightly(
    runner="a2b3-8",
    timeout="3h",
    estimate="1h",
    recipe=Recipe(
        algorithm=GSPO(clip_ratio_low=3e-4, clip_ratio_high=4e-4, clip_ratio_c=10.0, kl_loss_coef=0.0),
        model="Qwen/Qwen3-8B",
        dataset="gsm8k",
        engine=FSDP2(sp=2, offload=True, forward_prefetch=True),
        rollout=Vllm(
            tp=2,
            n=4,
            gpu_memory_utilization=0.7,
            max_num_batched_tokens=4096,
            engine_kwargs={
                "compilation_config": {
                    "cudagraph_mode": "FULL_DECODE_ONLY",
                    "cudagraph_capture_sizes": [4, 8, 12, 16, 20, 24, 28, 32],
                }
            },
        ),
        train_batch_size=32,
        ppo_mini_batch_size=16,
        use_dynamic_bsz=True,
        ppo_max_token_len_per_gpu=2048,
        max_prompt_length=2048,
        max_response_length=2048,
        steps=15,
        seed=42,
        shuffle=False,
        filter_overlong_prompts=False,
        overrides={
            **ENTROPY_IN_CHUNKS,
            "actor_rollout_ref.actor.entropy_checkpointing": True,
            "actor_rollout_ref.actor.optim": {"lr_warmup_steps": 10, "weight_decay": 0.1},
            WEIGHTS_BUCKET: 4096,
        },
        env={
            "CPU_AFFINITY_CONF": "1",
            "HCCL_ASYNC_ERROR_HANDLING": "0",
            "HCCL_CONNECT_TIMEOUT": "3600",
            "HCCL_EXEC_TIMEOUT": "3600",
            "TASK_QUEUE_ENABLE": "1",
        },
    ),
)
def test_gspo_qwen3_8b_fsdp2_vllm(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="not-falling")
    run.check_logprob_consistency()
    run.check_throughput(report_only=True)


@npu_nightly(
    runner="a3-16",
    timeout="3h",
    estimate="1h",
    recipe=Recipe(
        algorithm=GRPO(use_kl_loss=True, kl_coef=0.0),
        model="Qwen/Qwen3-30B-A3B-Instruct-2507",
        dataset="dapo-math-17k",
        engine=Megatron(
            tp=4,
            ep=4,
            etp=4,
            offload=True,
            vanilla_mbridge=True,
            transformer={**RECOMPUTE, "use_flash_attn": True},
        ),
        rollout=Sglang(tp=4, n=8, engine_kwargs={"enable_dp_attention": False, "chunked_prefill_size": -1}),
        train_batch_size=16,
        max_prompt_length=2048,
        max_response_length=8192,
        steps=15,
        filter_overlong_prompts=False,
        env={**PATIENT, **AIV, "DISABLE_L2_CACHE": "1", "TASK_QUEUE_ENABLE": "1"},
    ),
)
def test_grpo_qwen3_30b_megatron_sglang(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="not-falling")
    run.check_logprob_consistency()
    run.check_throughput(report_only=True)


@npu_nightly(
    runner="a3-16",
    timeout="3h",
    estimate="1h",
    recipe=Recipe(
        algorithm=GRPO(use_kl_loss=True),
        model="Qwen/Qwen3-30B-A3B-Instruct-2507",
        dataset="gsm8k",
        engine=VeOmni(ep=8, offload=True),
        rollout=Vllm(
            tp=8,
            n=4,
            gpu_memory_utilization=0.7,
            max_model_len=4096,
            max_num_batched_tokens=1024,
            max_num_seqs=128,
            engine_kwargs={
                "compilation_config": {
                    "cudagraph_mode": "FULL_DECODE_ONLY",
                    "cudagraph_capture_sizes": [1, 8, 16, 32, 40, 48, 64, 96, 128, 256],
                },
                "mm_processor_cache_gb": 0,
            },
        ),
        train_batch_size=32,
        ppo_mini_batch_size=16,
        max_prompt_length=2048,
        max_response_length=2048,
        steps=15,
        filter_overlong_prompts=False,
        trust_remote_code=True,
        env={
            **AIV,
            "CUDA_DEVICE_MAX_CONNECTIONS": "1",
            "HCCL_BUFFSIZE": "610",
            "PYTORCH_NPU_ALLOC_CONF": "max_split_size_mb:1024",
            "TASK_QUEUE_ENABLE": "1",
            "VLLM_ASCEND_ENABLE_NZ": "0",
        },
    ),
)
def test_grpo_qwen3_30b_veomni_vllm(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="not-falling")
    run.check_logprob_consistency()
    run.check_throughput(report_only=True)


GRPO_QWEN3_5_2B = Recipe(
    algorithm=GRPO(use_kl_loss=True, kl_loss_coef=0.01),
    model="Qwen/Qwen3.5-2B",
    dataset="geometry3k",
    engine=FSDP2(fsdp_size=4, offload_policy=True),
    rollout=Vllm(tp=2, n=2, gpu_memory_utilization=0.4, enable_prefix_caching=False),
    train_batch_size=16,
    max_prompt_length=1024,
    max_response_length=2048,
    steps=5,
    shuffle=False,
    use_remove_padding=False,
    overrides={
        **ENTROPY_IN_CHUNKS,
        "actor_rollout_ref.ref.entropy_from_logits_with_chunking": True,
        WEIGHTS_BUCKET: 6144,
    },
    env=PATIENT,
)


@npu_nightly(runner="a2-4", timeout="3h", estimate="1h", recipe=GRPO_QWEN3_5_2B)
def test_grpo_qwen3_5_2b_fsdp2_vllm(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="not-falling")
    run.check_logprob_consistency()
    run.check_throughput(report_only=True)


LAYERS = "model.language_model.layers.{*}"
VISION_BLOCKS = "model.visual.blocks.{*}"
QWEN3_5 = "transformers.models.qwen3_5.modeling_qwen3_5"


@npu_nightly(
    runner="a2b3-8",
    timeout="3h",
    estimate="1h",
    recipe=replace(
        GRPO_QWEN3_5_2B,
        engine=FSDPTurbo(
            fully_shard=4,
            ulysses=2,
            offload_policy=True,
            turbo={
                "distributed.fsdp_plan.apply_modules": {
                    VISION_BLOCKS: {},
                    "model.visual.patch_embed": {},
                    "model.visual.pos_embed": {},
                    "model.language_model.embed_tokens": {},
                    LAYERS: {},
                    "lm_head": {},
                },
                "distributed.fsdp_plan.hook_modules": [LAYERS],
                "distributed.cp_plan.ulysses_function_patches": [
                    {"target_functions": [f"{QWEN3_5}.eager_attention_forward"], "type": "full_attention"},
                    {"target_functions": [f"{QWEN3_5}.Qwen3_5GatedDeltaNet.forward"], "type": "gated_delta_net"},
                ],
                "distributed.cp_plan.loss_function_patches": [
                    {"target_functions": ["transformers.loss.loss_utils.ForCausalLMLoss"], "type": "causal_lm_loss"}
                ],
                "memory.recompute": True,
                "memory.recompute_plan": [LAYERS, VISION_BLOCKS],
                "module_patches": [
                    {
                        "target": f"{QWEN3_5}.Qwen3_5Model.forward",
                        "replacement": "fsdp_turbo.models.qwen.qwen3_5.qwen3_5_model_forward",
                    }
                ],
            },
        ),
        rollout=Vllm(
            tp=2,
            n=5,
            gpu_memory_utilization=0.4,
            enable_prefix_caching=False,
            engine_kwargs={
                "compilation_config": {
                    "cudagraph_mode": "FULL_DECODE_ONLY",
                    "cudagraph_capture_sizes": [4, 8, 12, 16, 24, 32, 48, 56, 64],
                },
                "mm_processor_cache_gb": 0,
            },
        ),
        train_batch_size=8,
        use_remove_padding=True,
        # The plan above recomputes.
        overrides={**GRPO_QWEN3_5_2B.overrides, "actor_rollout_ref.model.enable_gradient_checkpointing": False},
    ),
)
def test_grpo_qwen3_5_2b_fsdp_turbo_vllm(run: Run) -> None:
    run.check_completed()
    run.check_rewards(trend="not-falling")
    run.check_logprob_consistency()
    run.check_throughput(report_only=True)
