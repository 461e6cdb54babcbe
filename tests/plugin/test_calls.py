"""A wrong call of a check is told by the plan and before the training, unless the name is another fixture's."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import PLAIN_AND_XDIST, Host

WRONG = "@npu_nightly(runner='toy-2', recipe=recipe())\ndef test_case(run):\n    run.check_rewards(trend='rising')\n"
REASON = "trend='rising' cannot be used: expected one of 'rises', 'falls', 'not-rising', 'not-falling', None"


@PLAIN_AND_XDIST
@pytest.mark.parametrize("mode", [(), ("--e2e-plan",)], ids=["run", "plan"])
def test_a_wrong_call_of_a_check_costs_no_training(host: Host, workers: tuple[str, ...], mode: tuple[str, ...]) -> None:
    path = host.cases(WRONG)
    line = path.read_text().splitlines().index("    run.check_rewards(trend='rising')") + 1

    result = host.run("--runner", "toy-2", *mode, *workers)

    text = result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert f"run.check_rewards in line {line}: {REASON}" in text
    assert "Traceback" not in text
    assert not (host.pytester.path / "runs").exists()
    assert not (host.root / "locks").exists()


def test_a_case_that_is_skipped_stays_skipped(host: Host) -> None:
    host.cases(f"import pytest\n@pytest.mark.skip(reason='later')\n{WRONG}")

    host.run("--runner", "toy-2").assert_outcomes(skipped=1)


def test_a_fixture_of_the_suite_may_have_methods_of_its_own(host: Host) -> None:
    own = "import pytest\nclass Mine:\n    def check_rewards(self, trend): pass\n@pytest.fixture\ndef run(): return Mine()\n"
    host.cases(own + WRONG)

    host.run().assert_outcomes(passed=1)
