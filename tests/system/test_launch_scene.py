"""What is kept of a run that is given up: stacks and devices, in bounded time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_ascend_e2e.launch import Command, RunDirectory
from pytest_ascend_e2e.launch.processes import Process, read_process
from pytest_ascend_e2e.launch.scene import keep_scene
from pytest_ascend_e2e.records import Ending
from tests.fakes.launching import FakeRun, limits, stranger, wait_until


@pytest.fixture
def sleeper() -> Iterator[Process]:
    process = stranger()
    assert wait_until(lambda: "State:\tS" in Path(f"/proc/{process.pid}/status").read_text())
    found = read_process(process.pid)
    assert found is not None
    yield found
    process.kill()
    process.wait()


class Scene:
    """A run directory, and a directory of tools that stands first on the PATH of the run."""

    def __init__(self, root: Path) -> None:
        self.tools = root / "bin"
        self.tools.mkdir()
        self.directory = RunDirectory.create(root / "run", env={})
        self.command = Command(argv=(str(self.tools / "python"), "-m", "verl"), env={"PATH": "/usr/bin:/bin"}, cwd=root)

    def tool(self, name: str, script: str) -> None:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def keep(self, *processes: Process, limit_s: float = 20.0) -> str:
        keep_scene(self.directory, processes, command=self.command, limit_s=limit_s)
        return self.directory.stacks.read_text()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_the_stack_of_a_python_process_is_that_of_py_spy(scene: Scene, sleeper: Process) -> None:
    scene.tool("py-spy", 'echo "Thread 1 of $*: wait_for_rollouts (trainer.py:7)"')

    text = scene.keep(sleeper)

    assert f"== {sleeper} {sys.executable} -S -c import time" in text
    assert f"Thread 1 of dump --pid {sleeper.pid}: wait_for_rollouts (trainer.py:7)" in text
    assert "State: S" in text


def test_without_py_spy_the_kernel_speaks_and_the_way_out_is_told(scene: Scene, sleeper: Process) -> None:
    text = scene.keep(sleeper)

    assert "State: S" in text
    assert "py-spy is neither beside the training's Python nor on PATH (pip install py-spy)" in text


def test_what_py_spy_complains_of_is_kept(scene: Scene, sleeper: Process) -> None:
    scene.tool("py-spy", "echo 'Permission Denied: try again with SYS_PTRACE' >&2; exit 1")

    assert "no Python stack: py-spy: Permission Denied: try again with SYS_PTRACE" in scene.keep(sleeper)


def test_a_tool_that_hangs_costs_no_more_than_the_limit(scene: Scene, sleeper: Process) -> None:
    scene.tool("py-spy", "exec sleep 60")
    scene.tool("npu-smi", "echo '| NPU 0 |'; exec sleep 60")
    began = time.monotonic()

    text = scene.keep(sleeper, limit_s=0.5)

    assert time.monotonic() - began < 10
    assert "py-spy did not end in time" in text or "not told within the 0.5s" in text
    assert "npu-smi did not end within 0.5s" in scene.directory.npu_smi.read_text()


def test_the_devices_are_kept_as_npu_smi_shows_them(scene: Scene) -> None:
    scene.tool("npu-smi", 'echo "| NPU 0 | $1 |"')

    scene.keep()

    assert scene.directory.npu_smi.read_text() == "| NPU 0 | info |\n"


def test_a_host_without_npus_has_no_file_of_them(scene: Scene) -> None:
    scene.keep()

    assert not scene.directory.npu_smi.exists()


def test_a_process_that_has_gone_meanwhile_is_no_error(scene: Scene) -> None:
    done = subprocess.Popen(["/bin/true"])
    done.wait()

    text = scene.keep(Process(pid=done.pid, started=1, parent=1, session=1, name="true"))

    assert "gone" in text


@pytest.mark.skipif(
    shutil.which("py-spy", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))) is None,
    reason="needs py-spy",
)
def test_a_missed_deadline_keeps_the_stacks_of_all_processes_of_the_run(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "daemon=deaf", "step=1", "hang", limits=limits(step_s=0.2, scene_s=60.0))

    ended = run.supervisor.run()

    text = run.directory.stacks.read_text()
    assert ended.ending is Ending.DEADLINE
    assert re.search(r"^ +hang \(.*trainer\.py:\d+\)$", text, re.MULTILINE)
    assert text.count("\n== ") >= 2  # the trainer and its daemon


def test_a_clean_run_keeps_no_scene(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "step=1", limits=limits(scene_s=5.0))

    run.supervisor.run()

    assert not run.directory.stacks.exists()


def test_a_run_that_goes_on_after_a_fatal_line_has_the_shorter_grace(tmp_path: Path) -> None:
    short = limits(grace_s=300.0, fatal_grace_s=0.2)
    run = FakeRun(tmp_path, "ignore_term", "say=dead", "hang", is_fatal=lambda line: line if line == "dead" else None, limits=short)

    ended = run.supervisor.run()

    assert (ended.ending, ended.signal) == (Ending.FATAL_LINE, "SIGKILL")


def test_a_fatal_line_keeps_the_scene_before_the_training_is_ended(tmp_path: Path) -> None:
    run = FakeRun(tmp_path, "say=dead", "hang", is_fatal=lambda line: line if line == "dead" else None, limits=limits(scene_s=60.0))

    ended = run.supervisor.run()

    assert ended.ending is Ending.FATAL_LINE
    assert "trainer.py say=dead hang" in run.directory.stacks.read_text()
