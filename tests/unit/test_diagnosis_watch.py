"""The lines after which a run cannot go on, and the run that is over already."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.diagnosis import FatalWatch, is_fatal

FATAL = [
    "(vLLMHttpServer pid=5) ERROR 11-30 10:00:00 [x.py:5] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.",
    "(EngineCore_DP0 pid=5) ERROR 11-30 10:00:00 [core.py:1] EngineCore encountered a fatal error.",
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
    "(EngineCore pid=5) ERROR 11-30 10:00:00 [x.py:1] Worker proc VllmWorker-1 died unexpectedly (exit code: -9)",
    "(raylet) A worker died or was killed while executing a task by an unexpected system error.",
    "\x1b[36m(raylet)\x1b[0m The actor is dead because its worker process has died.",
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    "(raylet) Task was killed due to the node running low on memory.",
    "(raylet) node_manager.cc:3: 1 Workers (tasks / actors) killed due to memory pressure (OOM)",
    "(WorkerDict pid=4) Fatal Python error: Segmentation fault",
    "[2026-05-06 07:08:09] Rank 0 scheduler is dead. Please check if there are relevant logs.",
]
STEP = "(TaskRunner pid=3) step:{n} - training/global_step:{n} - actor/grad_norm:0.1"


@pytest.mark.parametrize("line", FATAL)
def test_lines_after_which_nothing_can_come(line: str) -> None:
    assert is_fatal(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "step:1 - actor/grad_norm:0.1",
        "KeyError: 'x'",
        "WARNING 11-30 10:00:00 [x.py:1] slow",
        "the actor is dead tired",
        "EngineCore ready",
    ],
)
def test_lines_after_which_the_run_goes_on_or_ends_by_itself(line: str) -> None:
    assert is_fatal(line) is None


@pytest.mark.parametrize("line", FATAL)
def test_the_watch_tells_a_fatal_line_before_the_last_step(line: str) -> None:
    watch = FatalWatch(3)
    watch.feed(STEP.format(n=2))

    assert watch.feed(line.encode()) == is_fatal(line)
    assert not watch.is_finished


@pytest.mark.parametrize(
    "last", [STEP.format(n=3), "Final validation metrics: None", "Training Progress: 100%|####| 3/3 [00:09<00:00, 3.0s/it]"]
)
def test_what_dies_after_the_end_of_the_training_is_not_fatal(last: str) -> None:
    watch = FatalWatch(3)
    watch.feed(last)

    assert [watch.feed(line) for line in FATAL] == [None] * len(FATAL)
    assert watch.is_finished


def test_the_steps_are_taken_from_the_log_where_none_are_given() -> None:
    watch = FatalWatch()
    watch.feed("Total training steps: 2")
    watch.feed(STEP.format(n=1))
    before = watch.feed(FATAL[0])
    watch.feed(STEP.format(n=2))

    assert before
    assert watch.feed(FATAL[0]) is None


def test_the_steps_that_were_asked_for_count_more_than_those_of_the_log() -> None:
    watch = FatalWatch(5)
    watch.feed("Total training steps: 2")
    watch.feed(STEP.format(n=2))

    assert watch.feed(FATAL[0])


def test_the_validation_of_the_last_step_does_not_end_the_training() -> None:
    watch = FatalWatch(3)
    watch.feed("step:3 - val-core/gsm8k/acc/mean@1:0.5")

    assert watch.feed(FATAL[0])
