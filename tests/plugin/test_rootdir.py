"""pytest takes an option's value for a place of tests where it cannot know better, and loses its ini file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.conftest import Host

CASE = "@npu_nightly(runner='toy-2', recipe=recipe())\ndef test_fits(run): run.check_completed()\n"


def test_a_value_that_costs_the_session_its_ini_file_is_refused(host: Host, tmp_path: Path) -> None:
    host.cases(CASE)
    history = tmp_path / "history.sqlite"
    history.touch()

    apart = host.run("--e2e-plan", "--runner", "toy-2", "--e2e-history", str(history))
    together = host.run("--e2e-plan", "--runner", "toy-2", f"--e2e-history={history}")

    assert apart.ret == pytest.ExitCode.USAGE_ERROR
    told = apart.stderr.str()
    assert f"--e2e-history {history}: pytest takes a value that stands apart and exists for a place of tests" in told
    assert f"did not find {host.pytester.path / 'tox.ini'}; write --e2e-history={history}" in told
    assert together.ret == pytest.ExitCode.OK


def test_where_the_ini_file_is_found_a_value_may_stand_apart(host: Host, tmp_path: Path) -> None:
    path = host.cases(CASE)
    history = tmp_path / "history.sqlite"
    history.touch()

    result = host.run(str(path), "--e2e-plan", "--runner", "toy-2", "--e2e-history", str(history))

    assert result.ret == pytest.ExitCode.OK
    assert "1 planned, 0 cannot work" in result.stdout.str()


def test_a_project_without_an_ini_file_has_none_to_lose(host: Host, tmp_path: Path) -> None:
    host.cases(CASE.replace("toy-2", "sim-2"))
    (host.pytester.path / "tox.ini").unlink()
    (host.pytester.path / "pyproject.toml").write_text("[project]\nname = 'some'\nversion = '1'\n")
    history = tmp_path / "history.sqlite"
    history.touch()

    result = host.run("--collect-only", "--runner", "sim-2", "--e2e-history", str(history))

    assert result.ret == pytest.ExitCode.OK
    assert "<Function test_fits>" in result.stdout.str()
