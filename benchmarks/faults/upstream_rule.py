"""The rule of today's nightly jobs, written anew from its description: five figures of a console log against one earlier run.

Means of the steps 5 to 14; memory at the last step, at most 1 GB more; throughput and step time within 5 %, reward within 0.05,
difference of probabilities within 5 %, on both sides. It sees neither the exit status nor which steps there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

FIRST, LAST = 5, 14
_STEP = re.compile(r"step:(\d+)")
_PAIR = re.compile(r"([\w/]+):(-?\d+(?:\.\d+)?(?:e-?\d+)?)")

MEMORY = "actor/perf/max_memory_allocated_gb"
TOLERANCES = {
    "perf/throughput": 0.05,
    "timing_s/step": 0.05,
    "critic/rewards/mean": 0.05,
    "training/rollout_probs_diff_mean": 0.05,
}
_ABSOLUTE = {"critic/rewards/mean"}


def figures(lines: Iterable[bytes]) -> dict[str, float]:
    """Return the figures that the rule takes from a log; those it finds nothing of are left out."""
    steps: dict[int, dict[str, float]] = {}
    for line in lines:
        text = line.decode(errors="replace")
        found = _STEP.search(text)
        if found:
            steps[int(found[1])] = {key: float(value) for key, value in _PAIR.findall(text)}
    result = {}
    for key in TOLERANCES:
        values = [row[key] for step, row in steps.items() if FIRST <= step <= LAST and key in row]
        if values:
            result[key] = sum(values) / len(values)
    if steps and MEMORY in steps[max(steps)]:
        result[MEMORY] = steps[max(steps)][MEMORY]
    return result


def failures(lines: Iterable[bytes], baseline: dict[str, float]) -> list[str]:
    """Return the names of the figures by which the rule fails a log."""
    found = figures(lines)
    failed = [key for key in (*TOLERANCES, MEMORY) if key not in found]
    if MEMORY in found and found[MEMORY] > baseline[MEMORY] + 1:
        failed.append(MEMORY)
    for key, tolerance in TOLERANCES.items():
        allowed = tolerance if key in _ABSOLUTE else tolerance * abs(baseline[key])
        if key in found and abs(found[key] - baseline[key]) > allowed:
            failed.append(key)
    return failed
