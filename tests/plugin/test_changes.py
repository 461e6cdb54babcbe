"""`--e2e-steps` and `--e2e-set`: a case with changes, which says so wherever it is told."""

from __future__ import annotations

import json
from typing import Any

from tests.plugin.conftest import PLAIN_AND_XDIST, Host

CASE = "@npu_nightly(runner='toy-2', recipe=recipe(steps=8{more}))\ndef test_case(run): run.check_completed()\n"
LR = "actor_rollout_ref.actor.optim.lr"


def record_of(host: Host) -> tuple[dict[str, Any], str]:
    (path,) = (host.pytester.path / "runs").glob("*/record.json")
    return json.loads(path.read_text()), (path.parent / "command.sh").read_text()


@PLAIN_AND_XDIST
def test_a_case_is_trained_with_the_changes_and_its_repeat_has_them_too(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(CASE.format(more=""))

    result = host.run("--runner", "toy-2", "--e2e-steps", "3", "--e2e-set", f"{LR}=2.0e-6", "--e2e-set", "data.seed=7", *workers)

    result.assert_outcomes(passed=1)
    record, command = record_of(host)
    assert record["last_step"] == 3
    assert record["changed"] == ["steps=3", f"{LR}=2.0e-6", "data.seed=7"]
    assert f"{LR}=2e-06" in command
    assert "data.seed=7" in command
    assert "trainer.total_training_steps=3" in command
    assert record["rerun_command"].endswith(f"--runner toy-2 --e2e-steps 3 --e2e-set {LR}=2.0e-6 --e2e-set data.seed=7")


def test_a_red_case_with_changes_says_that_it_is_not_the_case_as_it_stands(host: Host) -> None:
    host.cases(CASE.format(more=", env={'FAKE_TRAINER': 'nan@2'}"))

    result = host.run("--runner", "toy-2", "--e2e-steps", "3")

    result.assert_outcomes(failed=1)
    assert "not the case as it stands, but one with steps=3" in result.stdout.str()


def test_a_run_with_changes_is_not_in_the_history_of_its_case(host: Host) -> None:
    host.cases(CASE.format(more=""))

    host.run("--runner", "toy-2", "--e2e-steps", "3", "--e2e-history", "history.db").assert_outcomes(passed=1)
    assert not (host.pytester.path / "history.db").exists()

    host.run("--runner", "toy-2", "--e2e-history", "history.db").assert_outcomes(passed=1)
    assert (host.pytester.path / "history.db").exists()


def test_a_plan_has_the_changes(host: Host) -> None:
    host.cases(CASE.format(more=""))

    result = host.run("--runner", "toy-2", "--e2e-plan", "--e2e-steps", "3", "--e2e-set", f"{LR}=2.0e-6")

    assert "trainer.total_training_steps=3" in result.stdout.str()
    assert f"{LR}=2e-06" in result.stdout.str()


def test_a_change_that_cannot_be_read_is_refused_before_anything_runs(host: Host) -> None:
    host.cases(CASE.format(more=""))

    result = host.run("--runner", "toy-2", "--e2e-set", "lr")

    assert "--e2e-set: 'lr' cannot be used: expected KEY=VALUE, such as" in result.stderr.str()


def test_another_learning_rate_is_not_taken_for_a_fault_of_the_updates(host: Host) -> None:
    # The fake trains with 1e-6, which the recipe does not ask for.
    host.cases(CASE.format(more=", lr=5e-6").replace("check_completed", "check_update_health"))

    host.run("--runner", "toy-2").assert_outcomes(failed=1)

    host.run("--runner", "toy-2", "--e2e-set", f"{LR}=1.0e-6").assert_outcomes(passed=1)
