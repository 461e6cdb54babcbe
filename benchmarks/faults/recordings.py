"""Recorded runs of real trainings, and runs made up from their noise.

    python benchmarks/faults/recordings.py RUN_ROOT     keep the sound runs of a directory in `recorded/`, numbers only

A recording is what verl printed, cut to the metrics that checks read and to six digits. A made-up run takes the course of its case
(the median of all recordings at each step) and the residuals of recordings, in blocks of neighbouring steps and for all metrics
together, so that noise, its dependence between steps and between metrics, and its rare large values are the recorded ones.
Kuensch, "The jackknife and the bootstrap for general stationary observations", Annals of Statistics 17 (1989).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from judging import Setting

from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.nodeids import own_name
from pytest_ascend_e2e.recipe import GSPO
from pytest_ascend_e2e.session import read_run
from pytest_ascend_e2e.session.asking import dtype_of
from pytest_ascend_e2e.session.judging import configured

Rows = dict[int, dict[str, float]]

RECORDED = Path(__file__).parent / "recorded"
SCHEMA = 1
BLOCK = 3
# The keys that checks read, beside the parts of a step.
KEYS = (
    "training/global_step", "training/rollout_probs_diff_valid", "training/rollout_probs_diff_mean",
    "training/rollout_probs_diff_max", "training/rollout_actor_probs_pearson_corr", "rollout_corr/k3_kl", "rollout_corr/ppl_ratio",
    "actor/entropy", "actor/grad_norm", "actor/lr", "actor/kl_loss", "actor/pg_loss", "actor/pg_clipfrac", "actor/ppo_kl",
    "actor/perf/max_memory_allocated_gb", "actor/perf/cpu_memory_used_gb", "critic/rewards/mean", "critic/rewards/max",
    "critic/rewards/min", "critic/advantages/max", "critic/advantages/min", "response_length/mean", "response_length/clip_ratio",
    "response/aborted_ratio", "perf/throughput", "perf/total_num_tokens", "perf/time_per_step", "timing_s/step", "timing_s/gen",
    "timing_s/old_log_prob", "timing_s/ref", "timing_s/update_actor", "timing_s/update_weights",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Recordings:
    """The recorded runs of one case."""

    case: str
    setting: Setting
    runs: Sequence[Rows]


def read_recordings(directory: Path) -> list[Recordings]:
    """Return the recordings of a directory by case: of run directories, or as `write_recordings` left them."""
    kept = sorted(directory.glob("*.json"))
    return [_read_kept(path) for path in kept] if kept else _read_runs(directory)


def write_recordings(recordings: Iterable[Recordings], directory: Path) -> None:
    """Write each case into a file of its own, a line for each run."""
    for case in recordings:
        setting = case.setting
        head = {
            "schema": SCHEMA, "case": case.case, "dtype": setting.dtype, "devices": setting.devices, "lr": setting.lr,
            "has_reference": setting.has_reference, "clips_sequences": setting.clips_sequences, "steps": setting.steps,
        }  # fmt: skip
        lines = [json.dumps({key: [_short(row[key]) for row in rows.values()] for key in rows[1]}) for rows in case.runs]
        text = f'{json.dumps(head)[:-1]}, "runs": [\n' + ",\n".join(lines) + "\n]}\n"
        (directory / f"{case.case}.json").write_text(text, encoding="utf-8")


def _read_kept(path: Path) -> Recordings:
    data = json.loads(path.read_text(encoding="utf-8"))
    if data.pop("schema") != SCHEMA:
        raise ValueError(f"{path}: expected recordings of schema {SCHEMA}")
    case, runs = data.pop("case"), data.pop("runs")
    rows = [{at + 1: {key: values[at] for key, values in run.items()} for at in range(data["steps"])} for run in runs]
    return Recordings(case=case, setting=Setting(**data), runs=rows)


def _read_runs(directory: Path) -> list[Recordings]:
    """Read the run directories whose training completed; what a check says of them is the matter of the bench."""
    cases: dict[str, list[Rows]] = {}
    settings: dict[str, Setting] = {}
    for path in sorted(directory.glob("*/record.json")):
        run = read_run(path.parent)
        record = run.record
        if not record.is_completed or record.changed:
            continue
        case = own_name(record.case)
        training = configured(run.directory)
        settings[case] = Setting(
            dtype=dtype_of(record.runner), devices=record.devices, steps=record.steps, lr=training["lr"],
            has_reference=training["has_reference"], clips_sequences=record.algorithm == GSPO.name,
        )  # fmt: skip
        rows = {step: run.metrics.row(step) for step in run.metrics.training_steps}
        cases.setdefault(case, []).append({step: {key: row[key] for key in KEYS if key in row} for step, row in rows.items()})
    return [Recordings(case=case, setting=settings[case], runs=runs) for case, runs in cases.items()]


def _short(value: float) -> float:
    return float(f"{value:.6g}")


class Template:
    """A case as its recordings show it: a course, and residuals to make runs of."""

    def __init__(self, recordings: Recordings) -> None:
        runs = [list(rows.values()) for rows in recordings.runs]
        self._devices = recordings.setting.devices
        self._steps = recordings.setting.steps
        self._keys = [key for key in runs[0][0] if all(key in row for rows in runs for row in rows)]
        values = {key: [row[key] for rows in runs for row in rows] for key in self._keys}
        # What is never zero varies in parts of itself, the rest by amounts; a part of one stays one.
        self._is_scaled = {key: min(found) > 0 for key, found in values.items()}
        self._is_part = {key: min(found) >= 0 and max(found) <= 1 for key, found in values.items()}
        scaled = [[{key: self._on_scale(key, row[key]) for key in self._keys} for row in rows] for rows in runs]
        self._course = [
            {key: statistics.median(rows[at][key] for rows in scaled) for key in self._keys} for at in range(self._steps)
        ]
        residuals = [
            [{key: row[key] - self._course[at][key] for key in self._keys} for at, row in enumerate(rows)] for rows in scaled
        ]
        # The first step has noise of its own kind. Of the others, each recording has a level, from which its steps differ.
        self._first = [rows[0] for rows in residuals]
        self._levels = [{key: statistics.fmean(row[key] for row in rows[1:]) for key in self._keys} for rows in residuals]
        self._residuals = [
            [{key: row[key] - level[key] for key in self._keys} for row in rows[1:]]
            for rows, level in zip(residuals, self._levels, strict=True)
        ]

    def noise(self, key: str) -> tuple[float, float]:
        """Return the standard deviations of a metric, from run to run and from step to step of one run, on its scale."""
        by_run = statistics.stdev([level[key] for level in self._levels])
        return by_run, statistics.pstdev(row[key] for rows in self._residuals for row in rows)

    def make(self, seed: int) -> Rows:
        """Return the rows of a run: the level of one recording, and blocks of residuals of others."""
        rng = random.Random(seed)
        level = rng.choice(self._levels)
        chosen = [rng.choice(self._first)]
        while len(chosen) < self._steps:
            at = rng.randrange(self._steps - BLOCK)
            block = rng.choice(self._residuals)[at : at + BLOCK]
            chosen += [{key: level[key] + residual[key] for key in self._keys} for residual in block]
        rows: Rows = {}
        for step, (course, residual) in enumerate(zip(self._course, chosen, strict=False), start=1):
            row = {key: self._off_scale(key, course[key] + residual[key]) for key in self._keys}
            # What verl computes from other metrics is computed from them.
            row["training/global_step"] = float(step)
            row["perf/throughput"] = row["perf/total_num_tokens"] / row["perf/time_per_step"] / self._devices
            rows[step] = row
        return rows

    def _on_scale(self, key: str, value: float) -> float:
        return math.log(value) if self._is_scaled[key] else value

    def _off_scale(self, key: str, value: float) -> float:
        back = math.exp(value) if self._is_scaled[key] else value
        return min(1.0, max(0.0, back)) if self._is_part[key] else back


def metrics_of(runs: Iterable[Rows]) -> list[Metrics]:
    """Return runs as checks see them."""
    return [Metrics(rows) for rows in runs]


def main() -> int:
    """Keep the recordings of a directory, and print their noise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--most", type=int, default=10, help="runs to keep of each case")
    args = parser.parse_args()
    found = read_recordings(args.directory)
    kept = [Recordings(case=case.case, setting=case.setting, runs=case.runs[: args.most]) for case in found]
    write_recordings(kept, RECORDED)
    for case in found:
        template = Template(case)
        for key in ("timing_s/step", "perf/throughput", "actor/perf/max_memory_allocated_gb", "critic/rewards/mean"):
            by_run, by_step = template.noise(key)
            print(f"{case.case}, {len(case.runs)} runs, {key}: from run to run {by_run:.2%}, from step to step {by_step:.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
