"""`ascend-e2e metrics RUN`: the metrics of a run or of a log of verl, as a table or as JSON.

Must not know how a log is read; only where it is.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..launch import RunDirectory
from ..metrics import Metrics, MetricSeries, bounded_lines, read_console, read_jsonl, shown_steps
from .logs import not_a_log

if TYPE_CHECKING:
    # The type of `add_subparsers()` has no public name.
    from argparse import _SubParsersAction

_UNREADABLE = 2


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `metrics`."""
    parser = subparsers.add_parser(
        "metrics",
        help="show the metrics of a run, or of a console log or a JSONL log of verl",
        description="Show a line for each metric, at how many steps it has a value, its first, last, least and largest "
        "value, and its mean. They are read from the directory of a run (metrics.jsonl, else train.log), or from a log: a console "
        "log of verl, a log file of a Ray worker, or the JSONL of verl's file logger.",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="directory of a run, or a log")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object: steps with their metrics, and problems of the log"
    )


def run(args: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Print the metrics of `args.run`; return 0, or 2 where the file cannot be read."""
    path = _log_of(args.run)
    problem = not_a_log(path)
    if problem is not None:
        stderr.write(f"{problem}\n")
        return _UNREADABLE
    try:
        with path.open("rb") as stream:
            metrics = read_log(bounded_lines(stream))
    except OSError as error:
        stderr.write(f"{path}: cannot be read: {error.strerror or error}; expected a console log or a JSONL log of verl\n")
        return _UNREADABLE
    if args.json:
        stdout.write(json.dumps(as_json(metrics), ensure_ascii=False, allow_nan=False) + "\n")
        return 0
    stdout.writelines(f"{line}\n" for line in table(metrics))
    stderr.writelines(f"problem: {problem}\n" for problem in metrics.problems)
    return 0


def _log_of(path: Path) -> Path:
    """Return the log that holds the metrics of a run, where this is its directory."""
    if not path.is_dir():
        return path
    files = RunDirectory(path)
    return files.metrics if files.metrics.is_file() else files.log


def read_log(lines: Iterator[bytes]) -> Metrics:
    """Return the metrics of a JSONL log if its first line that is not blank begins as one, else of a console log."""
    head: list[bytes] = []
    for line in lines:
        head.append(line)
        if line.strip():
            break
    is_jsonl = bool(head) and head[-1].lstrip(b"\xef\xbb\xbf \t").startswith(b'{"step"')
    every: Iterable[bytes] = chain(head, lines)
    return read_jsonl(every) if is_jsonl else read_console(every)


def as_json(metrics: Metrics) -> dict[str, object]:
    """Return what `--json` prints; NaN and infinities are the texts nan, inf, -inf."""
    rows: dict[int, dict[str, object]] = {step: {} for step in metrics.steps}
    for key, series in metrics.items():
        for step, value in series.items():
            rows[step][key] = value if math.isfinite(value) else str(value)
    steps = [{"step": step, "metrics": row} for step, row in rows.items()]
    return {"steps": steps, "problems": list(metrics.problems)}


def table(metrics: Metrics) -> Iterator[str]:
    """Yield the lines of the table: one metric a line, over all its steps."""
    yield f"{len(metrics)} metrics at steps {shown_steps(metrics.steps)}"
    if not metrics:
        return
    width = max(map(len, metrics))
    yield f"{'metric':<{width}}  {'steps':>5}" + "".join(f"  {name:>11}" for name in ("first", "last", "min", "max", "mean"))
    for key in sorted(metrics):
        series = metrics[key]
        yield f"{key:<{width}}  {len(series):>5}" + "".join(f"  {value:>11.5g}" for value in _figures(series))


def _figures(series: MetricSeries) -> tuple[float, ...]:
    return series.values[0], series.values[-1], series.min(), series.max(), series.mean()
