"""How a case of the bench is judged: by all checks of the package at their defaults, on nothing but a console log."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from healthy import DEVICES, RATE, STEPS, healthy_run

from pytest_ascend_e2e.metrics import Metrics, read_console
from pytest_ascend_e2e.records import Check, Verdict
from pytest_ascend_e2e.session import FALSE_ALARMS, METRICS
from pytest_ascend_e2e.verdict import (
    Baseline,
    LogprobLimits,
    check_baseline,
    check_completed,
    check_logprob_consistency,
    check_rewards,
    check_throughput,
    check_update_health,
    figure,
    figure_of,
)

POOL = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What a case is: its number format, devices, learning rate, whether it has a reference, and whether it clips as GSPO does."""

    dtype: str = "bfloat16"
    devices: int = DEVICES
    lr: float | None = RATE
    has_reference: bool = True
    clips_sequences: bool = False
    steps: int = STEPS


def judge(lines: Sequence[bytes], exit_status: int, baselines: Mapping[str, Baseline], setting: Setting) -> list[Check]:
    """Return the failed checks of a run."""
    metrics = read_console(lines)
    process = Verdict.PASSED if exit_status == 0 else Verdict.FAILED
    checks = (
        Check(name="completed.process", verdict=process, message=f"exit status {exit_status}"),
        *check_completed(metrics, steps=setting.steps),
        *check_rewards(metrics),
        *check_logprob_consistency(metrics, has_reference=setting.has_reference, limits=LogprobLimits.for_dtype(setting.dtype)),
        *check_update_health(metrics, lr=setting.lr, clips_sequences=setting.clips_sequences),
        *check_throughput(metrics, devices=setting.devices, baselines=baselines or None, report_only=not baselines),
        *(check_baseline(metrics, baselines) if baselines else ()),
    )
    return [check for check in checks if check.is_failed]


class Baselines:
    """Baselines of runs drawn from a pool of healthy ones, none of which is judged."""

    def __init__(self, runs: Sequence[Metrics], seed: int) -> None:
        self._rng = random.Random(seed)
        self._count = len(runs)
        self._figures = {key: [figure_at(metrics, key) for metrics in runs] for key in METRICS}

    @classmethod
    def of_healthy_runs(cls, seed: int) -> Baselines:
        """Return baselines of made-up runs of a nightly case."""
        return cls([Metrics(healthy_run(seed * 1_000_003 + number)) for number in range(POOL)], seed)

    def draw(self, count: int) -> dict[str, Baseline]:
        """Return the baselines that `count` of the runs give, as the command records them by default."""
        return self.of(self._rng.sample(range(self._count), count))

    def without(self, number: int) -> dict[str, Baseline]:
        """Return the baselines of all runs but one."""
        return self.of([other for other in range(self._count) if other != number])

    def of(self, chosen: Sequence[int]) -> dict[str, Baseline]:
        """Return the baselines of these runs."""
        return {
            key: Baseline.of_runs(
                key, [figures[number] for number in chosen], date="2026-11-30", commit="0a1b2c", device="A3",
                versions={"verl": "0.9.1"}, false_alarms=FALSE_ALARMS / len(METRICS),
            )
            for key, figures in self._figures.items()
        }  # fmt: skip


def figure_at(metrics: Metrics, key: str) -> float:
    """Return the figure of a sound run that a baseline takes."""
    series = figure_of(metrics, key, warmup=1)
    if isinstance(series, Check):
        raise TypeError(series.message)
    return figure(series)
