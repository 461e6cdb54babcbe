"""The name of a run, and the files of its directory."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime, timezone
from pathlib import Path

import pytest

from pytest_ascend_e2e.errors import LaunchError
from pytest_ascend_e2e.launch import Command, RunDirectory, make_ray_home, name_ray_home, new_run_id, ray_overrides
from pytest_ascend_e2e.launch.ray_home import SOCKET_PATH_LIMIT

NOW = datetime(2026, 11, 30, 15, 4, 5, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("tests/e2e_npu/test_grpo.py::test_grpo_qwen3_8b", "test_grpo_qwen3_8b-20261130T150405-9f3a1c"),
        ("test_x.py::TestY::test_grpo[a3-16 / tp=2]", "test_grpo_a3_16_tp_2-20261130T150405-9f3a1c"),
        ("test_x.py::test_grpo[a::b]", "test_grpo_a_b-20261130T150405-9f3a1c"),
        ("::///..", "run-20261130T150405-9f3a1c"),
        ("t.py::test_" + "x" * 300, "test_" + "x" * 43 + "-20261130T150405-9f3a1c"),
    ],
)
def test_a_run_is_named_after_case_time_and_token(case: str, expected: str) -> None:
    assert new_run_id(case, now=NOW, token="9f3a1c") == expected  # noqa: S106  # a random name, no secret


def test_a_token_that_is_no_file_name_is_refused() -> None:
    with pytest.raises(ValueError, match="expected letters and digits"):
        new_run_id("test_x", now=NOW, token="../x")  # noqa: S106  # as above


def test_parents_of_a_run_directory_are_made(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "a" / "b" / "run", env={})

    assert directory.path.is_dir()


def test_a_run_directory_is_used_once(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="is there already; each run needs one of its own"):
        RunDirectory.create(tmp_path, env={})


def test_a_run_directory_that_cannot_be_made_is_a_launch_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(LaunchError, match=r"cannot be made: .*choose a directory you can write to"):
        RunDirectory.create(tmp_path / "file" / "run", env={})


def test_paths_of_a_run_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    directory = RunDirectory.create(Path("runs/one"), env={})

    path = tmp_path / "runs" / "one"
    assert directory.variables == {
        "VERL_FILE_LOGGER_PATH": str(path / "metrics.jsonl"),
        "ASCEND_PROCESS_LOG_PATH": str(path / "device-logs"),
    }


def test_the_environment_is_written_without_secrets(tmp_path: Path) -> None:
    env = {"HF_TOKEN": "correct-horse", "HF_HOME": "/data", "HCCL_NOTE": "as correct-horse"}
    directory = RunDirectory.create(tmp_path / "run", env=env)

    directory.write_command(Command(argv=("true",), env=env, cwd=tmp_path))

    assert json.loads(directory.environment.read_text()) == {
        "schema": 1,
        "cwd": str(tmp_path),
        "variables": {"HF_TOKEN": "<redacted>", "HF_HOME": "/data", "HCCL_NOTE": "as <redacted>"},
    }


def test_the_script_can_be_executed(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run", env={})

    directory.write_command(Command(argv=("true",), env={}, cwd=tmp_path))

    assert os.access(directory.command_script, os.X_OK)


def test_a_record_is_replaced_whole_and_without_secrets(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run", env={"HF_TOKEN": "correct-horse"})

    directory.write_record('{"line": "old"}')
    directory.write_record('{"line": "with correct-horse"}')

    assert directory.record.read_text() == '{"line": "with <redacted>"}'
    assert [path.name for path in directory.path.iterdir()] == ["record.json"]


def test_a_file_that_cannot_be_written_is_a_launch_error() -> None:
    directory = RunDirectory(Path("/dev/full"))

    with pytest.raises(LaunchError, match=r"config\.yaml' cannot be written: .*see that its disk has space"):
        directory.write_config("x: 1\n")


def test_a_disk_that_is_full_is_a_launch_error_and_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = RunDirectory.create(tmp_path / "run", env={})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(LaunchError, match="No space left on device"):
        directory.write_config("x: 1\n")
    assert list(directory.path.iterdir()) == []


def test_rays_directory_is_short_private_and_named_after_the_run() -> None:
    home = name_ray_home(new_run_id("test_x", now=NOW, token="9f3a1c"))  # noqa: S106  # as above
    assert not home.exists()

    make_ray_home(home)

    mode = home.stat().st_mode & 0o777
    shutil.rmtree(home)
    assert home.name.startswith("e2e-9f3a1c-")
    assert mode == 0o700
    assert len(str(home)) + len("/session_2026-11-30_15-04-05_123456_4194304/sockets/plasma_store") <= SOCKET_PATH_LIMIT


def test_a_root_too_long_for_rays_sockets_is_refused(tmp_path: Path) -> None:
    root = tmp_path / ("x" * 60)
    root.mkdir()

    with pytest.raises(LaunchError, match="107 are possible; choose a shorter directory"):
        name_ray_home("test_x-20261130T150405-9f3a1c", root=root)
    assert list(root.iterdir()) == []


def test_a_root_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="cannot take Ray's directory"):
        name_ray_home("test_x-20261130T150405-9f3a1c", root=tmp_path / "none")


def test_a_directory_of_ray_that_cannot_be_made_is_an_error_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()

    with pytest.raises(LaunchError, match=r"Ray's directory cannot be made: .*File exists"):
        make_ray_home(tmp_path / "taken")


def test_ray_gets_its_own_directory_and_no_dashboard_and_no_port() -> None:
    overrides = ray_overrides(Path("/tmp/e2e-x"))  # noqa: S108  # a name only

    assert overrides == {"ray_kwargs": {"ray_init": {"+_temp_dir": "/tmp/e2e-x", "+include_dashboard": False}}}  # noqa: S108  # as above
