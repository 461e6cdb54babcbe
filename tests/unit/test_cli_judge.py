"""`ascend-e2e judge`: the verdict of an existing run is found again, and changes with other limits or another baseline."""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ascend_e2e.cli import judge
from pytest_ascend_e2e.errors import CheckError, RecordError
from pytest_ascend_e2e.records import BODY, Asked, Check, RunRecord, Verdict
from pytest_ascend_e2e.session import judge_again, read_run, record_baseline, write_baselines
from pytest_ascend_e2e.session.asking import plain_baselines
from tests.fakes.logged_run import logged_run
from tests.fakes.run_directories import PASSED, write_run

REWARDS = {"minimum": 0.4, "window": 3, "trend": "rises"}
ASKED: dict[str, dict[str, Any]] = {
    "completed": {"steps": 15},
    "rewards": REWARDS,
    "logprob": {"has_reference": True, "mean_limit": 0.02},
    "health": {"lr": 1e-6},
    "throughput": {"minimum": 350, "memory_max_gb": 25, "warmup": 2},
}


def run(*words: object) -> tuple[int, str]:
    parser = argparse.ArgumentParser()
    judge.add_parser(parser.add_subparsers())
    stdout = io.StringIO()
    return judge.run(parser.parse_args(["judge", *map(str, words)]), stdout, io.StringIO()), stdout.getvalue()


def judged_run(root: Path, number: int, demands: dict[str, dict[str, Any]] = ASKED, **changed: object) -> Path:
    """Write a run with the checks that its test made."""
    directory = write_run(root, number, **changed)  # type: ignore[arg-type]  # any field
    existing = read_run(directory)
    asked = [Asked(group=group, arguments=arguments) for group, arguments in demands.items()]
    checks = (*existing.record.checks[1:], *judge_again(existing, asked))
    (directory / "record.json").write_text(dataclasses.replace(existing.record, checks=checks, asked=asked).to_json())
    return directory


def checks_of(directory: Path) -> tuple[Check, ...]:
    return tuple(read_run(directory).record.checks)


def test_the_window_and_the_warmup_of_the_test_are_those_of_the_record(tmp_path: Path) -> None:
    directory = judged_run(tmp_path, 1)
    (directory / "config.yaml").unlink()  # nothing of it is needed

    _, out = run(directory, "--json")

    messages = {check["name"]: check["message"] for check in json.loads(out)["checks"]}
    assert "mean of steps 13..15" in messages["rewards.level"]
    assert "median of steps 3..15" in messages["throughput.tokens"]
    assert (
        "mean of steps 12..15"
        in {check["name"]: check["message"] for check in json.loads(run(directory, "--window", 4, "--json")[1])["checks"]}[
            "rewards.level"
        ]
    )


def test_the_baseline_of_the_test_is_that_of_the_record(tmp_path: Path) -> None:
    sound = [read_run(judged_run(tmp_path / "sound", number)) for number in range(1, 6)]
    held = plain_baselines(record_baseline(sound))
    rows = {step: {**row, "timing_s/step": row["timing_s/step"] * 1.2} for step, row in logged_run(15, seed=8).items()}
    slow = judged_run(tmp_path, 8, {"baseline": {"warmup": 1, "baselines": held}}, rows=rows)

    status, out = run(slow)

    assert status == 1
    assert "failed (was: failed)" in out
    assert "baseline.timing_s/step" in out


def test_what_the_test_asserted_itself_stays_red(tmp_path: Path) -> None:
    body = Check(name=BODY, verdict=Verdict.FAILED, message="the test failed by itself: AssertionError: 0.2 > 0.3")
    directory = judged_run(tmp_path, 1, checks=(PASSED, body))

    status, out = run(directory)

    assert status == 1
    assert "AssertionError: 0.2 > 0.3" in out
    assert run(directory, "--only", "rewards")[0] == 0


def test_arguments_of_another_version_are_refused(tmp_path: Path) -> None:
    directory = judged_run(tmp_path, 1)
    record = (directory / "record.json").read_text()
    for before, after, text in (('"warmup"', '"warm_up"', "of another version"), ('"group": "health"', '"group": "x"', "no group")):
        (directory / "record.json").write_text(record.replace(before, after))

        with pytest.raises(RecordError, match=text):
            run(directory)


def test_the_same_limits_give_the_same_verdict(tmp_path: Path) -> None:
    directory = judged_run(tmp_path, 1)

    status, out = run(directory, "--json")

    assert status == 0
    assert RunRecord.from_json(out, origin="stdout").checks == checks_of(directory)
    assert RunRecord.from_json(out, origin="stdout").asked == read_run(directory).record.asked


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("--reward-min", "0.9"), "rewards.level"),
        (("--trend", "falls"), "rewards.falls"),
        (("--mean-limit", "0.001"), "logprob.mean-difference"),
        (("--max-limit", "0.3"), "logprob.max-difference"),
        (("--pearson-limit", "0.9999"), "logprob.pearson"),
        (("--throughput-min", "500"), "throughput.tokens"),
        (("--step-time-max", "30"), "throughput.step-time"),
        (("--memory-max", "20"), "throughput.memory"),
        (("--host-memory-max", "200"), "throughput.host-memory"),
    ],
)
def test_another_limit_makes_a_green_run_red_and_names_the_check(tmp_path: Path, words: tuple[str, str], name: str) -> None:
    status, out = run(judged_run(tmp_path, 1), *words)

    assert status == 1
    assert "failed (was: passed); 1 of" in out
    assert f"first {name}:" in out


