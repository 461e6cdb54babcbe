"""The fault bench in small: each injected fault is caught by the right check, and healthy runs stay quiet."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.logged_run import seeded
from tests.fakes.run_directories import write_run

BENCH = Path(__file__).parent.parent.parent / "benchmarks" / "faults"
MODULES = ("healthy", "upstream_rule", "injected", "judging", "recordings", "run")


@pytest.fixture(scope="module")
def bench() -> Iterator[dict[str, Any]]:
    sys.path.insert(0, str(BENCH))
    try:
        yield {name: importlib.import_module(name) for name in MODULES}
    finally:
        sys.path.remove(str(BENCH))
        for name in MODULES:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def pool(bench: dict[str, Any]) -> Any:
    return bench["judging"].Baselines.of_healthy_runs(3)


def test_every_fault_is_caught_by_the_right_check(bench: dict[str, Any], pool: Any) -> None:
    injected, judging, run = bench["injected"], bench["judging"], bench["run"]
    missed = {}
    for fault in injected.FAULTS:
        lines = fault.lines(bench["healthy"].healthy_run(77), seeded(1))
        failed = [check.name for check in judging.judge(lines, fault.exit_status, pool.draw(20), judging.Setting())]
        if not run.right(fault, failed):
            missed[fault.name] = failed

    assert len(injected.FAULTS) >= 60
    assert missed == {}


def test_healthy_runs_stay_quiet(bench: dict[str, Any]) -> None:
    pool = bench["judging"].Baselines.of_healthy_runs(3)  # of its own: what it draws depends on nothing else

    alarms, red, _ = bench["run"].healthy_alarms(200, 20, 5, pool)

    assert red <= 1, alarms


def test_recorded_runs_stay_quiet_and_their_faults_are_caught(bench: dict[str, Any]) -> None:
    cases = bench["recordings"].read_recordings(bench["recordings"].RECORDED)
    alarms = {case.case: bench["run"].recorded_alarms(case) for case in cases}
    lines, missed = bench["run"].recorded_table(cases)

    # One run trained beside other work, its steps twice as long as those of its case; nothing else is told of it, or of any other.
    slow = alarms.pop("test_gspo_qwen3_vl_geometry3k")
    assert (set(slow[0]), slow[1]) == ({"baseline.timing_s/step"}, 1)
    assert alarms == {"test_grpo_qwen3_gsm8k": ({}, 0), "test_gspo_qwen3_moe_gsm8k": ({}, 0)}
    assert missed == 0, "\n".join(lines)


def test_a_run_made_up_from_recordings_has_their_course_and_their_noise(bench: dict[str, Any]) -> None:
    recordings = bench["recordings"]
    case = recordings.read_recordings(recordings.RECORDED)[0]
    template = recordings.Template(case)

    made = [template.make(seed) for seed in range(30)]
    again = recordings.Template(recordings.Recordings(case=case.case, setting=case.setting, runs=made))

    assert made[0] != made[1]
    assert made[0] == template.make(0)
    for key in ("timing_s/step", "critic/rewards/mean"):
        for recorded, resampled in zip(template.noise(key), again.noise(key), strict=True):
            assert resampled == pytest.approx(recorded, rel=0.6)


def test_directories_of_runs_are_recordings_too(bench: dict[str, Any], tmp_path: Path) -> None:
    recordings = bench["recordings"]
    for number in (1, 2):
        write_run(tmp_path / "runs", number)
    write_run(tmp_path / "runs", 3, exit_status=1)
    (tmp_path / "kept").mkdir()

    (found,) = recordings.read_recordings(tmp_path / "runs")
    recordings.write_recordings([found], tmp_path / "kept")
    (kept,) = recordings.read_recordings(tmp_path / "kept")

    assert (found.case, len(found.runs), found.setting.dtype) == ("test_grpo", 2, "bfloat16")
    assert kept.setting == found.setting
    assert kept.runs[1][3]["timing_s/step"] == pytest.approx(found.runs[1][3]["timing_s/step"], rel=1e-5)
    assert str(tmp_path) not in (tmp_path / "kept" / "test_grpo.json").read_text()


def test_the_rule_of_old_has_the_holes_that_are_told_of_it(bench: dict[str, Any]) -> None:
    rule, healthy, injected = bench["upstream_rule"], bench["healthy"], bench["injected"]
    rows = healthy.healthy_run(1)
    baseline = rule.figures(healthy.console_log(rows))
    faults = {fault.name: fault for fault in injected.FAULTS}

    def failures(name: str) -> list[str]:
        found: list[str] = rule.failures(faults[name].lines(rows, seeded(1)), baseline)
        return found

    assert rule.failures(healthy.console_log(rows), baseline) == []
    assert failures("reward NaN in one step") == []
    assert failures("ends green after step 14") == []
    assert failures("log-prob drift at the last step") == []
    assert failures("10 % slower") != []
    quicker = injected.Fault(name="10 % faster", checks=(), spoil=injected.slower(lambda _: 0.9))
    faster = quicker.lines(rows, seeded(1))
    assert rule.failures(faster, baseline) == ["perf/throughput", "timing_s/step"]
