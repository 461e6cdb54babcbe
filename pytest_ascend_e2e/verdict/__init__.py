"""Judgements on the metrics of a run: plain functions that take `Metrics` and return `Check` objects.

Owns limits, their origins, trends and baselines. Must not know files, time, or who shows a check. Nothing that is missing, not
finite or not decidable passes.
"""

from __future__ import annotations

from .baseline import FALSE_ALARMS, FEWEST_RUNS, Baseline, Direction, check_baseline, direction_of, figure, figure_of
from .blocks import (
    check_each_value,
    check_every_step,
    check_level,
    check_median,
    check_monotone,
    check_spread,
    check_window,
)
from .changepoint import ChangePoint, change_point, runs_needed
from .completion import REQUIRED, check_completed
from .equivalence import check_same
from .health import check_update_health
from .limits import GIVEN, Limit
from .logprobs import LogprobLimits, check_logprob_consistency
from .rewards import check_rewards
from .stored import parse_baselines, to_mapping
from .throughput import check_throughput
from .trends import TRENDS, Trend, TrendTest, check_trend, mann_kendall, steps_needed

__all__ = [
    "FALSE_ALARMS",
    "FEWEST_RUNS",
    "GIVEN",
    "REQUIRED",
    "TRENDS",
    "Baseline",
    "ChangePoint",
    "Direction",
    "Limit",
    "LogprobLimits",
    "Trend",
    "TrendTest",
    "change_point",
    "check_baseline",
    "check_completed",
    "check_each_value",
    "check_every_step",
    "check_level",
    "check_logprob_consistency",
    "check_median",
    "check_monotone",
    "check_rewards",
    "check_same",
    "check_spread",
    "check_throughput",
    "check_trend",
    "check_update_health",
    "check_window",
    "direction_of",
    "figure",
    "figure_of",
    "mann_kendall",
    "parse_baselines",
    "runs_needed",
    "steps_needed",
    "to_mapping",
]
