"""The CI of this project's own nightly cases, and the workflow that is made for a suite."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from pytest_ascend_e2e.cli import main
from tests.fakes.tools import run_tool

CASES = Path(__file__).parent.parent / "e2e_npu"
CASE = """
from pytest_ascend_e2e import npu_nightly

@npu_nightly(runner='a3-16', estimate='1h')
def test_first(train): pass

@npu_nightly(runner='a3-16', estimate='1h')
def test_second(train): pass
"""


def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str = CASE) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    path = tmp_path / "test_cases.py"
    path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return path


def test_every_nightly_case_is_in_exactly_one_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["matrix", str(CASES), "--tier", "nightly", "--cases", str(tmp_path / "cases.json")])

    told = capsys.readouterr()
    assert status == 0
    jobs = json.loads(told.out)["include"]
    counts = Counter(name for job in jobs for name in job["cases"].splitlines())
    source = sum(len(re.findall(r"^@npu_nightly\(", path.read_text(), re.MULTILINE)) for path in CASES.glob("test_*.py"))
    listed = json.loads((tmp_path / "cases.json").read_text())["cases"]
    assert len(listed) == source
    assert set(counts.values()) == {1}
    assert set(counts) == {case["case"] for case in listed if not case["off"]}
    assert [case["case"] in told.err for case in listed if case["off"]].count(False) == 0


def test_a_case_that_is_removed_leaves_the_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = suite(tmp_path, monkeypatch)
    assert main(["matrix", "--ids"]) == 0
    assert capsys.readouterr().out.splitlines() == ["test_cases.py::test_first", "test_cases.py::test_second"]

    path.write_text(CASE.replace("def test_second", "def no_longer"))

    assert main(["matrix", "--ids"]) == 0
    assert capsys.readouterr().out.splitlines() == ["test_cases.py::test_first"]


def test_one_case_is_chosen_by_name_and_an_unknown_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(tmp_path, monkeypatch)

    assert main(["matrix", "--only", "test_sec*", "--image", "verl@sha256:0a"]) == 0
    (job,) = json.loads(capsys.readouterr().out)["include"]
    assert (job["cases"], job["image"]) == ("test_cases.py::test_second", "verl@sha256:0a")

    assert main(["matrix", "--only", "test_secon"]) == 2
    assert "no case 'test_secon' in this tier; did you mean 'test_second'?" in capsys.readouterr().err


def test_a_suite_that_cannot_be_collected_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(tmp_path, monkeypatch, CASE.replace("estimate='1h'", "estimate='soon'"))

    assert main(["matrix"]) == 2

    title, *told = capsys.readouterr().err.splitlines()
    assert title == "ascend-e2e matrix: pytest cannot collect the cases (exit status 2):"
    assert [line.partition(" cannot be used")[0] for line in told] == [
        "  ERROR collecting test_cases.py",
        "  @npu_nightly of test_cases.py::test_first estimate='soon'",
    ]


def test_the_workflow_is_valid_and_writing_it_again_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(tmp_path, monkeypatch)
    path = tmp_path / ".github" / "workflows" / "ascend_e2e_nightly.yml"
    words = ["workflow", "test_cases.py", "--install", "python -m pip install --no-deps --editable ."]

    assert main(words) == 0
    text = path.read_text()
    assert main([*words, "--check"]) == 0

    assert path.read_text() == text
    assert "unchanged" in capsys.readouterr().out
    assert "test_first" not in text
    linted = run_tool("actionlint", str(path))
    assert linted.returncode == 0, linted.stdout
    checked = run_tool("check-jsonschema", "--builtin-schema", "vendor.github-workflows", str(path))
    assert checked.returncode == 0, checked.stdout


def test_a_workflow_that_somebody_changed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(tmp_path, monkeypatch)
    (tmp_path / "w.yml").write_text("fail-fast: true\n")

    assert main(["workflow", "--output", "w.yml", "--check"]) == 1

    assert "w.yml is not what these arguments give: run the command of its first line again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--cron", "at night"), "--cron: 'at night' cannot be used: expected five fields"),
        (("--install", "echo ${{ secrets.KEY }}"), "cannot stand in a workflow: expected one line"),
        (("--name", "two\nlines"), "cannot stand in a workflow: expected one line"),
    ],
)
def test_what_cannot_stand_in_a_workflow_is_refused(words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workflow", *words]) == 2

    assert told in capsys.readouterr().err
