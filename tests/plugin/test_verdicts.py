"""A broken run is never green: each fault of a training makes its test red, with the check or the cause named."""

from __future__ import annotations

import json

import pytest
from junitparser import JUnitXml

from tests.plugin.conftest import PLAIN_AND_XDIST, Host

CHECKS = """
import os

@npu_nightly(runner='toy-2', recipe=recipe(env={'FAKE_TRAINER': os.environ.get('FAULT', '')}))
def test_case(run):
    run.check_completed()
    run.check_rewards()
    run.check_logprob_consistency()
    run.check_throughput(minimum=50, step_time_max_s=10, memory_max_gb=30)
"""

FAULTS = {
    "flat": "rewards.",
    "nan@4": "actor/grad_norm",
    "crash@4": "reward function returned no score",
    "kill@4": "SIGKILL",
    "stop@4": "completed.",
    "drift@8": "training/rollout_probs_diff_mean",
    "wrong-reference": "actor/kl_loss",
    "without:perf/throughput": "perf/throughput",
    "without:training/rollout_probs_diff_mean": "calculate_log_probs",
}


@PLAIN_AND_XDIST
def test_a_good_run_is_green(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(CHECKS)

    result = host.run("--runner", "toy-2", *workers)

    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(("fault", "workers"), [*((fault, ()) for fault in FAULTS), ("nan@4", ("-n1",)), ("kill@4", ("-n1",))])
def test_a_fault_is_red_and_named(host: Host, monkeypatch: pytest.MonkeyPatch, fault: str, workers: tuple[str, ...]) -> None:
    monkeypatch.setenv("FAULT", fault)
    host.cases(CHECKS)

    result = host.run("--runner", "toy-2", *workers)

    text = result.stdout.str()
    result.assert_outcomes(failed=1)
    assert FAULTS[fault] in text
    assert "repeat: pytest test_cases.py::test_case --runner toy-2" in text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text


@PLAIN_AND_XDIST
@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("run.check_rewards()", ["run: exit status 0 after *"]),
        ("run.check_rewards(minimum=9)", ["2 of * rewards.level*", "run: *"]),
    ],
)
def test_the_failure_of_a_body_has_its_training_below_it_in_the_junit_file_too(
    host: Host, workers: tuple[str, ...], check: str, expected: list[str]
) -> None:
    host.cases(
        "@npu_nightly(runner='toy-2', recipe=recipe())\n"
        f"def test_case(run): {check}; assert run.record.steps == 99\n"
        "import pytest\n@pytest.fixture\n"
        "def never(run): raise ValueError('no setup')\n"
        "@npu_nightly(runner='toy-2', recipe=recipe())\n"
        "def test_setup(never): pass\n"
        "def test_plain(): assert 0\n"
    )

    result = host.run("--runner", "toy-2", "--junitxml=junit.xml", *workers)

    result.assert_outcomes(failed=2, errors=1)
    places = ["log: */test_case-*/train.log", "repeat: pytest test_cases.py::test_case --runner toy-2"]
    result.stdout.fnmatch_lines_random(["*test_setup-*/train.log"])
    result.stdout.fnmatch_lines(["E * == 99", "*- training -*", *expected, *places])
    cases = {case.name: case.result[0].text for suite in JUnitXml.fromfile("junit.xml") for case in suite}
    pytest.LineMatcher(cases["test_case"].splitlines()).fnmatch_lines([*expected, *places])
    pytest.LineMatcher(cases["test_setup"].splitlines()).fnmatch_lines(["*ValueError: no setup", "run: *", "log: */test_setup-*"])
    assert " training " not in cases["test_plain"]