def test_a_limit_that_was_too_tight_makes_a_red_run_green(tmp_path: Path) -> None:
    directory = judged_run(tmp_path, 1, {"rewards": {"minimum": 0.9, "trend": None}})

    assert run(directory)[0] == 1
    status, out = run(directory, "--reward-min", "0.3")

    assert status == 0
    assert "passed (was: failed)" in out


def test_a_crash_is_red_whatever_the_limits(tmp_path: Path) -> None:
    rows = {step: row for step, row in logged_run(15).items() if step <= 5}

    status, out = run(
        judged_run(tmp_path, 1, {"completed": {"steps": 15}}, rows=rows, exit_status=1, end_reason="exit status 1"), "--all"
    )

    assert status == 1
    assert "completed.process" in out
    assert "completed.steps" in out


def test_most_checks_of_a_training_that_broke_off_are_counted_only(tmp_path: Path) -> None:
    directory = judged_run(tmp_path, 1, rows={}, exit_status=1, end_reason="exit status 1", last_step=None)

    status, out = run(directory)

    assert status == 1
    assert len(out.splitlines()) < 5
    assert "checks fail because the training broke off (see record.json)" in out
    assert len(run(directory, "--all")[1].splitlines()) > 20


def test_another_baseline_judges_too(tmp_path: Path) -> None:
    sound = [read_run(judged_run(tmp_path, number)) for number in range(1, 6)]
    write_baselines(tmp_path / "b.yaml", sound[0].record.case, "a3-4", record_baseline(sound))
    rows = {step: {**row, "timing_s/step": row["timing_s/step"] * 1.1} for step, row in logged_run(15, seed=8).items()}
    slow = judged_run(tmp_path / "more", 8, rows=rows)

    status, out = run(judged_run(tmp_path / "more", 9), slow, "--baselines", tmp_path / "b.yaml")

    assert status == 1
    assert "test_grpo-9: passed" in out
    assert "test_grpo-8: failed (was: passed)" in out
    assert out.count("baseline.timing_s/step:") == 2  # in the headline, and once in the table


def test_a_file_without_the_case_is_refused(tmp_path: Path) -> None:
    path = judged_run(tmp_path, 1)
    (tmp_path / "none.yaml").write_text("schema: 1\ncases: {}\n")

    with pytest.raises(RecordError, match="holds no baseline of"):
        run(path, "--baselines", tmp_path / "none.yaml")


def test_a_file_of_baselines_that_is_not_there_is_refused_as_such(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"none\.yaml: no such file; expected one that `ascend-e2e baseline record` has written"):
        run(judged_run(tmp_path, 1), "--baselines", tmp_path / "none.yaml")


def test_only_the_checks_that_are_asked_for_are_made(tmp_path: Path) -> None:
    _, out = run(judged_run(tmp_path, 1), "--only", "health", "--only", "logprob", "--json")

    assert {check["name"].partition(".")[0] for check in json.loads(out)["checks"]} == {"health", "logprob"}


def test_a_run_that_was_never_judged_gets_all_checks(tmp_path: Path) -> None:
    status, out = run(write_run(tmp_path, 1, checks=()), "--json")

    assert status == 0
    assert {check["name"].partition(".")[0] for check in json.loads(out)["checks"]} == {
        "completed", "rewards", "logprob", "health", "throughput",
    }  # fmt: skip


def test_a_log_is_read_where_verls_own_file_is_missing(tmp_path: Path) -> None:
    directory = judged_run(tmp_path, 1)
    (directory / "metrics.jsonl").unlink()
    lines = [
        f"step:{step} - " + " - ".join(f"{key}:{value!r}" for key, value in row.items())
        for step, row in logged_run(15, seed=1).items()
    ]
    (directory / "train.log").write_text("".join(f"(TaskRunnerV1 pid=1) {line}\n" for line in lines))

    assert run(directory)[0] == 0
    (directory / "train.log").unlink()
    with pytest.raises(RecordError, match=r"neither metrics\.jsonl nor train\.log"):
        run(directory)


@pytest.mark.parametrize(("name", "text"), [("config.yaml", "configured to do"), ("record.json", "directory of a run")])
def test_a_directory_that_lacks_a_file_is_refused(tmp_path: Path, name: str, text: str) -> None:
    directory = write_run(tmp_path, 1, checks=())
    (directory / name).unlink()

    with pytest.raises(RecordError, match=text):
        run(directory)


def test_a_limit_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckError):
        run(judged_run(tmp_path, 1), "--reward-min", "nan")


@pytest.mark.parametrize(("algorithm", "status"), [("gspo", 0), ("grpo", 1)])
def test_a_run_of_gspo_may_clip_most_of_its_tokens(tmp_path: Path, algorithm: str, status: int) -> None:
    rows = {step: {**row, "actor/pg_clipfrac": 0.77} for step, row in logged_run(15, seed=1).items()}

    assert run(judged_run(tmp_path, 1, rows=rows, algorithm=algorithm))[0] == status
