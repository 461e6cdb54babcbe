"""The failure section: why a case is red, in some ten lines however much is wrong."""

from __future__ import annotations

from dataclasses import replace

from pytest_ascend_e2e.records import Check, Diagnosis, Ending, Kind, Verdict
from pytest_ascend_e2e.report import failure_text, headline
from tests.fakes.run_directories import PASSED, SOUND


def failed(name: str) -> Check:
    return Check(
        name=name,
        verdict=Verdict.FAILED,
        message=f"{name} is off",
        metric="actor/grad_norm",
        value=7.0,
        comparison="<=",
        limit=5.0,
        origin="the case",
        step=3,
    )


BROKEN = replace(
    SOUND,
    ending=Ending.SIGNALLED,
    exit_status=None,
    signal="SIGKILL",
    end_reason="signal SIGKILL",
    diagnosis=Diagnosis(kind=Kind.HOST_OOM, line="Task was killed", infra=True, advice="Free memory of the host."),
)


def test_who_stopped_a_training_is_the_cause_and_not_what_its_log_holds() -> None:
    told = "interrupted by KeyboardInterrupt: signal SIGTERM; last progress: step 15 of 20"
    unknown = Diagnosis(kind=Kind.UNKNOWN, line="", infra=False, advice="It was stopped from outside.")
    stopped = replace(BROKEN, ending=Ending.INTERRUPTED, end_reason=told, diagnosis=unknown)

    assert failure_text(stopped).splitlines()[0] == f"training {told}"
    with_cause = failure_text(replace(stopped, diagnosis=BROKEN.diagnosis)).splitlines()[0]
    assert with_cause == f"training {told}; its log tells of host-oom: Task was killed"


def test_a_check_that_could_not_be_decided_comes_after_one_that_failed() -> None:
    short = replace(failed("rewards.rises"), verdict=Verdict.UNDECIDED, value=None, limit=None, message="5 steps are needed")

    assert failure_text(replace(SOUND, checks=(short, failed("health.grad-norm")))).startswith(
        "2 of 2 checks failed, first health."
    )
    assert failure_text(replace(SOUND, checks=(PASSED, short))).startswith("1 of 2 checks failed, first rewards.rises: 5 steps")


def test_checks_that_were_not_made_are_named_with_those_that_passed() -> None:
    unmade = replace(PASSED, name="rewards.collapse", verdict=Verdict.NOT_MADE)

    assert headline(replace(SOUND, checks=(PASSED, unmade))) == "all 1 checks passed; too few steps for rewards.collapse"


def test_one_failed_check_takes_ten_lines() -> None:
    text = failure_text(replace(SOUND, checks=(PASSED, failed("health.grad-norm"))))

    assert text.splitlines() == [
        "1 of 2 checks failed, first health.grad-norm: health.grad-norm is off",
        "run: exit status 0 after 11m40s, at step 15 of 15",
        "",
        "check             metric           value  limit  step",
        "----------------  ---------------  -----  -----  ----",
        "health.grad-norm  actor/grad_norm      7  <= 5      3",
        "limit of health.grad-norm from: the case",
        "",
        "log: e2e-runs/test_grpo-1/train.log",
        "repeat: pytest tests/test_cases.py::test_grpo",
    ]


def test_many_failed_checks_take_hardly_more() -> None:
    text = failure_text(replace(SOUND, checks=tuple(failed(f"health.{number}") for number in range(40))))

    assert len(text.splitlines()) == 19
    assert "health.4: health.4 is off" in text
    assert "and 35 more: health.5, health.6" in text


def test_a_training_that_broke_off_shows_the_lines_that_matter() -> None:
    unmade = replace(PASSED, verdict=Verdict.NOT_MADE)
    checks = (replace(failed("completed.steps"), value=None), replace(failed("rewards.level"), value=None), unmade)

    text = failure_text(replace(BROKEN, checks=checks), log_lines=["> Task was killed", "  by Ray"])

    assert text.splitlines() == [
        "training failed: host-oom (infra): Task was killed",
        "what to do: Free memory of the host.",
        "run: signal SIGKILL after 11m40s, at step 15 of 15",
        "  | > Task was killed",
        "  |   by Ray",
        "2 of 2 checks fail because the training broke off (see record.json)",
        "log: e2e-runs/test_grpo-1/train.log",
        "repeat: pytest tests/test_cases.py::test_grpo",
    ]
