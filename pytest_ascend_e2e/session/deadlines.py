"""The deadlines of a case: by its marker, else by the settings that were given, else by its estimate, else by default.

Must not know: how a deadline is watched.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..deadline import format_duration
from ..launch import Limits
from .case import Case
from .settings import Settings
from .suite_case import SuiteCase

# An estimate is that of a good day; what takes this many times as long is not going to end. It is that of the case's own steps.
TIMES_THE_ESTIMATE: Mapping[str, float] = {"run": 3.0, "start": 1.0, "first-step": 1.5, "step": 1.0}

_MARKER_ARGUMENTS = {"run": "timeout", "first-step": "first_step"}


def limits_of(case: Case, settings: Settings) -> Limits:
    """Return how long each part of one training of the case may take, each with its origin."""
    total_s, total_origin = run_limit(case, settings)
    silence_s, silence_origin = _limit("silence", case.silence_s, settings.silence_timeout_s, case, settings)
    start_s, start_origin = _limit("start", case.start_s, settings.start_timeout_s, case, settings)
    first_s, first_origin = _limit("first-step", case.first_step_s, settings.first_step_timeout_s, case, settings)
    step_s, step_origin = _limit("step", case.step_s, settings.step_timeout_s, case, settings)
    return Limits(
        total_s=total_s,
        silence_s=silence_s,
        start_s=start_s,
        first_step_s=first_s,
        step_s=step_s,
        origins={
            "total_s": total_origin,
            "silence_s": silence_origin,
            "start_s": start_origin,
            "first_step_s": first_origin,
            "step_s": step_origin,
        },
    )


def run_limit(case: Case | SuiteCase, settings: Settings) -> tuple[float, str]:
    """Return how long one training of the case may take in all, in seconds, and where that comes from."""
    limit_s, origin = _limit("run", case.timeout_s, settings.run_timeout_s, case, settings)
    return (settings.run_timeout_s, origin) if limit_s is None else (limit_s, origin)


def wait_limit(case: Case, settings: Settings) -> float:
    """Return how long the case may wait for its devices, in seconds."""
    return settings.lease_timeout_s if case.wait_s is None else case.wait_s


def _limit(
    name: str, of_marker: float | None, of_settings: float | None, case: Case | SuiteCase, settings: Settings
) -> tuple[float | None, str]:
    if of_marker is not None:
        return of_marker, f"{_MARKER_ARGUMENTS.get(name, name)}= of the marker"
    option = f"{name}-timeout"
    if option in settings.origins:
        return of_settings, settings.origins[option]
    if case.estimate_s is not None and settings.steps is None and name in TIMES_THE_ESTIMATE:
        times = TIMES_THE_ESTIMATE[name]
        return times * case.estimate_s, f"{times:g} times the estimate of {format_duration(case.estimate_s)}"
    return of_settings, f"default of --e2e-{option}"
