"""A wrong argument of a marker is one clear line at collection, plain and with xdist."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import PLAIN_AND_XDIST, Host

WRONG = {
    "misspelt": ("@npu_nightly(runer='toy-2')", "has no argument 'runer'; did you mean 'runner'?"),
    "positional": ("@npu_nightly('toy-2')", "takes no positional argument, got 'toy-2'; write runner='toy-2'"),
    "no-runner": ("@npu_nightly()", "needs a runner"),
    "bare": ("@npu_nightly", "needs a runner"),
    "unknown-runner": ("@npu_nightly(runner='toy-3')", "'toy-3'"),
    "no-recipe": ("@npu_nightly(runner='toy-2', recipe='grpo')", "recipe='grpo' is a str; expected a Recipe(...)"),
    "nodes": ("@npu_nightly(runner='toy-2', nodes=0)", "nodes=0: expected a whole number of 1 or more"),
    "timeout": ("@npu_nightly(runner='toy-2', timeout='soon')", "timeout='soon' cannot be used: expected a positive duration"),
    "pytest-mark": ("import pytest\n@pytest.mark.npu_nightly(runer='toy-2')", "has no argument 'runer'; did you mean 'runner'?"),
    "two-tiers": ("@npu_e2e(runner='toy-2')\n@npu_nightly(runner='toy-2')", "a case belongs to one tier"),
}


# Every mistake plain; of the kinds that xdist could tell apart (an error of a hook, one of the decorator), one each with it.
@pytest.mark.parametrize(
    ("wrong", "workers"), [*((wrong, ()) for wrong in WRONG), ("misspelt", ("-n1",)), ("pytest-mark", ("-n1",))]
)
def test_a_wrong_marker_is_one_clear_line(host: Host, wrong: str, workers: tuple[str, ...]) -> None:
    mark, expected = WRONG[wrong]
    host.cases(f"{mark}\ndef test_case(run): pass\n")

    result = host.run(*workers)

    text = result.stdout.str() + result.stderr.str()
    assert result.ret in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED)
    assert expected in text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text


@PLAIN_AND_XDIST
def test_a_wrong_recipe_is_told_with_its_line_and_without_a_traceback(host: Host, workers: tuple[str, ...]) -> None:
    host.cases("@npu_nightly(runner='toy-2', recipe=recipe(steps=0))\ndef test_case(run): pass\n")

    result = host.run(*workers)

    text = result.stdout.str()
    assert result.ret in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED)
    assert "test_cases.py:" in text
    assert "steps" in text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text


@PLAIN_AND_XDIST
def test_a_mistyped_field_is_one_line_at_collection(host: Host, workers: tuple[str, ...]) -> None:
    host.cases("@npu_nightly(runner='toy-2', recipe=recipe(algorithm=GRPO(kl_los_coef=1)))\ndef test_case(run): pass\n")

    result = host.run(*workers)

    text = result.stdout.str()
    assert result.ret in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.TESTS_FAILED)
    result.stdout.fnmatch_lines(["test_cases.py:*: GRPO has no field 'kl_los_coef'; did you mean 'kl_loss_coef'[?]"])
    assert "TypeError" not in text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text


def test_a_nightly_case_has_the_marker_nightly(host: Host) -> None:
    host.cases(
        "@npu_nightly(runner='toy-2', recipe=recipe())\ndef test_night(run): run.check_completed()\n"
        "@npu_e2e(runner='toy-2', recipe=recipe())\ndef test_day(run): run.check_completed()\n"
    )

    result = host.run("--collect-only", "-q", "-m", "nightly")

    result.stdout.fnmatch_lines(["*::test_night", "*1/2 tests collected (1 deselected)*"])


def test_a_tuple_of_runners_takes_any(host: Host) -> None:
    host.cases("@npu_e2e(runner=('toy-4', 'toy-2'), recipe=recipe(steps=3))\ndef test_case(run): run.check_completed()\n")

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(passed=1)
