"""The order of cases, and who hands them out: plain and under xdist."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import PLAIN_AND_XDIST, Host

CASES = """
import pytest

@pytest.fixture(scope="module", autouse=True)
def once():
    yield

def test_first(): pass

@npu_e2e(runner='toy-2', devices=1, estimate=10)
def test_small(npus): assert len(npus.device_ids) == 1

def test_between(): pass

@npu_e2e(runner='toy-2', estimate=10)
def test_large(npus): assert npus.device_ids == (0, 1)

@npu_e2e(runner='toy-2', devices=1, estimate=100)
def test_long(npus): pass

@npu_e2e(runner='toy-4', estimate=1000)
def test_elsewhere(npus): pass

@pytest.mark.parametrize("number", range(30))
def test_many(number): pass
"""
COLLECTED = ["first", "small", "between", "large", "long", "elsewhere"]


def order(result: pytest.RunResult) -> list[str]:
    lines = [line.partition("::test_")[2].split()[0] for line in result.outlines if "::test_" in line]
    return [name for name in lines if not name.startswith("many")]


def test_the_largest_case_comes_first_and_other_tests_keep_their_places(host: Host) -> None:
    host.cases(CASES)

    result = host.run("--runner", "toy-2", "--collect-only", "-q")

    assert order(result) == ["first", "long", "between", "large", "small", "elsewhere"]


@pytest.mark.parametrize(
    "arguments",
    [("--e2e-order", "collected"), ("--e2e-plan",), tuple(f"test_cases.py::test_{name}" for name in COLLECTED)],
    ids=["asked for", "plan", "ids"],
)
def test_an_order_that_the_user_gave_stands(host: Host, arguments: tuple[str, ...]) -> None:
    host.cases(CASES)

    result = host.run("--runner", "toy-2", "--collect-only", "-q", *arguments)

    assert order(result) == COLLECTED


@PLAIN_AND_XDIST
def test_every_test_runs_once_and_nothing_else_is_told(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(CASES)

    result = host.run("--runner", "toy-2", "-v", "--junitxml=junit.xml", *workers)

    result.assert_outcomes(passed=35, skipped=1)
    assert result.ret == pytest.ExitCode.OK
    assert "standby" not in result.stdout.str() + (host.pytester.path / "junit.xml").read_text()
    if workers:
        result.stdout.fnmatch_lines(["scheduling tests via CaseScheduling"])


@pytest.mark.parametrize("arguments", [("--dist", "worksteal"), ("--e2e-order", "collected")], ids=["dist", "order"])
def test_a_scheduler_that_was_asked_for_is_used(host: Host, arguments: tuple[str, ...]) -> None:
    host.cases(CASES)

    result = host.run("--runner", "toy-2", "-v", "-n2", "-k", "small or many", *arguments)

    assert result.ret == pytest.ExitCode.OK
    assert "CaseScheduling" not in result.stdout.str()


def test_the_case_of_a_worker_that_dies_is_red_and_the_others_run(host: Host) -> None:
    host.cases(CASES + "\n@npu_e2e(runner='toy-2', devices=1, estimate=500)\ndef test_dies(npus): __import__('os')._exit(3)\n")

    result = host.run("--runner", "toy-2", "-n2")

    result.assert_outcomes(passed=35, skipped=1, failed=1)
    assert "crashed while running 'test_cases.py::test_dies'" in result.stdout.str()


@PLAIN_AND_XDIST
def test_more_devices_than_the_runner_has_are_one_clear_line(host: Host, workers: tuple[str, ...]) -> None:
    host.cases("@npu_e2e(runner='toy-2', devices=3)\ndef test_case(npus): pass\n")

    result = host.run("--runner", "toy-2", *workers)

    text = result.stdout.str()
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if workers else pytest.ExitCode.INTERRUPTED)  # xdist has its own
    assert "devices=3: the runner toy-2 has 2; take fewer, or name a larger one" in text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text


def test_a_recipe_is_laid_out_on_the_devices_that_its_case_takes(host: Host) -> None:
    host.cases("@npu_nightly(runner='toy-2', devices=1, recipe=recipe(steps=3))\ndef test_case(run): run.check_completed()\n")

    result = host.run("--runner", "toy-2", "-v", "--junitxml=junit.xml", "-o", "junit_family=xunit1")

    result.assert_outcomes(passed=1)
    assert '<property name="e2e_devices" value="1"' in (host.pytester.path / "junit.xml").read_text()


def test_a_device_that_somebody_uses_is_waited_for_and_then_named(host: Host) -> None:
    tool = host.root / "bin" / "npu-smi"
    idle = "| No running processes found in NPU 1 "
    text = tool.read_text()
    assert idle in text
    tool.write_text(
        text.replace(idle, "| 1       0                 | 4194303       | vllm                     | 30123                   | ")
    )
    host.cases("@npu_e2e(runner='toy-2')\ndef test_case(npus): pass\n")

    result = host.run("--runner", "toy-2", "--e2e-lease-timeout", "1s")

    output = result.stdout.str()
    result.assert_outcomes(errors=1)
    assert "test_case waits for 2 of 2 devices: 1 free, 1 in use without a lease, 0 earlier requests waiting" in output
    assert "device 1: in use without a lease by pid 4194303, vllm, 30123 MB" in output
    assert "Traceback" not in output
