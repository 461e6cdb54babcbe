"""The power curve: the smallest slowdown and the smallest log-prob drift that are found with 95 % certainty, by runs of a baseline.

    python benchmarks/faults/power.py [--draws 2000] [--seed 1]

For each draw of a baseline and of one more healthy run, the size is counted at which that run would just fail; the 95 % quantile of
these sizes is found in 95 of 100 runs.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections.abc import Callable

from healthy import healthy_run
from judging import Baselines, figure_at

from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.verdict import Baseline, LogprobLimits

RATE, TIME, DIFF = "perf/throughput", "timing_s/step", "training/rollout_probs_diff_mean"
RUNS = (3, 4, 5, 7, 10, 15, 20, 30, 50)
CERTAINTY = 0.95
MORE_RUNS = 300
# The steps of a made-up run after its warm-up, of which a baseline takes the median.
WARM = slice(1, None)


def quantile(values: list[float]) -> float:
    """Return the value that the wanted part of these lies below."""
    return sorted(values)[min(len(values) - 1, round(CERTAINTY * len(values)))]


def slowdown(held: dict[str, Baseline], rate: float, time: float) -> float:
    """Return the slowdown, in parts, from which on a run with these figures fails by its throughput or its time."""
    by_rate = rate / (held[RATE].value - held[RATE].tolerance) - 1 if held[RATE].value > held[RATE].tolerance else float("inf")
    return max(0.0, min(by_rate, (held[TIME].value + held[TIME].tolerance) / time - 1))


def drift(held: Baseline, values: list[float], course: Callable[[float, int], float]) -> float:
    """Return the size of a drift from which on a run with these values fails; `course` is its factor at a step after the first."""
    low, high = 0.0, 1.0
    limits = LogprobLimits.for_dtype("bfloat16")
    usual = max(statistics.median(values[:5]), 0.1 * limits.mean)

    def fails(size: float) -> bool:
        drifted = [value * course(size, step) for step, value in enumerate(values)]
        is_grown = max(drifted) > min(limits.growth or 1e9, 3.0) * max(statistics.median(drifted[:5]), 0.1 * limits.mean)
        return statistics.median(drifted[WARM]) > held.value + held.tolerance or is_grown or max(drifted) > limits.mean

    while not fails(high):
        high *= 2
    while high - low > 1e-4 * max(high, usual):
        middle = (low + high) / 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return high


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    pool = Baselines.of_healthy_runs(args.seed)
    more = [Metrics(healthy_run(args.seed * 15_485_863 + number)) for number in range(MORE_RUNS)]
    figures = [(figure_at(run, RATE), figure_at(run, TIME), list(run[DIFF].values)) for run in more]
    rng = random.Random(args.seed)
    print("| runs of the baseline | slower | rollout against training, at every step | growing at each of 15 steps |")
    print("| --- | --- | --- | --- |")
    for runs in RUNS:
        slow, level, slope = [], [], []
        for number in range(args.draws):
            held = pool.draw(runs)
            rate, time, values = rng.choice(figures)
            slow.append(slowdown(held, rate, time))
            if number < args.draws // 4:  # found by halving, which takes its time
                level.append(drift(held[DIFF], values, lambda size, _: 1 + size))
                slope.append(drift(held[DIFF], values, lambda size, step: 1 + size * step))
        print(f"| {runs} | {quantile(slow):.1%} | {quantile(level):.0%} | {quantile(slope):.1%} a step |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
