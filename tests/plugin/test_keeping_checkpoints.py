"""Checkpoints go when their test has passed, and stay where somebody may want them."""

from __future__ import annotations

from pathlib import Path

from tests.plugin.conftest import Host

SAVING = """
@npu_nightly(runner='toy-2')
def test_case(train):
    run = train(recipe(steps=2, env={{'FAKE_TRAINER': '{fault}'}}))
    (run.directory / 'checkpoints' / 'global_step_2').mkdir(parents=True)
    run.check_completed()
"""


def saved(host: Host, fault: str, *args: str) -> list[Path]:
    host.cases(SAVING.format(fault=fault))
    host.run("--runner", "toy-2", *args)
    assert len(list(host.pytester.path.glob("runs/*/record.json"))) == 1
    return list(host.pytester.path.glob("runs/*/checkpoints/*"))


def test_a_test_that_passed_leaves_no_checkpoint(host: Host) -> None:
    assert saved(host, "") == []


def test_a_red_test_leaves_its_checkpoints(host: Host) -> None:
    assert len(saved(host, "nan@2")) == 1


def test_checkpoints_are_kept_on_demand(host: Host) -> None:
    assert len(saved(host, "", "--e2e-keep")) == 1
