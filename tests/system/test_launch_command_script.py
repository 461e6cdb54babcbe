"""`command.sh` repeats a run by hand: same words, same environment, other files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_ascend_e2e.launch import make_ray_home, name_ray_home
from tests.fakes.launching import FakeRun

NASTY = ("it's", 'a "b"', "$HOME `id` $(id)", "back\\slash", "two\nlines", "*", "~", "", "ünïcode", "!x", "a=b c", "-n")


def repeat(run: FakeRun, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", str(run.directory.command_script), *arguments],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_repeat_prints_what_the_run_printed(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, *(f"say={text}" for text in NASTY))
    run.directory.write_command(run.command)
    run.supervisor.run()

    repeated = repeat(run)

    assert repeated.returncode == 0, repeated.stderr
    assert repeated.stdout == run.log
    assert (run.directory.path / "repeat-1" / "train.log").read_text() == run.log


def test_a_repeat_has_the_environment_of_the_run_and_no_other(tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    run = FakeRun(tmp_path, f"show_environment={first}", env={"HCCL_NOTE": "it's $HOME\nand more"})
    run.directory.write_command(run.command)
    run.supervisor.run()
    first.rename(second)

    repeated = repeat(run, env={"RAY_ADDRESS": "10.0.0.1:6379", "here": "x", "number": "7", "repeat_dir": "x"})

    assert repeated.returncode == 0, repeated.stderr
    by_hand, by_us = json.loads(first.read_text()), json.loads(second.read_text())
    differing = {name for name in by_hand.keys() | by_us.keys() if by_hand.get(name) != by_us.get(name)}
    # the tags are for a supervised run; PWD, OLDPWD and _ are bash's
    assert differing - {"PWD", "OLDPWD", "SHLVL", "_"} == {"ASCEND_E2E_RUN_ID", "ASCEND_E2E_OWNER", "VERL_FILE_LOGGER_PATH"}


def test_a_repeat_leaves_the_files_of_the_run_as_they_are(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "say=hello", "step=1")
    run.directory.write_command(run.command)
    run.supervisor.run()
    before = {path.name: path.read_bytes() for path in run.directory.path.iterdir()}

    results = [repeat(run).returncode, repeat(run, "step=2").returncode]

    assert results == [0, 0]
    assert {path.name: path.read_bytes() for path in run.directory.path.iterdir() if path.is_file()} == before
    assert len((run.directory.path / "repeat-1" / "metrics.jsonl").read_bytes().splitlines()) == 1
    assert len((run.directory.path / "repeat-2" / "metrics.jsonl").read_bytes().splitlines()) == 2


def test_a_repeat_writes_into_its_own_directory_where_the_run_wrote_into_its(tmp_path: Path) -> None:
    run = FakeRun(tmp_path)
    path = run.directory.path
    actions = (f"write={path}/checkpoints/step 1", f"say={path}-not-ours", f"say=a {path} b")
    command = run.command.__class__(argv=(*run.command.argv, *actions), env=run.command.env, cwd=path)
    run.directory.write_command(command)

    repeated = repeat(run)

    assert (path / "repeat-1" / "checkpoints" / "step 1").exists()
    assert not (path / "checkpoints").exists()
    assert repeated.stdout == f"{path}-not-ours\na {path}/repeat-1 b\n"


def test_a_repeat_has_a_ray_directory_of_its_own_and_removes_it(tmp_path: Path) -> None:
    home = name_ray_home("test_fake-20261130T150405-0d0d0d")
    make_ray_home(home)
    shutil.rmtree(home)
    run = FakeRun(tmp_path, f"say={home}", f"write={home}/session_1/x")
    run.directory.write_command(run.command, ray_home=home)

    repeated = repeat(run)

    assert repeated.returncode == 0, repeated.stderr
    assert repeated.stdout.startswith("/tmp/e2e-")  # noqa: S108  # where Ray's short directories are
    assert not Path(repeated.stdout.strip()).exists()
    assert not home.exists()


def test_the_exit_status_of_a_repeat_is_the_trainings(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "leave=17")
    run.directory.write_command(run.command)

    assert repeat(run).returncode == 17


@pytest.mark.parametrize("place", ["variable", "setting", "url", "value"])
def test_a_secret_is_not_written_but_asked_for(tmp_path: Path, place: str) -> None:
    secret = "correct-horse-battery"  # noqa: S105  # the subject of the test
    env = {"HF_TOKEN": secret} if place in {"variable", "value"} else {}
    action = {
        "variable": "say=hello",
        "setting": f"trainer.api_key={secret}",
        "url": f"say=https://me:{secret}@host/x",
        "value": f"say=<{secret}>",
    }[place]
    run = FakeRun(tmp_path, action, env=env)
    run.directory.write_command(run.command)

    without = repeat(run)
    given = repeat(run, env={"HF_TOKEN": secret, "SECRET_1": f"me:{secret}" if place == "url" else secret})

    text = "".join(path.read_text() for path in run.directory.path.iterdir() if path.is_file())
    assert secret not in text
    assert without.returncode != 0
    assert "set it first: a secret of the run" in without.stderr
    assert given.returncode == 0, given.stderr
    assert place == "variable" or secret in given.stdout


def test_a_repeat_where_nothing_can_be_written_says_so(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "say=hello")
    run.directory.write_command(run.command)
    refusal = tmp_path / "bin" / "mkdir"  # the tests may run as root, whom no mode of a directory stops
    refusal.parent.mkdir()
    refusal.write_text("#!/bin/sh\nexit 1\n")
    refusal.chmod(0o755)

    repeated = repeat(run, env={"PATH": f"{refusal.parent}:{os.environ['PATH']}"})

    assert repeated.returncode == 2
    assert "cannot be written to; copy this file to a directory of your own" in repeated.stderr
    assert repeated.stdout == ""
