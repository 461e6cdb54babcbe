"""Pull-request cases of supervised fine-tuning on FSDP: all weights and LoRA, padding, sequence parallelism, resume."""

from __future__ import annotations

from dataclasses import replace

from pytest_ascend_e2e import FSDP, SFT, Lora, Run, Trainer, npu_e2e

BASE = SFT(
    model="Qwen/Qwen2.5-0.5B-Instruct",
    dataset="gsm8k_sft",
    engine=FSDP(),
    lr=1e-4,
    micro_batch_size_per_gpu=2,
    steps=1,
    overrides={
        "checkpoint.save_contents": ["model", "optimizer", "extra", "hf_model"],
        "trainer": {"save_freq": 1, "max_ckpt_to_keep": 1, "default_local_dir": "checkpoints"},
    },
)
WITH_ADAPTERS = replace(BASE, lora=Lora(rank=32))


@npu_e2e(runner="a2b3-8", timeout="90m", estimate="10m", recipe=BASE)
def test_sft_qwen2_5_0_5b_fsdp(run: Run) -> None:
    run.check_completed()
    assert (run.directory / "checkpoints" / "global_step_1").is_dir()


@npu_e2e(runner="a2b3-8", timeout="90m", estimate="10m", recipe=replace(BASE, use_remove_padding=False))
def test_sft_qwen2_5_0_5b_fsdp_with_padding(run: Run) -> None:
    run.check_completed()


@npu_e2e(runner="a2b3-8", timeout="90m", estimate="10m", recipe=replace(BASE, engine=FSDP(sp=2)))
def test_sft_qwen2_5_0_5b_fsdp_sp(run: Run) -> None:
    run.check_completed()


@npu_e2e(runner="a2b3-8", timeout="90m", estimate="10m", recipe=WITH_ADAPTERS)
def test_sft_qwen2_5_0_5b_fsdp_lora(run: Run) -> None:
    run.check_completed()


RESUMED = replace(WITH_ADAPTERS, steps=2, overrides={**BASE.overrides, "trainer.resume_mode": "auto"})


@npu_e2e(runner="a2b3-8", timeout="90m", estimate="20m", recipe=RESUMED)
def test_sft_qwen2_5_0_5b_fsdp_lora_resume(train: Trainer) -> None:
    first = train(WITH_ADAPTERS)
    first.check_completed()
    trainer = {"save_freq": 1, "max_ckpt_to_keep": 1, "default_local_dir": str(first.directory / "checkpoints")}

    resumed = train(replace(RESUMED, overrides={**RESUMED.overrides, "trainer": trainer}))

    # One that started anew would train step 1 again.
    resumed.check_completed(first_step=2)
