"""The help of `ascend-e2e` teaches, and its shell completion is made from the same parser."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ascend_e2e.cli import COMMANDS, build_parser, main
from pytest_ascend_e2e.cli.examples import EXAMPLES

BASH = shutil.which("bash") or "/bin/bash"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_ends_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])

    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert "examples:\n  ascend-e2e " in shown, f"write some into pytest_ascend_e2e/cli/examples.py for {command}"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_describes_it_and_its_exit_statuses(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = build_parser([command])
    with pytest.raises(SystemExit):
        parser.parse_args([command, "--help"])

    _, description, *_, statuses = capsys.readouterr().out.split("\n\n")
    assert re.fullmatch(r"[A-Z].+\.", description, re.DOTALL)
    assert statuses.startswith("exit status:\n  0  "), f"write them into pytest_ascend_e2e/cli/statuses.py for {command}"
    assert "\n  2  " in statuses


def test_an_action_of_a_command_tells_the_exit_statuses_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["baseline", "record", "--help"])

    assert "\n  2  wrong arguments, or runs that are refused: nothing is written\n" in capsys.readouterr().out


@pytest.mark.parametrize("words", [words for examples in EXAMPLES.values() for words, _ in examples])
def test_every_example_is_what_the_parser_takes(words: str) -> None:
    parsed = build_parser().parse_args(shlex.split(words.partition(" > ")[0]))

    assert parsed.command == shlex.split(words)[0]


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    shown = capsys.readouterr().out
    assert all(f"\n    {command}" in shown for command in COMMANDS)


@pytest.mark.skipif(importlib.util.find_spec("shtab") is None, reason="needs shtab to make completions with")
def test_bash_completes_commands_options_and_choices(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out)

    def completed(*words: str) -> set[str]:
        code = f"""
            source {script}
            COMP_WORDS=(ascend-e2e {shlex.join(words)}) COMP_CWORD={len(words)}
            read -ra registered < <(complete -p ascend-e2e)
            for i in "${{!registered[@]}}"; do [[ ${{registered[i]}} == -F ]] && ${{registered[i + 1]}} ascend-e2e; done
            echo "${{COMPREPLY[@]}}"
        """
        done = subprocess.run([BASH, "-c", code], capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    assert set(COMMANDS) <= completed("")
    assert completed("new") == {"new-case"}
    assert completed("judge", "--base") == {"--baselines"}


def test_without_shtab_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)

    status = main(["completion", "bash"])

    assert status == 2
    assert capsys.readouterr().err == (
        "ascend-e2e completion: the package shtab is not installed: pip install shtab, here or where you make the script\n"
    )
