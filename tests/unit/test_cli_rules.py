"""What `ascend-e2e rules` prints."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.cli import main
from pytest_ascend_e2e.preflight import all_rules


def test_without_an_id_every_rule_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["rules"])

    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert [line.split(" ")[1] for line in lines[2:]] == [rule.id for rule in all_rules()]


def test_only_the_rules_that_are_asked_for_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    main(["rules", "M2"])

    (_, _, line) = capsys.readouterr().out.splitlines()
    assert line.startswith(
        "| M2 | the devices are a multiple of ETP x EP x PP; ETP left out is TP | ends on the devices | error, layout |"
    )


def test_an_id_that_is_none_is_a_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["rules", "M2", "X9"])

    assert status == 2
    assert capsys.readouterr().err == "ascend-e2e rules: X9: no such rule; `ascend-e2e rules` shows all of them, such as M2\n"
