"""Existing runs judged again, without a device: by the checks and limits that they were judged by, or by others.

What a case asked for is read from the checks in its record, what the training was from its composed configuration. Must not know:
how a run is shown.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import RecordError
from ..launch import RunDirectory
from ..records import Check, RunRecord
from ..verdict import (
    GIVEN,
    TRENDS,
    Baseline,
    LogprobLimits,
    Trend,
    check_baseline,
    check_completed,
    check_logprob_consistency,
    check_rewards,
    check_throughput,
    check_update_health,
)
from .existing import ExistingRun
from .run import process_check

GROUPS = ("completed", "rewards", "logprob", "health", "throughput", "baseline")


@dataclass(frozen=True, kw_only=True, slots=True)
class Demands:
    """What is asked of a run: groups of checks, and the limits that are not the default (None: the default)."""

    groups: tuple[str, ...] = GROUPS[:5]
    minimum: float | None = None
    window: int = 5
    trend: Trend | None = "not-falling"
    confidence: float = 0.99
    max_drop: float | None = None
    mean_limit: float | None = None
    max_limit: float | None = None
    pearson_limit: float | None = None
    throughput_min: float | None = None
    step_time_max_s: float | None = None
    memory_max_gb: float | None = None
    host_memory_max_gb: float | None = None
    report_only: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Training:
    """What the configuration of a run says about it, as far as a check depends on it."""

    has_reference: bool
    updates_per_step: int
    lr: float | None


# The name of a recorded check, and the demand whose limit it holds.
_LIMITS = {
    "rewards.level": "minimum",
    "rewards.collapse": "max_drop",
    "logprob.mean-difference": "mean_limit",
    "logprob.max-difference": "max_limit",
    "logprob.pearson": "pearson_limit",
    "throughput.tokens": "throughput_min",
    "throughput.step-time": "step_time_max_s",
    "throughput.memory": "memory_max_gb",
    "throughput.host-memory": "host_memory_max_gb",
}


def demands_of(record: RunRecord) -> Demands:
    """Return what the test of a run asked for, as far as its recorded checks tell; for a run that was never judged, all checks."""
    names = {check.name: check for check in record.checks}
    if not names:
        return Demands(report_only=True)
    groups = tuple(group for group in GROUPS if any(name.startswith(f"{group}.") for name in names))
    given = {demand: names[name].limit for name, demand in _LIMITS.items() if name in names and names[name].origin == GIVEN}
    trend = next((trend for trend in TRENDS if f"rewards.{trend}" in names), None)
    is_reported = "throughput.reported" in names
    return dataclasses.replace(Demands(groups=groups, trend=trend, report_only=is_reported), **given)  # type: ignore[arg-type]  # numbers


def judge_again(run: ExistingRun, demands: Demands, baselines: Mapping[str, Baseline]) -> tuple[Check, ...]:
    """Return the checks of a run by these demands and baselines.

    Raises:
        RecordError: the composed configuration of the run is not there or cannot be read.
        CheckError: a limit cannot be used.
    """
    training = functools.cache(lambda: read_training(run.directory))  # not asked for where only completion is judged
    record, metrics = run.record, run.metrics
    made: Mapping[str, Callable[[], Sequence[Check]]] = {
        "completed": lambda: (process_check(record), *check_completed(metrics, steps=record.steps)),
        "rewards": lambda: check_rewards(
            metrics,
            minimum=demands.minimum,
            window=demands.window,
            trend=demands.trend,
            confidence=demands.confidence,
            max_drop=demands.max_drop,
        ),
        "logprob": lambda: check_logprob_consistency(
            metrics,
            has_reference=training().has_reference,
            updates_per_step=training().updates_per_step,
            limits=LogprobLimits.for_dtype("float32" if record.runner.startswith("sim-") else "bfloat16"),
            mean_limit=demands.mean_limit,
            max_limit=demands.max_limit,
            pearson_limit=demands.pearson_limit,
        ),
        "health": lambda: check_update_health(metrics, window=demands.window, lr=training().lr),
        "throughput": lambda: _throughput(run, demands, baselines),
        "baseline": lambda: check_baseline(metrics, baselines, device=record.device, versions=record.versions),
    }
    # The baselines of speed and memory are held by the checks of throughput and by those of the baseline.
    checks = {check.name: check for group in demands.groups for check in made[group]()}
    return tuple(checks.values())


def read_training(directory: Path) -> Training:
    """Return what `config.yaml` of a run says.

    Raises:
        RecordError: the file is not there, or has not the keys of verl's configuration.
    """
    path = RunDirectory(directory).config
    try:
        config: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506  # a safe loader, in C where there is one
        actor, data = config["actor_rollout_ref"]["actor"], config["data"]
        updates = -(-int(data["train_batch_size"]) // int(actor["ppo_mini_batch_size"])) * int(actor["ppo_epochs"])
        optim = actor["optim"]
        is_shaped = (optim.get("lr_warmup_steps") or -1) > 0 or (optim.get("lr_warmup_steps_ratio") or 0) > 0
        return Training(
            has_reference=bool(actor["use_kl_loss"] or config["algorithm"]["use_kl_in_reward"]),
            updates_per_step=updates,
            lr=None if is_shaped else float(optim["lr"]),
        )
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RecordError(f"{path}: cannot be read: {error}; a run is judged by what it was configured to do") from error
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise RecordError(f"{path}: not a composed configuration of verl: {error!r}") from error


def _throughput(run: ExistingRun, demands: Demands, baselines: Mapping[str, Baseline]) -> tuple[Check, ...]:
    given = (demands.throughput_min, demands.step_time_max_s, demands.memory_max_gb, demands.host_memory_max_gb)
    is_reported = demands.report_only and all(limit is None for limit in given) and not baselines
    return check_throughput(
        run.metrics,
        devices=run.record.devices,
        minimum=demands.throughput_min,
        step_time_max_s=demands.step_time_max_s,
        memory_max_gb=demands.memory_max_gb,
        host_memory_max_gb=demands.host_memory_max_gb,
        baselines=baselines or None,
        report_only=is_reported,
        device=run.record.device,
        versions=run.record.versions,
    )


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
