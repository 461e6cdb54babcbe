"""The checks of a group, made of a run: the same for a run that has just ended and for one that is judged again.

Must not know: who asks. The arguments are JSON values, as they stand in a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import RecordError
from ..metrics import Metrics
from ..recipe import GSPO, PPO
from ..records import Asked, Check, RunRecord, Verdict
from ..verdict import (
    Baseline,
    LogprobLimits,
    check_baseline,
    check_completed,
    check_logprob_consistency,
    check_rewards,
    check_throughput,
    check_update_health,
    parse_baselines,
    to_mapping,
)

GROUPS = ("completed", "rewards", "logprob", "health", "throughput", "baseline")
_LIMITS_OF_SPEED = ("minimum", "step_time_max_s", "parts_max_s", "memory_max_gb", "host_memory_max_gb")


def make_checks(asked: Asked, record: RunRecord, metrics: Metrics) -> tuple[Check, ...]:
    """Return the checks that were asked for.

    Raises:
        RecordError: there is no such group of checks, or its arguments are not those of this version.
        CheckError: a limit cannot be used.
    """
    make = _MAKERS.get(asked.group)
    if make is None:
        raise RecordError(f"{record.run_id}: {asked.group!r} is no group of checks: expected one of {', '.join(GROUPS)}")
    try:
        return make(record, metrics, dict(asked.arguments))
    except TypeError as error:
        raise RecordError(f"{record.run_id}: the arguments of {asked.group!r} are of another version: {error}") from error


def process_check(record: RunRecord) -> Check:
    """Return the check that the training process ended by itself with exit status 0."""
    how = record.end_reason if not record.is_completed else "exit status 0"
    return Check(
        name="completed.process",
        verdict=Verdict.PASSED if record.is_completed else Verdict.FAILED,
        message=f"the training process ended: {how}",
        origin="a training that does not end by itself with exit status 0 is never green",
    )


def dtype_of(runner: str) -> str:
    """Return the number format of a runner's trainings."""
    return "float32" if runner.startswith("sim-") else "bfloat16"


def has_limit_of_speed(arguments: Mapping[str, Any]) -> bool:
    """Tell whether a test gave a limit to the checks of throughput, so that no baseline decides."""
    return any(arguments.get(name) is not None for name in _LIMITS_OF_SPEED)


def plain_baselines(baselines: Mapping[str, Baseline]) -> dict[str, object]:
    """Return baselines as they stand among the arguments of a check."""
    return {metric: to_mapping(baseline) for metric, baseline in baselines.items()}


def _baselines(arguments: dict[str, Any]) -> dict[str, Baseline]:
    plain = arguments.pop("baselines", None)
    return parse_baselines({"metrics": plain}, origin="the baselines of the record") if plain else {}


def _completed(record: RunRecord, metrics: Metrics, arguments: dict[str, Any]) -> tuple[Check, ...]:
    return (process_check(record), *check_completed(metrics, **arguments))


def _rewards(_: RunRecord, metrics: Metrics, arguments: dict[str, Any]) -> tuple[Check, ...]:
    return check_rewards(metrics, **arguments)


def _logprob(record: RunRecord, metrics: Metrics, arguments: dict[str, Any]) -> tuple[Check, ...]:
    return check_logprob_consistency(metrics, limits=LogprobLimits.for_dtype(dtype_of(record.runner)), **arguments)


def _health(record: RunRecord, metrics: Metrics, arguments: dict[str, Any]) -> tuple[Check, ...]:
    is_gspo, is_ppo = (record.algorithm == kind.name for kind in (GSPO, PPO))
    return check_update_health(metrics, clips_sequences=is_gspo, has_critic=is_ppo, **arguments)


def _throughput(record: RunRecord, metrics: Metrics, arguments: dict[str, Any]) -> tuple[Check, ...]:
    baselines = _baselines(arguments)
    decides = not has_limit_of_speed(arguments) and not arguments.get("report_only")
    return check_throughput(
        metrics,
        devices=record.devices,
        baselines=baselines if decides and baselines else None,
        device=record.device,
        versions=installed(record),
        **arguments,
    )


def _baseline(record: RunRecord, metrics: Metrics, arguments: dict[str, Any]) -> tuple[Check, ...]:
    return check_baseline(metrics, _baselines(arguments), device=record.device, versions=installed(record), **arguments)


def installed(record: RunRecord) -> dict[str, str]:
    """Return what the figures of a run depend on, by name: its versions, and its image where it is known."""
    return {**record.versions, **({"image": record.image} if record.image else {})}


_MAKERS: Mapping[str, Callable[[RunRecord, Metrics, dict[str, Any]], tuple[Check, ...]]] = {
    "completed": _completed,
    "rewards": _rewards,
    "logprob": _logprob,
    "health": _health,
    "throughput": _throughput,
    "baseline": _baseline,
}
