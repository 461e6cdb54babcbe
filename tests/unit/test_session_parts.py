"""The small parts of the use case: which program, which files, a quarantine, and what was composed already."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from pytest_ascend_e2e.errors import E2EError, PreflightError
from pytest_ascend_e2e.launch import Exit, RunDirectory
from pytest_ascend_e2e.metrics import read_jsonl
from pytest_ascend_e2e.preflight import Request
from pytest_ascend_e2e.recipe import FSDP, FSDP2, GRPO, SFT, Recipe, Vllm
from pytest_ascend_e2e.records import Ending
from pytest_ascend_e2e.session import Compositions, quarantine_from_arguments
from pytest_ascend_e2e.session.entry import entry_of
from pytest_ascend_e2e.session.ready_data import ready_files
from pytest_ascend_e2e.session.training import completed_record
from pytest_ascend_e2e.session.versions import image_of
from tests.fakes.run_directories import SOUND

REINFORCEMENT = Recipe(
    algorithm=GRPO(),
    model="a/b",
    dataset="gsm8k",
    engine=FSDP2(),
    rollout=Vllm(n=2),
    train_batch_size=8,
    max_prompt_length=8,
    max_response_length=8,
    steps=1,
)
OFF = {"reason": "leaks", "owner": "ann", "issue": "https://example.org/1", "until": "2027-01-31"}


def supervised(launcher: str) -> SFT:
    return SFT(model="a/b", dataset="gsm8k_sft", engine=FSDP(), steps=1, launcher=launcher)


def test_each_recipe_has_its_program() -> None:
    assert entry_of(REINFORCEMENT, 8) == ("-m", "verl.trainer.main_ppo")
    assert entry_of(supervised("ray"), 8) == ("-m", "verl.trainer.sft_trainer_ray")
    assert entry_of(supervised("torchrun"), 8)[-3:] == ("--nproc_per_node=8", "-m", "verl.trainer.sft_trainer")


def test_ready_data_are_two_files_or_one_for_both(tmp_path: Path) -> None:
    (tmp_path / "pair").mkdir()
    for name in ("pair/train.parquet", "pair/test.parquet", "single.parquet"):
        (tmp_path / name).touch()

    assert ready_files("pair", tmp_path) == (tmp_path / "pair" / "train.parquet", tmp_path / "pair" / "test.parquet")
    assert ready_files("single", tmp_path) == (tmp_path / "single.parquet", tmp_path / "single.parquet")
    assert ready_files("absent", tmp_path) is None
    assert ready_files("long" * 99, tmp_path) is None


def test_a_quarantine_says_why_and_ends_on_its_day() -> None:
    quarantine = quarantine_from_arguments("test_x", (), OFF)

    assert str(quarantine) == "quarantined until 2027-01-31 by ann: leaks (https://example.org/1)"
    assert not quarantine.is_over(dt.date(2027, 1, 31))
    assert quarantine.is_over(dt.date(2027, 2, 1))


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {**OFF, "owner": ""}, "@quarantine of test_x owner='': a case that is off says so: give a text"),
        ((), {**OFF, "until": "soon"}, "@quarantine of test_x until='soon': expected the last day"),
        ((), {**OFF, "till": "x"}, "@quarantine of test_x has no argument 'till'"),
        (("leaks",), OFF, "@quarantine of test_x takes no positional argument, got 'leaks'"),
        ((), {}, "@quarantine of test_x reason=None"),
    ],
)
def test_a_quarantine_that_does_not_say_all_is_refused(args: tuple[object, ...], kwargs: dict[str, object], text: str) -> None:
    with pytest.raises(E2EError) as caught:
        quarantine_from_arguments("test_x", args, kwargs)

    assert any(problem.startswith(text) for problem in caught.value.problems), caught.value.problems


def composing(tmp_path: Path, entries: int) -> str:
    """Return an interpreter that counts its starts and answers for so many cases."""
    answer = json.dumps({"verl": "1", "entries": [{"config": {"n": n}, "problems": []} for n in range(entries)]})
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\ncat > /dev/null\necho start >> {tmp_path}/starts\necho '{answer}'\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def starts(tmp_path: Path) -> int:
    return len((tmp_path / "starts").read_text(encoding="utf-8").splitlines())


def test_many_configurations_are_composed_by_one_start_and_each_once(tmp_path: Path) -> None:
    requests = [Request(config_name="ppo_trainer", arguments=(f"a={n}",)) for n in range(3)]
    compositions = Compositions(composing(tmp_path, 3))

    compositions.prepare([*requests, requests[0]])
    found = [compositions.of(request).config for request in requests]

    assert found == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert starts(tmp_path) == 1


def test_a_child_that_failed_is_not_started_again_and_again(tmp_path: Path) -> None:
    compositions = Compositions(composing(tmp_path, 5))
    request = Request(config_name="ppo_trainer", arguments=("a=1",))

    for _ in range(2):
        with pytest.raises(PreflightError, match="5 answers to 1 cases"):
            compositions.of(request)

    assert starts(tmp_path) == 1


def test_the_image_is_told_by_ci_or_by_the_container(tmp_path: Path) -> None:
    described = tmp_path / ".containerenv"
    described.write_text('engine="podman-4.9"\nimage="quay.io/ascend/verl:8.5.1-a3"\nimageid="0123"\n')

    assert image_of({"CI_JOB_IMAGE": "swr/verl:8.6"}, described) == "swr/verl:8.6"
    assert image_of({}, described) == "quay.io/ascend/verl:8.5.1-a3"
    assert image_of({"CI_JOB_IMAGE": " "}, tmp_path / "absent") == ""


def test_processes_of_one_session_share_what_one_of_them_composed(tmp_path: Path) -> None:
    requests = [Request(config_name="ppo_trainer", arguments=(f"a={n}",)) for n in range(2)]
    python, shared = composing(tmp_path, 2), tmp_path / "shared"
    shared.mkdir()
    Compositions(python, shared=shared).prepare(requests)

    found = [Compositions(python, shared=shared).of(request) for request in requests]

    assert [(one.is_checked, one.verl, one.config, one.problems) for one in found] == [
        (True, "1", {"n": 0}, ()),
        (True, "1", {"n": 1}, ()),
    ]
    assert starts(tmp_path) == 1


def test_a_failed_child_is_shared_too(tmp_path: Path) -> None:
    python, request = composing(tmp_path, 5), Request(config_name="ppo_trainer", arguments=("a=1",))

    for _ in range(2):
        with pytest.raises(PreflightError, match="5 answers to 1 cases"):
            Compositions(python, shared=tmp_path).of(request)

    assert starts(tmp_path) == 1


def test_processes_that_a_training_left_are_told_once_and_make_no_run_red(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.log.write_text("")
    left = Exit(
        ending=Ending.EXITED, exit_status=0, signal=None, end_reason="", duration_s=1.0,
        leftovers=("python[7]", "raylet[8]", "python[9]"), stuck=("python[9]",),
    )  # fmt: skip

    record = completed_record(SOUND, directory, read_jsonl(()), left)

    assert record.problems == [
        "still there after the training's end, and ended by the session: python[7], raylet[8]; this alone makes no run red",
        "still there after the training's end, and SIGKILL did not end them: python[9]; look at the host",
    ]
    assert record.is_passed
