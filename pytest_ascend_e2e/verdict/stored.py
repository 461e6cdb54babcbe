"""Baselines as plain data: the form in which a YAML file holds them, and the way back.

Owns the names of the fields. Must not know where a file is, or what a baseline means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import BaselineError
from .baseline import FALSE_ALARMS, Baseline, Direction

_PROVENANCE = ("date", "commit", "device", "versions")
_NUMBERS = ("value", "spread", "floor", "false_alarms", "ceiling", "given_tolerance")
_TEXTS = ("image", "published", "reason")
_FIELDS = ("value", "spread", "runs", "direction", *_PROVENANCE, *_NUMBERS[2:], *_TEXTS, "run_ids")


def to_mapping(baseline: Baseline) -> dict[str, object]:
    """Return a baseline as plain data, which `parse_baselines` takes as the entry of its metric; what is not set is left out."""
    data: dict[str, object] = {
        "value": baseline.value,
        "spread": baseline.spread,
        "runs": baseline.runs,
        "direction": baseline.direction.value,
        "date": baseline.date,
        "commit": baseline.commit,
        "device": baseline.device,
        "versions": dict(baseline.versions),
        "floor": baseline.floor,
        "false_alarms": baseline.false_alarms,
    }
    optional = {"ceiling": baseline.ceiling, "given_tolerance": baseline.given_tolerance, "run_ids": list(baseline.run_ids)}
    optional |= {name: getattr(baseline, name) for name in _TEXTS}
    return data | {name: value for name, value in optional.items() if value not in (None, "", [])}


def parse_baselines(data: Any, *, origin: str) -> dict[str, Baseline]:
    """Return the baselines by metric from `{date, commit, device, versions, runs, metrics: {key: {value, spread, direction}}}`.

    What stands beside `metrics` holds for every metric that does not say otherwise. `origin` names the file in an error.

    Raises:
        BaselineError: all problems of the mapping at once.
    """
    entries = data.get("metrics") if isinstance(data, Mapping) else None
    if not isinstance(entries, Mapping) or not entries:
        raise BaselineError(f"{origin}: no baselines: expected a mapping with metrics: {{key: {{value, spread, direction, ...}}}}")
    common = {key: value for key, value in data.items() if key != "metrics"}
    problems = [f"{origin}: {key!r} is no field of a baseline; known: {', '.join(_FIELDS)}" for key in common if key not in _FIELDS]
    parsed: dict[str, Baseline] = {}
    for metric, entry in entries.items():
        if not isinstance(entry, Mapping):
            problems.append(f"{origin}: {metric}: {entry!r} is no baseline: expected a mapping")
            continue
        try:
            parsed[str(metric)] = _parse_entry(str(metric), {**{k: v for k, v in common.items() if k in _FIELDS}, **entry})
        except BaselineError as error:
            problems.extend(f"{origin}: {problem}" for problem in error.problems)
    if problems:
        raise BaselineError(*problems)
    return parsed


def _parse_entry(metric: str, entry: Mapping[str, Any]) -> Baseline:
    problems = [f"{metric}: {key!r} is no field of a baseline; known: {', '.join(_FIELDS)}" for key in entry if key not in _FIELDS]
    unknown = ("spread", "runs", "commit", "versions") if entry.get("published") else ()
    needed = [name for name in ("value", "spread", "runs", "direction", *_PROVENANCE) if name not in unknown]
    problems += [f"{metric}: {key} is missing" for key in needed if entry.get(key) is None]
    for key in _NUMBERS:
        value = entry.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            problems.append(f"{metric}: {key} {value!r} cannot be used: expected a number")
    run_ids = entry.get("run_ids", [])
    if not isinstance(run_ids, list):
        problems.append(f"{metric}: run_ids {run_ids!r} cannot be used: expected a list of names of runs")
    runs = entry.get("runs")
    if runs is not None and (isinstance(runs, bool) or not isinstance(runs, int)):
        problems.append(f"{metric}: runs {runs!r} cannot be used: expected the number of runs")
    accepted = [direction.value for direction in Direction]
    if entry.get("direction") is not None and entry["direction"] not in accepted:
        problems.append(f"{metric}: direction {entry['direction']!r} cannot be used: expected one of {', '.join(accepted)}")
    versions = entry.get("versions")
    if versions is not None and not isinstance(versions, Mapping):
        problems.append(f"{metric}: versions {versions!r} cannot be used: expected a mapping from name to version")
    if problems:
        raise BaselineError(*problems)
    return Baseline(
        metric=metric,
        value=float(entry["value"]),
        spread=float(entry.get("spread") or 0.0),
        runs=entry.get("runs") or 1,
        direction=Direction(entry["direction"]),
        date=str(entry["date"]),
        commit=str(entry.get("commit") or ""),
        device=str(entry["device"]),
        versions={str(name): str(version) for name, version in (entry.get("versions") or {}).items()},
        floor=float(entry.get("floor", 0.02)),
        false_alarms=float(entry.get("false_alarms", FALSE_ALARMS)),
        ceiling=_optional(entry.get("ceiling")),
        given_tolerance=_optional(entry.get("given_tolerance")),
        run_ids=tuple(map(str, run_ids)),
        **{name: str(entry.get(name) or "") for name in _TEXTS},
    )


def _optional(value: Any) -> float | None:
    return None if value is None else float(value)
