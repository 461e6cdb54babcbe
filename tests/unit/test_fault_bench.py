"""The fault bench in small: each injected fault is caught by the right check, and healthy runs stay quiet."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.logged_run import seeded

# One pool of baselines is made for all of them.
pytestmark = pytest.mark.xdist_group("fault bench")

BENCH = Path(__file__).parent.parent.parent / "benchmarks" / "faults"
MODULES = ("healthy", "upstream_rule", "injected", "judging", "run")


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
    return bench["judging"].Baselines(3)


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


def test_healthy_runs_stay_quiet(bench: dict[str, Any], pool: Any) -> None:
    _, red, _ = bench["run"].healthy_alarms(40, 20, 5, pool)

    assert red == 0


def test_recorded_runs_stay_quiet_and_their_faults_are_caught(bench: dict[str, Any]) -> None:
    lines, missed = bench["run"].recorded_table()

    assert missed == 0, "\n".join(lines)


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
