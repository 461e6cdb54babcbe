"""How an error of ours looks in pytest: its reason in the short summary, its line that of the test's file, told once."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree as ET

import pytest

from tests.plugin.conftest import PLAIN_AND_XDIST, Host

TOO_LARGE = "@npu_nightly(runner='toy-2', recipe=recipe(rollout=Vllm(tp=4, n=4)))\ndef test_large(run): run.check_completed()\n"
MISFIT = "rollout: tp x dp = 4 x 1 = 4 does not divide 2 devices"


def line_of(host: Host, text: str) -> int:
    lines = (host.pytester.path / "test_cases.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


def summary_of(result: pytest.RunResult, nodeid: str) -> str:
    """Return what the short summary says of a test."""
    return next(line for line in result.outlines if line.startswith(f"ERROR {nodeid} - ")).partition(" - ")[2]


@PLAIN_AND_XDIST
def test_a_problem_of_a_plan_is_told_once_and_summed_up_by_its_reason(
    host: Host, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    host.cases(TOO_LARGE)
    monkeypatch.setenv("CI", "true")  # pytest then cuts no line of its summary

    result = host.run("--e2e-plan", "--runner", "toy-2", "--junitxml=xml", *workers)

    text = result.stdout.str()
    assert summary_of(result, "test_cases.py::test_large").startswith(f"on toy-2: {MISFIT}")
    assert f"test_cases.py:{line_of(host, '@npu_nightly')}: cannot work, by 1 problem on toy-2; the plan below tells" in text
    assert text.partition("short test summary")[0].count(MISFIT) == 1
    assert f"  problem: {MISFIT}" in text
    error = ET.parse(host.pytester.path / "xml").find(".//error")  # noqa: S314  # our own file
    assert error is not None
    assert error.get("message", "").startswith(f'failed on setup with "on toy-2: {MISFIT}')
    assert f": on toy-2: {MISFIT}" in (error.text or "")


@PLAIN_AND_XDIST
def test_an_error_from_an_environment_below_the_root_has_the_line_of_the_test(
    host: Host, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    installed = host.pytester.path / ".venv" / "lib" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "helpful.py").write_text(
        "import pytest\nfrom pytest_ascend_e2e.errors import E2EError\n"
        "@pytest.fixture\ndef helped(): raise E2EError('no help here')\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    host.cases(f"import sys; sys.path.insert(0, {str(installed)!r})\nfrom helpful import helped\ndef test_helped(helped): pass\n")

    result = host.run(*workers)
    sys.modules.pop("helpful", None)

    assert summary_of(result, "test_cases.py::test_helped") == "no help here"
    assert f"test_cases.py:{line_of(host, 'def test_helped')}: no help here" in result.outlines
    assert "site-packages" not in re.sub(r"rootdir.*", "", result.stdout.str())


MISTAKES = {
    "marker": ("@npu_nightly(runer='toy-2')\ndef test_case(run): pass\n", "@npu_nightly of test_cases.py::test_case has no "),
    "recipe": ("recipe(stpes=3)\n", "Recipe has no field 'stpes'; did you mean "),
}


@PLAIN_AND_XDIST
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_short_summary_has_the_reason_of_a_file_that_cannot_be_collected(
    host: Host, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...], mistake: str
) -> None:
    body, reason = MISTAKES[mistake]
    host.cases(body)
    monkeypatch.setenv("CI", "true")

    result = host.run(*workers)

    assert summary_of(result, "test_cases.py").startswith(reason)
    assert "Traceback" not in result.stdout.str()


def test_an_error_of_a_line_has_that_line(host: Host) -> None:
    host.cases("@npu_nightly(runner='toy-2')\ndef test_own(train):\n    train(recipe(rollout=Vllm(tp=4, n=4)))\n")

    result = host.run("--runner", "toy-2", "--tb=line")

    place = re.escape(str(host.pytester.path / "test_cases.py"))
    assert re.search(
        rf"^({place}|test_cases\.py):{line_of(host, 'train(recipe')}: cannot work on toy-2: ", result.stdout.str(), re.MULTILINE
    )
