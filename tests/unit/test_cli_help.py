"""The help of `ascend-e2e` teaches, and its shell completion is made from the same parser."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ascend_e2e.cli import COMMANDS, build_parser, main
from pytest_ascend_e2e.cli.examples import EXAMPLES
from pytest_ascend_e2e.deadline import Deadline

BASH = shutil.which("bash") or "/bin/bash"


RC = r"""
. ./script
PS1='ready> '
bind 'set enable-bracketed-paste off'
bind -x '"\C-t": printf %s "$READLINE_LINE" > line; kill -9 $$'
"""


def typed_into_bash(keys: str, directory: Path) -> str:
    """Return the line that stands in an interactive bash after these keys; it has read `script` in this directory."""
    (directory / "rc").write_text(RC)
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "dumb", "INPUTRC": "/dev/null"}
    words = [BASH, "--noprofile", "--rcfile", "rc", "-i"]
    with subprocess.Popen(
        words, cwd=directory, env=environ, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as bash:
        os.close(theirs)
        deadline = Deadline.after(20.0, name="bash")
        shown = b""
        while bash.poll() is None and not deadline.is_over():
            if select.select([ours], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):  # how a terminal says that nobody is there any more
                    shown += os.read(ours, 4096)
            if shown.endswith(b"ready> "):
                os.write(ours, f"{keys}\x14".encode())
        os.close(ours)
        bash.kill()
    return (directory / "line").read_text()


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


@pytest.mark.parametrize("words", [("matrix", "--timeout", "soon"), ("repeat", "RUN", "--lease-timeout", "0")])
def test_a_duration_that_is_none_is_told_with_what_is_one(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)

    assert ended.value.code == 2
    assert f"{words[-1]!r} cannot be used: expected a positive duration such as 90, 15m or 2h" in capsys.readouterr().err


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


@pytest.mark.skipif(importlib.util.find_spec("shtab") is None, reason="needs shtab to make completions with")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("matrix --runners-file my", "matrix --runners-file my\\ dir/"),
        ("matrix --runners-file my\\ dir/", "matrix --runners-file my\\ dir/a\\ b.yaml "),
        ("metrics 'my dir/a", "metrics 'my dir/a b.yaml' "),
        ("devices --from=pl", "devices --from=plain.txt "),
        ("preflight te", "preflight tests/"),
        ("new-case pl", "new-case plain.txt "),
        ("matrix --runners-file my\\ dir/a\\ b.yaml --tie", "matrix --runners-file my\\ dir/a\\ b.yaml --tier "),
    ],
)
def test_bash_completes_paths_with_spaces_as_they_must_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: str, completed: str
) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "my dir").mkdir()
    (tmp_path / "tests").mkdir()
    for name in ("my dir/a b.yaml", "plain.txt"):
        (tmp_path / name).touch()

    shown = typed_into_bash(f"ascend-e2e {typed}\t", tmp_path)

    assert shown == f"ascend-e2e {completed}"


@pytest.mark.skipif(importlib.util.find_spec("shtab") is None, reason="needs shtab to make completions with")
def test_fish_completes_paths_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert any("-l runners-file -rF -d" in line for line in lines)
    assert any("'_shtab_ascend_e2e_using preflight; " in line and " -rF -d" in line for line in lines)
    assert not any("__fish_complete_path" in line for line in lines)


@pytest.mark.skipif(importlib.util.find_spec("shtab") is None, reason="needs shtab to make completions with")
def test_a_shell_that_shtab_does_not_know_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("shtab.SUPPORTED_SHELLS", ["bash", "zsh", "tcsh"])

    assert main(["completion", "fish"]) == 2

    assert "knows no fish: pip install --upgrade shtab" in capsys.readouterr().err


def test_without_shtab_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)

    status = main(["completion", "bash"])

    assert status == 2
    assert capsys.readouterr().err == (
        "ascend-e2e completion: the package shtab is not installed: pip install shtab, here or where you make the script\n"
    )
