"""A red metric is repeated with the same seed and with another; the finding is named and the test stays red."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ascend_e2e.errors import LeaseError
from pytest_ascend_e2e.history import History
from pytest_ascend_e2e.session import Bench, Run
from tests.plugin.conftest import Host

CASE = """
@npu_nightly(runner='toy-2', recipe=recipe(env={{'FAKE_TRAINER': {fault!r}}}))
def test_case(run): run.check_rewards(trend='rises')
"""


@pytest.mark.parametrize(
    ("fault", "finding"),
    [("flat", "confirmed as regression"), ("flat-once:{root}/done", "confirmed as flake"), ("flat-unseeded", "confirmed as seed")],
)
def test_the_finding_is_named_and_nothing_turns_green(host: Host, fault: str, finding: str) -> None:
    host.cases(CASE.format(fault=fault.format(root=host.root)))

    result = host.run("--runner", "toy-2", "--e2e-confirm")

    result.assert_outcomes(failed=1)
    assert finding in result.stdout.str()
    assert "  this run: failed: rewards.rises" in result.stdout.str()
    assert len(list(History(host.pytester.path / "e2e-runs" / "history.sqlite").runs())) == 3


@pytest.mark.parametrize(("fault", "words"), [("flat", ()), ("crash@4", ("--e2e-confirm",)), ("", ("--e2e-confirm",))])
def test_only_a_run_whose_checks_failed_is_repeated_and_only_if_it_is_asked_for(
    host: Host, fault: str, words: tuple[str, ...]
) -> None:
    host.cases(CASE.format(fault=fault))

    result = host.run("--runner", "toy-2", *words)

    result.assert_outcomes(**({"failed": 1} if fault else {"passed": 1}))
    assert "confirmed" not in result.stdout.str()
    assert len(list(host.pytester.path.glob("runs/*/record.json"))) == 1


def test_a_repeat_that_cannot_be_made_hides_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    train = Bench.train
    runs: list[Run] = []

    def only_once(self: Bench, *args: Any, **kwargs: Any) -> Run:
        if runs:
            raise LeaseError("no device became free in time")
        runs.append(train(self, *args, **kwargs))
        return runs[0]

    monkeypatch.setattr(Bench, "train", only_once)
    host.cases(CASE.format(fault="flat"))

    result = host.run("--runner", "toy-2", "--e2e-confirm")

    result.assert_outcomes(failed=1)
    assert "rewards.rises" in result.stdout.str()
    assert "not confirmed: a repeat could not be made: no device became free in time" in result.stdout.str()
    assert len(list(History(host.pytester.path / "e2e-runs" / "history.sqlite").runs())) == 1
