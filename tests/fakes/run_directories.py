"""Run directories as a session leaves them: a record and the metrics of a made-up run."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

from pytest_ascend_e2e.records import Check, Ending, RunRecord, Verdict
from tests.fakes.logged_run import DEVICES, Rows, logged_run

PASSED = Check(name="completed.process", verdict=Verdict.PASSED, message="the training process ended: exit status 0")

CONFIG = """
algorithm: {use_kl_in_reward: false}
data: {train_batch_size: 32}
actor_rollout_ref:
  actor:
    {use_kl_loss: true, ppo_mini_batch_size: 32, ppo_epochs: 1, optim: {lr: 1.0e-06, lr_warmup_steps: -1, lr_warmup_steps_ratio: 0}}
"""

SOUND = RunRecord(
    run_id="test_grpo-1",
    case="tests/test_cases.py::test_grpo",
    runner="a3-4",
    devices=DEVICES,
    nodes=1,
    model="Qwen/Qwen3-8B",
    dataset="gsm8k",
    algorithm="grpo",
    engine="fsdp2",
    rollout="vllm",
    layout="dp 4 on 4 devices",
    steps=15,
    started_at="2026-11-30T10:00:00+00:00",
    duration_s=700.0,
    ending=Ending.EXITED,
    exit_status=0,
    signal=None,
    end_reason="exit status 0",
    run_dir="e2e-runs/test_grpo-1",
    rerun_command="pytest tests/test_cases.py::test_grpo",
    last_step=15,
    summary={"reward_last": 0.5, "tokens_per_s_per_device": 376.0, "step_time_s": 41.0, "peak_memory_gb": 21.5},
    versions={"verl": "0.9.1", "vllm": "0.11.0"},
    checks=(PASSED,),
    commit="0a1b2c3d4e5f",
    device="Ascend910_93",
)


def write_run(root: Path, number: int, *, rows: Rows | None = None, **changed: object) -> Path:
    """Write the directory of run `number`, sound but for what is `changed` in its record, and return it."""
    run_id = f"test_grpo-{number}"
    directory = root / run_id
    directory.mkdir(parents=True)
    record = dataclasses.replace(SOUND, **{"run_id": run_id, "run_dir": str(directory), **changed})  # type: ignore[arg-type]  # any field
    (directory / "record.json").write_text(record.to_json())
    (directory / "config.yaml").write_text(CONFIG)
    logged = logged_run(record.steps, seed=number) if rows is None else rows
    lines = [
        json.dumps({"step": step, "data": {key: value if math.isfinite(value) else None for key, value in row.items()}})
        for step, row in logged.items()
    ]
    (directory / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return directory
