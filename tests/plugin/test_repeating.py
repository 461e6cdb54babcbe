"""`ascend-e2e repeat`: a run once more from its directory, as it was or with changes, though its case is gone."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from pytest_ascend_e2e.cli import main
from pytest_ascend_e2e.records import RunRecord
from tests.plugin.conftest import Host

CASE = """
@npu_nightly(runner='toy-2', recipe=recipe(steps=8, env={'HF_TOKEN': 'a-secret-of-ours', 'FAKE_TRAINER': 'FAULT'}))
def test_case(run):
    run.check_completed()
    run.check_rewards(minimum=0.1, trend=None, window=3)
"""


def trained(host: Host, fault: str = "") -> Path:
    """Train the case once, remove it, and return its run directory."""
    path = host.cases(CASE.replace("FAULT", fault))
    host.run("--runner", "toy-2")
    path.unlink()
    (directory,) = (host.pytester.path / "runs").iterdir()
    return directory


def repeat(host: Host, directory: Path, *words: str) -> int:
    places = ["--runners-file", str(host.root / "runners.yaml"), "--lock-dir", str(host.root / "locks"), "--run-root", "again"]
    return main(["repeat", str(directory), *places, *words])


def record_in(root: Path) -> tuple[RunRecord, Path]:
    (path,) = root.glob("*/record.json")
    return RunRecord.from_json(path.read_text(), origin=str(path)), path.parent


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "a-secret-of-ours")


def test_a_run_is_repeated_by_its_recorded_command(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    directory = trained(host)
    capsys.readouterr()

    assert repeat(host, directory) == 0

    record, again = record_in(host.pytester.path / "again")
    first, _ = record_in(host.pytester.path / "runs")
    assert record.is_passed
    assert record.last_step == 8
    assert record.changed == (f"repeat of {first.run_id}",)
    assert {check.name for check in record.checks} == {check.name for check in first.checks}
    assert (again / "metrics.jsonl").read_text() == (directory / "metrics.jsonl").read_text()
    old, new = (json.loads((place / "command.json").read_text())["argv"] for place in (directory, again))
    assert [word.replace(directory.name, again.name) for word in old if "ray" not in word] == [
        word.replace(str(again.parent), str(directory.parent)) for word in new if "ray" not in word
    ]
    assert "a-secret-of-ours" not in "".join(path.read_text() for path in again.iterdir() if path.is_file())
    told = capsys.readouterr().out
    assert "checks passed" in told
    assert "elsewhere" not in told


def test_a_red_run_is_red_again_and_says_why(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    directory = trained(host, "nan@4")

    assert repeat(host, directory) == 1

    told = capsys.readouterr().out
    assert told.count("checks failed, first completed.finite") >= 2
    (command,) = {line for line in told.splitlines() if line.startswith("repeat: ascend-e2e repeat ")}
    assert main(shlex.split(command)[2:]) == 1
    assert len(list((host.pytester.path / "again").iterdir())) == 2


def test_the_printed_command_can_be_typed_whatever_its_paths_are_called(
    host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = trained(host, "nan@4")
    monkeypatch.chdir(host.pytester.path)
    Path("-own runners.yaml").symlink_to(host.root / "runners.yaml")
    Path("python").symlink_to(host.root / "python")

    assert repeat(host, directory, "--runners-file=-own runners.yaml", "--python=./python", "--run-root=-again") == 1

    (command,) = {line for line in capsys.readouterr().out.splitlines() if line.startswith("repeat: ascend-e2e repeat ")}
    assert main(shlex.split(command)[2:]) == 1
    assert len(list(Path("-again").iterdir())) == 2


def test_what_only_the_test_can_check_is_told_and_stays_red(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    path = host.cases(CASE.replace("FAULT", "") + "    assert run.metrics['critic/rewards/mean'].max() > 99\n")
    host.run("--runner", "toy-2")
    path.unlink()
    (directory,) = (host.pytester.path / "runs").iterdir()

    assert repeat(host, directory) == 1

    record, _ = record_in(host.pytester.path / "again")
    assert record.is_passed
    assert "not made again, which only its test can: test.body: " in capsys.readouterr().out


def test_a_run_is_repeated_with_changes(host: Host) -> None:
    directory = trained(host)

    assert repeat(host, directory, "--steps", "3", "--set", "actor_rollout_ref.actor.optim.lr=2.0e-6") == 0

    record, again = record_in(host.pytester.path / "again")
    assert record.steps == record.last_step == 3
    assert record.changed[1:] == ("steps=3", "actor_rollout_ref.actor.optim.lr=2.0e-6")
    argv = json.loads((again / "command.json").read_text())["argv"]
    assert [word for word in argv if "actor.optim.lr=" in word] == ["actor_rollout_ref.actor.optim.lr=2.0e-6"]


def test_what_is_not_here_is_told(host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    directory = trained(host)
    (host.root / "models" / "acme" / "tiny").rename(host.root / "moved")

    assert repeat(host, directory) == 2

    told = capsys.readouterr().err
    assert "actor_rollout_ref.model.path=" in told
    assert "is not here; give its place on this machine by --set actor_rollout_ref.model.path=PATH" in told
    monkeypatch.delenv("HF_TOKEN")

    assert repeat(host, directory) == 2

    assert "variable HF_TOKEN holds a secret, which is not written down: set it first" in capsys.readouterr().err
    assert not (host.pytester.path / "again").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--steps", "0"), "--steps: 0 cannot be used: expected a whole number from 1"),
        (("--set", "lr"), "--set: 'lr' cannot be used: expected KEY=VALUE"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(
    tmp_path: Path, words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["repeat", str(tmp_path), *words]) == 2

    assert told in capsys.readouterr().err


def test_a_directory_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repeat", str(tmp_path)]) == 2

    assert "expected the directory of a run" in capsys.readouterr().err
