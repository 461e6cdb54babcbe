"""The figures of a run that a reader asks first, taken from its metrics.

A figure whose metric the run did not print, or printed without one finite number, is left out: a report then says "absent".
"""

from __future__ import annotations

import math

from ..metrics import Metrics

WARMUP_STEPS = 1


def figures(metrics: Metrics) -> dict[str, float]:
    """Return first, last and mean reward, log-prob agreement, throughput, step time and memory.

    Throughput (tokens/s per device) and step time (s) are medians after the first step; the log-prob difference is the mean over
    the steps, its maximum and the Pearson correlation are those of the worst step; memory is the peak of a training process (GB).
    """
    found: dict[str, float] = {}
    rewards = _finite(metrics, "critic/rewards/mean")
    if rewards:
        found |= {"reward_first": rewards[0], "reward_last": rewards[-1], "reward_mean": sum(rewards) / len(rewards)}
    differences = _finite(metrics, "training/rollout_probs_diff_mean")
    if differences:
        found["rollout_probs_diff_mean"] = sum(differences) / len(differences)
    largest = _finite(metrics, "training/rollout_probs_diff_max")
    if largest:
        found["rollout_probs_diff_max"] = max(largest)
    pearson = _finite(metrics, "training/rollout_actor_probs_pearson_corr")
    if pearson:
        found["rollout_pearson"] = min(pearson)
    for name, key in (("tokens_per_s_per_device", "perf/throughput"), ("step_time_s", "timing_s/step")):
        values = sorted(_finite(metrics, key)[WARMUP_STEPS:])
        if values:
            middle = len(values) // 2
            found[name] = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
    memory = _finite(metrics, "actor/perf/max_memory_allocated_gb")
    if memory:
        found["peak_memory_gb"] = max(memory)
    return found


def _finite(metrics: Metrics, key: str) -> list[float]:
    return [value for value in metrics[key] if math.isfinite(value)] if key in metrics else []
