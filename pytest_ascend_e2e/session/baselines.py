"""The baselines of a case, from `baselines.yaml` beside its test file.

    schema: 1
    cases:
      test_gspo_qwen3_30b:
        a3-16:
          date: 2026-11-30
          ...
          metrics:
            perf/throughput: {value: 32.1, spread: 0.6, direction: higher-is-better}

Must not know: what a baseline means; `verdict/` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ..errors import BaselineError
from ..files import write_whole
from ..nodeids import own_name
from ..verdict import Baseline, parse_baselines, to_mapping

FILE_NAME = "baselines.yaml"
SCHEMA = 1


def find_baselines(test_file: Path, case: str, runner: str) -> dict[str, Baseline]:
    """Return the baselines of a case on a runner by metric, none where the file, the case or the runner is not there.

    Raises:
        BaselineError: the file is there and cannot be used.
    """
    return read_baselines(test_file.parent / FILE_NAME, case, runner)


def read_baselines(path: Path, case: str, runner: str) -> dict[str, Baseline]:
    """Return the baselines of a case, by its own name, on a runner from this file; none where file, case or runner is not there.

    Raises:
        BaselineError: the file is there and cannot be used.
    """
    if not path.is_file():
        return {}
    cases = _cases(path)
    name = own_name(case)
    runners = cases.get(name, {})
    if not isinstance(runners, Mapping):
        raise BaselineError(f"{path}: cases.{name}: expected a mapping from runner to baseline, found {runners!r}")
    if runner not in runners:
        return {}
    return parse_baselines(runners[runner], origin=f"{path}: cases.{name}.{runner}")


def write_baselines(path: Path, case: str, runner: str, baselines: Mapping[str, Baseline]) -> None:
    """Put the baselines of a case on a runner into the file, which is made if need be; all others stay. Comments do not.

    Raises:
        BaselineError: the file is there and cannot be used, or cannot be written.
    """
    cases: dict[str, Any] = dict(_cases(path)) if path.is_file() else {}
    name = own_name(case)
    cases[name] = {**cases.get(name, {}), runner: _compact({key: to_mapping(baseline) for key, baseline in baselines.items()})}
    text = yaml.safe_dump({"schema": SCHEMA, "cases": cases}, sort_keys=False, allow_unicode=True, width=132)
    write_whole(path, text, BaselineError)


def _compact(entries: Mapping[str, dict[str, object]]) -> dict[str, object]:
    """Return the entries with what all of them share written once, before the metrics."""
    first = next(iter(entries.values()))
    common = {name: value for name, value in first.items() if all(entry.get(name) == value for entry in entries.values())}
    own = {key: {name: value for name, value in entry.items() if name not in common} for key, entry in entries.items()}
    return {**common, "metrics": own}


def _cases(path: Path) -> Mapping[str, object]:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BaselineError(f"{path}: cannot be read: {error}") from error
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA or not isinstance(data.get("cases"), Mapping):
        found = data.get("schema") if isinstance(data, Mapping) else type(data).__name__
        raise BaselineError(f"{path}: expected schema: {SCHEMA} and cases: {{...}}, found schema {found!r}")
    cases: Mapping[str, object] = data["cases"]
    return cases
