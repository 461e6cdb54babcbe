"""Healthy runs of a nightly case on NPUs, made up: 15 steps, the first of which compiles, noise between steps and between runs.

Lengths wander, and a step now and then takes longer. Runs made up from recorded ones stand in `recordings.py`.
"""

from __future__ import annotations

import math
import random

Rows = dict[int, dict[str, float]]

STEPS = 15
DEVICES = 16
RATE = 1e-6
SAMPLES = 160
# Standard deviations, in parts: of a run's speed from run to run, of a step's from step to step.
RUN_NOISE = 0.005
STEP_NOISE = 0.02


def healthy_run(seed: int, *, steps: int = STEPS) -> Rows:
    """Return the rows of one sound run."""
    rng = random.Random(seed)
    speed = math.exp(rng.gauss(0, RUN_NOISE))
    agreement = 0.0045 * math.exp(rng.gauss(0, 0.02))
    peak, host, wander, slow = 38.0 * math.exp(rng.gauss(0, 0.003)), 410 + rng.gauss(0, 8), 0.0, 0.0
    odd_step = rng.randint(2, steps) if rng.random() < 0.2 else 0
    rows: Rows = {}
    for step in range(1, steps + 1):
        wander = 0.7 * wander + rng.gauss(0, 0.02)
        slow = 0.3 * slow + rng.gauss(0, STEP_NOISE)
        length = 620 * math.exp(wander)
        parts = {
            "timing_s/gen": 45 * speed * (length / 620) ** 0.5 * math.exp(slow),
            "timing_s/old_log_prob": 8 * speed * math.exp(rng.gauss(0, STEP_NOISE)),
            "timing_s/ref": 7 * speed * math.exp(rng.gauss(0, STEP_NOISE)),
            "timing_s/update_actor": 26 * speed * math.exp(rng.gauss(0, STEP_NOISE)),
            "timing_s/update_weights": 3 * speed * math.exp(rng.gauss(0, 0.05)),
        }
        seconds = sum(parts.values()) * (2.2 if step == 1 else 1.4 if step == odd_step else 1.0)
        tokens = round(SAMPLES * (length + 180 * math.exp(rng.gauss(0, 0.01))))
        peak = max(peak, peak * math.exp(rng.gauss(-0.002, 0.002)))
        solved = sum(rng.random() < 0.36 + 0.05 * step / steps for _ in range(SAMPLES)) / SAMPLES
        rows[step] = {
            "training/global_step": float(step), "actor/entropy": 0.42 * math.exp(-0.012 * step + rng.gauss(0, 0.03)),
            "actor/grad_norm": 0.21 * math.exp(rng.gauss(0, 0.3)), "actor/lr": RATE,
            "actor/kl_loss": 0.0 if step == 1 else 2e-4 * step * math.exp(rng.gauss(0, 0.2)), "actor/pg_loss": rng.gauss(0, 0.01),
            "actor/pg_clipfrac": 0.0015 * math.exp(rng.gauss(0, 0.3)), "actor/ppo_kl": rng.gauss(0, 1e-4),
            "actor/perf/max_memory_allocated_gb": peak, "actor/perf/cpu_memory_used_gb": host + rng.gauss(0, 3),
            "critic/rewards/mean": solved, "critic/rewards/max": 1.0, "critic/rewards/min": 0.0,
            "critic/advantages/max": 1.789, "critic/advantages/min": -1.789,
            "response_length/mean": length, "response_length/clip_ratio": min(1.0, 0.02 * math.exp(rng.gauss(0, 0.5))),
            "response/aborted_ratio": 0.0, "perf/throughput": tokens / seconds / DEVICES, "perf/total_num_tokens": float(tokens),
            "perf/time_per_step": seconds, "timing_s/step": seconds, **parts,
            "training/rollout_probs_diff_valid": 1.0, "training/rollout_probs_diff_mean": agreement * math.exp(rng.gauss(0, 0.04)),
            "training/rollout_probs_diff_max": min(0.99, 0.35 * math.exp(rng.gauss(0, 0.25))),
            "training/rollout_actor_probs_pearson_corr": 0.9985 - abs(rng.gauss(0, 0.0008)),
            "rollout_corr/k3_kl": 0.0019 * math.exp(rng.gauss(0, 0.08)), "rollout_corr/ppl_ratio": 1.002 + rng.gauss(0, 2e-4),
        }  # fmt: skip
    return rows


def console_log(rows: Rows) -> list[bytes]:
    """Return the lines that verl prints of these rows, among others."""
    lines = [b"(TaskRunnerV1 pid=4242) Training Progress:   0%|          | 0/15 [00:00<?, ?it/s]\n"]
    for step, row in rows.items():
        lines.append(f"(WorkerDict pid=51{step:02}) INFO:verl:update of step {step} took its time\n".encode())
        lines.append(
            f"(TaskRunnerV1 pid=4242) step:{step} - {' - '.join(f'{key}:{value!r}' for key, value in row.items())}\n".encode()
        )
    return lines
