"""What a run left beside its record: read as far as it is there, and compared without what belongs to the one run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_ascend_e2e.records import RunRecord
from pytest_ascend_e2e.session import read_configuration, read_evidence, read_record
from tests.fakes.run_directories import write_run


def record_in(directory: Path) -> RunRecord:
    (directory / "train.log").write_text("one\ntwo\n")
    (directory / "environment.json").write_text(json.dumps({"schema": 1, "variables": {"HOME": "/root", "N": str(directory)}}))
    return read_record(directory)


def test_all_that_a_run_left_is_read(tmp_path: Path) -> None:
    evidence = read_evidence(record_in(write_run(tmp_path, 1)))

    assert evidence.missing == evidence.configuration.missing == ()
    assert evidence.metrics is not None
    assert len(evidence.metrics.steps) == 15
    assert evidence.log is not None
    assert evidence.log.total == 2
    assert evidence.configuration.keys is not None
    assert evidence.configuration.keys["actor_rollout_ref.actor.optim.lr"] == "1e-06"
    assert evidence.configuration.variables == {"HOME": "/root", "N": "RUN_DIR"}


def test_what_belongs_to_one_run_is_named_alike_in_all(tmp_path: Path) -> None:
    directory = write_run(tmp_path, 1, run_id="test_grpo-20261130T195605-44e526")
    record = record_in(directory)
    config = "a: /runs/test_grpo-20261130T195605-44e526/out\nb: /scratch/e2e-44e526-uyzhqbqy\nc: [1, x]\nd: {}\n"
    (directory / "config.yaml").write_text(config)

    keys = read_configuration(record).keys

    assert keys == {"a": "RUN_DIR/out", "b": "RAY_DIR", "c": '[1, "x"]', "d": "{}"}


@pytest.mark.parametrize("name", ["metrics.jsonl", "train.log", "config.yaml", "environment.json"])
def test_a_file_that_is_missing_is_named_and_hides_nothing_else(tmp_path: Path, name: str) -> None:
    directory = write_run(tmp_path, 1)
    record = record_in(directory)
    (directory / name).unlink()
    if name == "metrics.jsonl":
        (directory / "train.log").unlink()

    evidence = read_evidence(record)

    missing = [*evidence.missing, *evidence.configuration.missing]
    assert any(name in text for text in missing)
    assert len(missing) == (2 if name == "metrics.jsonl" else 1)


@pytest.mark.parametrize("name", ["config.yaml", "environment.json"])
@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_file_that_is_broken_is_named(tmp_path: Path, name: str, text: str) -> None:
    directory = write_run(tmp_path, 1)
    record = record_in(directory)
    (directory / name).write_text(text)

    (said,) = read_configuration(record).missing

    assert "not readable" in said


def test_a_log_leaves_its_directory_without_what_looks_like_a_secret(tmp_path: Path) -> None:
    directory = write_run(tmp_path, 1)
    record = record_in(directory)
    (directory / "train.log").write_text("fetching https://me:hunter2@example.org/model\n")

    log = read_evidence(record).log

    assert log is not None
    assert log.lines[0].text == "fetching https://<redacted>@example.org/model"
