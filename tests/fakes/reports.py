"""Runs with all that a report shows: a sound one, one that broke off, one with odd values, one with hostile names."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from pytest_ascend_e2e.diagnosis import diagnose
from pytest_ascend_e2e.records import Check, Ending, RunRecord, Verdict
from pytest_ascend_e2e.session import read_record
from tests.fakes.logged_run import Rows, logged_run
from tests.fakes.run_directories import CONFIG, PASSED, write_run

HOSTILE = "<script>alert(1)</script>"
BASELINE = Check(
    name="baseline.perf/throughput", verdict=Verdict.PASSED, message="perf/throughput keeps its baseline", metric="perf/throughput",
    value=376.0, comparison=">=", limit=350.0, origin="five runs", band=(350.0, 410.0),
)  # fmt: skip
LOW = Check(
    name="rewards.level", verdict=Verdict.FAILED, message="the reward is low", metric="critic/rewards/mean", value=0.5,
    comparison=">=", limit=0.6, origin="given by the test",
)  # fmt: skip


def green_run(root: Path, number: int = 1, **changed: Any) -> RunRecord:
    """Write a run that passed, with a baseline and a log."""
    return _written(root, number, None, **{"checks": (PASSED, BASELINE), **changed})


def red_run(root: Path, number: int = 2) -> RunRecord:
    """Write a later run of the same case with a failed check, another configuration, and values that are no numbers."""
    rows = logged_run(15, seed=number)
    rows[4]["actor/grad_norm"] = math.nan
    rows[9]["actor/grad_norm"] = math.inf
    del rows[6]["actor/entropy"], rows[7]["actor/entropy"]
    record = _written(
        root, number, rows, checks=(PASSED, BASELINE, LOW), started_at="2026-11-30T12:00:00+00:00",
        versions={"verl": "0.9.2", "vllm": "0.11.0"}, commit="ffff2222",
    )  # fmt: skip
    (Path(record.run_dir) / "config.yaml").write_text(CONFIG.replace("lr: 1.0e-06", "lr: 2.0e-05"))
    # verl's own file has null for both; the console log, which is read where that file is missing, tells them apart.
    (Path(record.run_dir) / "metrics.jsonl").unlink()
    lines = [f"step:{step} - " + " - ".join(f"{key}:{value!r}" for key, value in row.items()) for step, row in rows.items()]
    (Path(record.run_dir) / "train.log").write_text("".join(f"(TaskRunner pid=1) {line}\n" for line in lines))
    return record


def broken_run(root: Path, number: int = 3) -> RunRecord:
    """Write a run of another case that ran out of memory at step 5."""
    rows = {step: row for step, row in logged_run(15, seed=number).items() if step <= 5}
    log = [*["loading"] * 30, "(WorkerDict pid=77) RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB", *["shutdown"] * 5]
    found = diagnose([f"{line}\n".encode() for line in log], exit_status=1, ending=Ending.EXITED)
    return _written(
        root, number, rows, log=log, case="tests/test_cases.py::test_dapo", algorithm="dapo", exit_status=1, last_step=5,
        end_reason="exit status 1", diagnosis=found, checks=(dataclasses.replace(PASSED, verdict=Verdict.FAILED),),
    )  # fmt: skip


def hostile_run(root: Path, number: int = 4) -> RunRecord:
    """Write a run of which every text is markup."""
    attribute = '"><img src=x onerror="alert(1)">'
    rows = {
        step: {**row, f"actor/{HOSTILE}": 1.0, f"val-core/{attribute}": 0.5, "</script><b>": 1.0}
        for step, row in logged_run(15, seed=number).items()
    }
    check = dataclasses.replace(LOW, name=HOSTILE, metric=f"actor/{HOSTILE}", message=attribute, origin=HOSTILE)
    return _written(
        root, number, rows, log=[HOSTILE, "\x1b[31m\x00" + attribute, "a \udcff surrogate"], case=f"t.py::test_x[{HOSTILE}]",
        run_id=f"x{number} {HOSTILE}", runner=attribute, model=HOSTILE, checks=(check,), versions={HOSTILE: attribute},
        problems=(HOSTILE,), device=HOSTILE, changed=(HOSTILE,), rerun_command=HOSTILE,
    )  # fmt: skip


def _written(root: Path, number: int, rows: Rows | None, log: list[str] | None = None, **changed: Any) -> RunRecord:
    run_id = changed.pop("run_id", None)
    directory = write_run(root, number, rows=rows, **changed)
    text = "".join(f"{line}\n" for line in log or [f"line {i}" for i in range(1, 101)])
    (directory / "train.log").write_text(text, errors="surrogateescape")
    variables = {"HOME": "/root", "NAME": HOSTILE}
    (directory / "environment.json").write_text(json.dumps({"schema": 1, "cwd": "/", "variables": variables}))
    record = read_record(directory)
    return record if run_id is None else dataclasses.replace(record, run_id=str(run_id))
