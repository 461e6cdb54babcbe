"""Pull-request cases of supervised fine-tuning: the same two steps on every engine, which must come to the same loss."""

from __future__ import annotations

from dataclasses import replace

from pytest_ascend_e2e import FSDP, FSDP2, SFT, Megatron, Run, VeOmni, npu_e2e

SCHEDULE = {"lr_warmup_steps_ratio": 0.2, "weight_decay": 0.1, "betas": [0.9, 0.95]}
# Each engine has its own words for a cosine that ends at a tenth.
COSINE_FSDP = {**SCHEDULE, "lr_scheduler_type": "cosine", "min_lr_ratio": 0.1}
COSINE_VEOMNI = {**SCHEDULE, "lr_min": 1e-6}
COSINE_MEGATRON = {**SCHEDULE, "lr_decay_style": "cosine", "min_lr": 1e-6}
# The template of the base model is applied turn by turn, which differs from the whole by a token.
PIECEWISE = {"data.ignore_input_ids_mismatch": True}

BASE = SFT(
    model="Qwen/Qwen2.5-0.5B",
    dataset="gsm8k_sft",
    engine=FSDP(sp=2, fsdp_size=2),
    train_batch_size=128,
    max_token_len_per_gpu=2048,
    steps=2,
    overrides={**PIECEWISE, "optim": COSINE_FSDP},
)
ON_MEGATRON = replace(
    BASE,
    # MindSpeed reads the context parallel size in the transformer's configuration.
    engine=Megatron(tp=2, pp=2, cp=2, vanilla_mbridge=True, transformer={"context_parallel_size": 2}),
    overrides={**PIECEWISE, "optim": COSINE_MEGATRON},
)


@npu_e2e(runner="a2b3-8", timeout="90m", estimate="10m", recipe=replace(BASE, engine=FSDP(fsdp_size=1), processes_per_node=1))
def test_sft_qwen2_5_0_5b_fsdp_one_device(run: Run) -> None:
    run.check_completed()


@npu_e2e(runner="a2b3-8", timeout="90m", estimate="10m", recipe=BASE)
def test_sft_qwen2_5_0_5b_fsdp_sp_four_copies(run: Run) -> None:
    run.check_completed()


@npu_e2e(runner="a2b3-8", timeout="90m", estimate="10m", recipe=replace(BASE, engine=FSDP(), use_remove_padding=False))
def test_sft_qwen2_5_0_5b_fsdp_with_padding(run: Run) -> None:
    run.check_completed()


@npu_e2e(runner="a2b3-8", timeout="90m", estimate="10m", recipe=replace(BASE, engine=FSDP2(sp=2, fsdp_size=2)))
def test_sft_qwen2_5_0_5b_fsdp2_sp_four_copies(run: Run) -> None:
    run.check_completed()


@npu_e2e(
    runner="a2b3-8",
    timeout="90m",
    estimate="10m",
    recipe=replace(BASE, engine=VeOmni(sp=2, fsdp_size=4), overrides={**PIECEWISE, "optim": COSINE_VEOMNI}),
)
def test_sft_qwen2_5_0_5b_veomni_sp(run: Run) -> None:
    run.check_completed()


@npu_e2e(runner="a2b3-8", timeout="90m", estimate="10m", recipe=ON_MEGATRON)
def test_sft_qwen2_5_0_5b_megatron(run: Run) -> None:
    run.check_completed()


@npu_e2e(runner="a2b3-8", timeout="90m", estimate="10m", recipe=replace(ON_MEGATRON, launcher="ray"))
def test_sft_qwen2_5_0_5b_megatron_ray(run: Run) -> None:
    run.check_completed()