def test_all_failed_checks_of_a_test_stand_in_one_table(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULT", "flat,drift@5,nan@3")
    host.cases(CHECKS)

    result = host.run("--runner", "toy-2")

    text = result.stdout.str()
    assert text.count("check     ") == 1
    for metric in ("critic/rewards/mean", "actor/grad_norm", "training/rollout_probs_diff_mean"):
        assert metric in text


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_the_summary_of_a_ci_tells_a_failure_in_one_line(
    host: Host, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("FAULT", "flat,nan@3")
    host.cases(CHECKS)

    result = host.run("--runner", "toy-2", *workers)

    summary = result.stdout.str().partition("short test summary info")[2].splitlines()[1:-1]
    assert len(summary) == 1
    assert " checks failed, first completed.finite: 1 metrics are not finite: actor/grad_norm is nan at steps 3" in summary[0]


def test_a_run_that_is_judged_by_nothing_is_red(host: Host) -> None:
    host.cases("@npu_nightly(runner='toy-2', recipe=recipe(steps=3))\ndef test_case(run): pass\n")

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(failed=1)
    assert "the test trained and looked at nothing" in result.stdout.str()


def test_a_crash_is_red_whatever_the_test_checks(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULT", "crash@4")
    host.cases(
        "import os\n"
        "@npu_nightly(runner='toy-2', recipe=recipe(env={'FAKE_TRAINER': os.environ['FAULT']}))\n"
        "def test_case(run): assert run.metrics['critic/rewards/mean'].mean() > 0\n"
    )

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(failed=1)
    assert "training failed: code-error (product): ValueError: reward function returned no score" in result.stdout.str()


def test_a_failed_assertion_on_a_training_that_broke_off_comes_after_its_cause(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")  # the summary is not cut
    host.cases(
        "@npu_nightly(runner='toy-2', recipe=recipe(env={'FAKE_TRAINER': 'crash@4'}))\n"
        "def test_case(run): assert run.metrics['critic/rewards/mean'].last(10).mean() > 0.9\n"
    )

    result = host.run("--runner", "toy-2")

    told = "training failed: code-error (product): ValueError: reward function returned no score for 3 of 8 samples"
    result.stdout.fnmatch_lines(
        [told, "after that the test failed by itself at test_cases.py:*: *", f"FAILED test_cases.py::test_case - {told}"]
    )


def test_a_failed_assertion_on_a_metric_reads_well_and_keeps_the_training_in_its_report(host: Host) -> None:
    host.cases(
        "@npu_nightly(runner='toy-2', recipe=recipe(steps=3))\n"
        "def test_case(run): assert run.metrics['critic/rewards/mean'].last(2).mean() > 0.9\n"
    )

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(failed=1)
    assert "critic/rewards/mean" in result.stdout.str()
    assert "AssertionError" in result.stdout.str() or "assert 0." in result.stdout.str()


def test_the_record_of_a_run_holds_its_checks(host: Host) -> None:
    host.cases(CHECKS)

    host.run("--runner", "toy-2")

    (path,) = host.pytester.path.glob("runs/*/record.json")
    record = json.loads(path.read_text())
    names = {check["name"].partition(".")[0] for check in record["checks"]}
    assert names == {"completed", "rewards", "logprob", "throughput"}
    assert all(check["verdict"] == "passed" for check in record["checks"])
    assert record["device_ids"] == [0, 1]


def test_a_test_may_train_several_recipes(host: Host) -> None:
    host.cases(
        "@npu_e2e(runner='toy-2')\n"
        "def test_two(train):\n"
        "    short, long = train(recipe(steps=3)), train(recipe(steps=6))\n"
        "    assert len(long.metrics.steps) == 2 * len(short.metrics.steps)\n"
    )

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(passed=1)
    assert len(list(host.pytester.path.glob("runs/*/record.json"))) == 2


def test_the_parts_are_fixtures_of_their_own(host: Host) -> None:
    host.cases(
        "@npu_e2e(runner='toy-2', recipe=recipe(steps=3))\n"
        "def test_parts(gsm8k, npus, layout, model_path, train):\n"
        "    assert gsm8k.train_rows == 64\n"
        "    assert npus.device_ids == (0, 1)\n"
        "    assert layout.dp == 2\n"
        "    assert model_path.endswith('acme/tiny')\n"
        "    train(recipe(steps=2)).check_completed()\n"
    )

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(passed=1)


def test_a_missing_dataset_is_an_error_in_one_line(host: Host) -> None:
    host.cases("@npu_e2e(runner='toy-2', recipe=recipe(dataset='geometry3k'))\ndef test_case(run): run.check_completed()\n")

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(errors=1)
    assert "geometry3k" in result.stdout.str()
    assert "Traceback" not in result.stdout.str()


def test_a_model_that_the_sizes_do_not_suit_is_refused_before_a_device_is_taken(host: Host) -> None:
    (host.root / "models" / "acme" / "tiny" / "config.json").write_text('{"model_type": "qwen3", "num_attention_heads": 3}')
    host.cases("@npu_e2e(runner='toy-2', recipe=recipe(rollout=Vllm(tp=2, n=4)))\ndef test_case(run): run.check_completed()\n")

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(errors=1)
    assert "attention heads" in result.stdout.str()
    assert not (host.root / "locks").exists()


def test_a_skip_after_a_broken_training_does_not_hide_it(host: Host) -> None:
    host.cases(
        "import pytest\n"
        "@npu_e2e(runner='toy-2', recipe=recipe(steps=5, env={'FAKE_TRAINER': 'crash@2'}))\n"
        "def test_case(run): pytest.skip('not today')\n"
    )

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(failed=1)
    assert "training failed: code-error (product)" in result.stdout.str()


def test_two_runs_of_a_test_are_compared_step_by_step(host: Host) -> None:
    host.cases(
        "@npu_e2e(runner='toy-2')\n"
        "def test_same(train):\n"
        "    one, other = train(recipe(steps=5)), train(recipe(steps=5))\n"
        "    one.same_as(other, bitwise=True)\n"
        "\n"
        "@npu_e2e(runner='toy-2')\n"
        "def test_different(train):\n"
        "    one, other = train(recipe(steps=5)), train(recipe(steps=5, env={'FAKE_TRAINER': 'drift@4'}))\n"
        "    one.same_as(other, 'training/rollout_probs_diff_mean', max_limit=0.01)\n"
    )

    result = host.run("--runner", "toy-2")

    result.assert_outcomes(passed=1, failed=1)
    assert (
        "same.training/rollout_probs_diff_mean: training/rollout_probs_diff_mean: the difference of the two runs"
        in result.stdout.str()
    )
