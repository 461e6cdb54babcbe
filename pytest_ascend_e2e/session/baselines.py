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

import yaml

from ..errors import BaselineError
from ..verdict import Baseline, parse_baselines

FILE_NAME = "baselines.yaml"
SCHEMA = 1


def find_baselines(test_file: Path, case: str, runner: str) -> dict[str, Baseline]:
    """Return the baselines of a case on a runner by metric, none where the file, the case or the runner is not there.

    Raises:
        BaselineError: the file is there and cannot be used.
    """
    path = test_file.parent / FILE_NAME
    if not path.is_file():
        return {}
    cases = _cases(path)
    name = case.rpartition("::")[2]
    runners = cases.get(name, {})
    if not isinstance(runners, Mapping):
        raise BaselineError(f"{path}: cases.{name}: expected a mapping from runner to baseline, found {runners!r}")
    if runner not in runners:
        return {}
    return parse_baselines(runners[runner], origin=f"{path}: cases.{name}.{runner}")


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
