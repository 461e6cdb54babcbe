"""A run as verl would log it, with its own numbers: rows of metrics that keep every check, to be spoilt by a test."""

from __future__ import annotations

import random

Rows = dict[int, dict[str, float]]

DEVICES = 4


def seeded(seed: int) -> random.Random:
    """Return a source of noise that is the same in every run of a test."""
    return random.Random(seed)  # noqa: S311  # noise, no secret


def logged_run(steps: int = 15, *, seed: int = 7, first_reward: float = 0.2, last_reward: float = 0.5) -> Rows:
    """Return the rows of a sound run of GRPO with a reference, steps 1 to `steps`."""
    noise = seeded(seed)
    rows: Rows = {}
    for step in range(1, steps + 1):
        reward = first_reward + (last_reward - first_reward) * (step - 1) / max(steps - 1, 1) + noise.gauss(0, 0.02)
        tokens = float(noise.randint(60_000, 64_000))
        seconds = (90.0 if step == 1 else 41.0) + noise.gauss(0, 0.5)
        rows[step] = {
            "actor/entropy": 0.8 - 0.01 * step,
            "actor/grad_norm": 0.7 + noise.gauss(0, 0.05),
            "actor/kl_loss": 0.0 if step == 1 else 0.0007 * step,
            "actor/lr": 1e-6,
            "actor/pg_clipfrac": 0.002,
            "actor/pg_loss": noise.gauss(0, 0.01),
            "actor/perf/cpu_memory_used_gb": 310.0,
            "actor/perf/max_memory_allocated_gb": 21.5,
            "critic/advantages/max": 1.7,
            "critic/advantages/min": -1.7,
            "critic/rewards/max": 1.0,
            "critic/rewards/mean": reward,
            "critic/rewards/min": 0.0,
            "perf/throughput": tokens / seconds / DEVICES,
            "perf/time_per_step": seconds,
            "perf/total_num_tokens": tokens,
            "response/aborted_ratio": 0.0,
            "response_length/clip_ratio": 0.05,
            "response_length/mean": 410.0 + noise.gauss(0, 8),
            "rollout_corr/k3_kl": 0.0019,
            "rollout_corr/ppl_ratio": 1.002,
            "timing_s/step": seconds,
            "training/global_step": float(step),
            "training/rollout_actor_probs_pearson_corr": 0.997 + noise.uniform(-0.001, 0.001),
            "training/rollout_probs_diff_max": 0.4,
            "training/rollout_probs_diff_mean": 0.0052 + noise.uniform(-0.0005, 0.0005),
            "training/rollout_probs_diff_valid": 1.0,
        }
    return rows
