"""Pull-request cases on VeOmni, with the profiler on: a language model split over sequences, and one that sees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_ascend_e2e import GRPO, Profiling, Recipe, Run, VeOmni, Vllm, npu_e2e

TEXT = Recipe(
    algorithm=GRPO(use_kl_loss=True),
    model="Qwen/Qwen2.5-0.5B-Instruct",
    dataset="gsm8k",
    lr=5e-7,
    engine=VeOmni(sp=2, fsdp_size=4, offload=True),
    rollout=Vllm(tp=2, n=2, gpu_memory_utilization=0.8, enforce_eager=True, enable_chunked_prefill=False),
    train_batch_size=16,
    ppo_mini_batch_size=8,
    max_prompt_length=512,
    max_response_length=128,
    steps=1,
    profiling=Profiling(steps=[1], ranks=[0], discrete=True),
)


@npu_e2e(runner="a2b3-8", timeout="1h", estimate="15m", recipe=TEXT)
def test_grpo_qwen2_5_0_5b_veomni_vllm(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()
    assert profiles(run), "the profiler wrote nothing"


@npu_e2e(
    runner="a2b3-8",
    timeout="1h",
    estimate="15m",
    recipe=replace(TEXT, model="Qwen/Qwen3-VL-2B-Instruct", dataset="geometry3k", engine=VeOmni(fsdp_size=8, offload=True)),
)
def test_grpo_qwen3_vl_2b_veomni_vllm(run: Run) -> None:
    run.check_completed()
    run.check_logprob_consistency()
    assert profiles(run), "the profiler wrote nothing"


def profiles(run: Run) -> list[Path]:
    """Return what the NPU profiler wrote into the run directory: a directory for each rank and step."""
    return sorted((run.directory / "profiler").rglob("*_ascend_pt"))
