"""pytest takes an option's value for a place of tests where it cannot know better, and loses its root and its ini file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.conftest import Host

CASE = "@npu_nightly(runner='sim-2', recipe=recipe())\ndef test_fits(run): run.check_completed()\n"


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.sqlite"
    path.touch()
    return path


@pytest.mark.parametrize("has_ini", [True, False])
def test_a_value_that_costs_the_session_its_root_is_refused(host: Host, history: Path, has_ini: bool) -> None:
    host.cases(CASE)
    if not has_ini:
        (host.pytester.path / "tox.ini").unlink()
    listed = ("--collect-only", "--runner", "sim-2")

    apart = host.run(*listed, "--e2e-history", str(history))
    together = host.run(*listed, f"--e2e-history={history}")

    assert apart.ret == pytest.ExitCode.USAGE_ERROR
    assert f"--e2e-history {history}: write --e2e-history={history}, as one word" in apart.stderr.str()
    assert together.ret == pytest.ExitCode.OK
    assert "<Function test_fits>" in together.stdout.str()


def test_where_the_ini_file_is_found_a_value_may_stand_apart(host: Host, history: Path) -> None:
    path = host.cases(CASE)

    result = host.run(str(path), "--collect-only", "--runner", "sim-2", "--e2e-history", str(history))

    assert result.ret == pytest.ExitCode.OK
    assert "<Function test_fits>" in result.stdout.str()


def test_a_path_inside_costs_nothing(host: Host) -> None:
    host.cases(CASE)
    (host.pytester.path / "runs").mkdir()

    result = host.run("--collect-only", "--runner", "sim-2", "--e2e-run-root", "runs")

    assert result.ret == pytest.ExitCode.OK


def test_a_path_in_the_ini_file_is_from_there_wherever_the_session_is_started(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cases(CASE)
    below = host.pytester.mkdir("below")
    monkeypatch.chdir(below)

    result = host.run("..", "--collect-only", "--runner", "sim-2")

    place = host.pytester.path / "runs"
    result.stdout.fnmatch_lines([f"*--e2e-run-root {place} (e2e_run_root in {host.pytester.path / 'tox.ini'})*"])
