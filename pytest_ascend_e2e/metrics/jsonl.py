"""verl's file logger: one `{"step": N, "data": {key: value}}` a line (`trainer.logger=["console","file"]`).

orjson writes it, and writes NaN and infinities as null. Must not know where the file is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from .collector import Collector
from .lines import LONGEST_LINE
from .table import Metrics


def read_jsonl(lines: Iterable[bytes]) -> Metrics:
    """Return the metrics of a JSONL log of verl.

    A null is a NaN at its step. Several lines of one step are merged. A value that is no number (verl may log texts) is no
    metric, unless the same key holds numbers elsewhere: then it is named. Lines that are broken, cut, repeated or go back, and
    an empty log, are named in `problems`.
    """
    reader = _Reader()
    for line in lines:
        reader.read(line)
    return reader.metrics()


class _Reader:
    """Reads line by line; holds the problem of a broken line until it knows whether the line is the last one."""

    def __init__(self) -> None:
        self._collector = Collector()
        self._texts: dict[str, str] = {}
        self._numbers: set[str] = set()
        self._line = 0
        self._broken = ""

    def read(self, line: bytes) -> None:
        self._line += 1
        if self._broken:
            self._collector.problem(f"line {self._line - 1} is broken: {self._broken}")
            self._broken = ""
        try:
            parsed = _parse(line)
        except (ValueError, RecursionError) as error:
            self._broken = str(error)
            return
        if parsed is not None:
            self._add(*parsed)

    def metrics(self) -> Metrics:
        if self._broken:
            self._collector.problem(f"line {self._line}, the last one, is broken or was cut: {self._broken}")
        for key in sorted(self._texts.keys() & self._numbers):
            self._collector.problem(self._texts[key])
        if not self._line:
            self._collector.problem("the log is empty: verl's file logger wrote nothing")
        elif not self._collector.has_steps:
            self._collector.problem(f'no step in {self._line} lines: expected lines such as {{"step": 1, "data": {{...}}}}')
        return self._collector.metrics()

    def _add(self, step: int, data: dict[str, Any]) -> None:
        values: list[tuple[str, float]] = []
        for key, raw in data.items():
            value = _number(raw)
            if value is None:
                self._texts.setdefault(key, f"line {self._line}: {key} at step {step} is no number: {_short(raw)}")
            else:
                self._numbers.add(key)
                values.append((key, value))
        self._collector.add(step, values, where=f"line {self._line}")


def _parse(line: bytes) -> tuple[int, dict[str, Any]] | None:
    if len(line) > LONGEST_LINE:
        raise ValueError(f"it is longer than {LONGEST_LINE} bytes")
    if not line.strip():
        return None
    entry = json.loads(line)
    if not isinstance(entry, dict) or not {"step", "data"} <= entry.keys():
        raise ValueError(f"expected an object with step and data, came {_short(entry)}")
    step, data = entry["step"], entry["data"]
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise ValueError(f"step {_short(step)} is no step number")
    if not isinstance(data, dict):
        raise ValueError(f"data of step {step} is no object: {_short(data)}")  # noqa: TRY004  # one kind of error for a broken line
    return step, data


def _number(value: object) -> float | None:
    if value is None:
        return math.nan
    if not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004  # what fits into a sentence
