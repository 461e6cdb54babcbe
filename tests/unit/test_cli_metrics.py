"""The sub-command `metrics`: what it prints, and how it refuses a file."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path

import pytest

from pytest_ascend_e2e.cli import metrics


def run(*words: str) -> tuple[int, str, str]:
    parser = argparse.ArgumentParser()
    metrics.add_parser(parser.add_subparsers())
    stdout, stderr = io.StringIO(), io.StringIO()
    status = metrics.run(parser.parse_args(["metrics", *words]), stdout, stderr)
    return status, stdout.getvalue(), stderr.getvalue()


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_console_log_becomes_json(tmp_path: Path) -> None:
    path = written(tmp_path, "(TaskRunnerV1 pid=5) step:2 - a/b:np.float64(0.5) - c/d:nan - e/f:-inf\n")

    status, out, err = run(path, "--json")

    assert (status, err) == (0, "")
    assert json.loads(out) == {"steps": [{"step": 2, "metrics": {"a/b": 0.5, "c/d": "nan", "e/f": "-inf"}}], "problems": []}


def test_a_junit_file_is_no_log_without_metrics(tmp_path: Path) -> None:
    path = written(tmp_path, "<testsuites/>\n")

    status, out, err = run(path, "--json")

    assert (status, out) == (2, "")
    assert err.startswith(f"{path!r} is the JUnit file of a session; ")


def test_a_jsonl_log_is_told_by_its_first_line(tmp_path: Path) -> None:
    path = written(tmp_path, '\n{"step":1,"data":{"a/b":null}}\n{"step":2,"data":{"a/b":3}}\n')

    _, out, _ = run(path, "--json")

    assert json.loads(out)["steps"] == [{"step": 1, "metrics": {"a/b": "nan"}}, {"step": 2, "metrics": {"a/b": 3.0}}]


def test_a_run_directory_is_read_from_its_metrics_else_from_its_console_log(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step:1 - a/b:1\n")
    from_console = run(str(tmp_path), "--json")
    (tmp_path / "metrics.jsonl").write_text('{"step":1,"data":{"a/b":2}}\n')

    from_metrics = run(str(tmp_path), "--json")

    assert json.loads(from_console[1])["steps"] == [{"step": 1, "metrics": {"a/b": 1.0}}]
    assert json.loads(from_metrics[1])["steps"] == [{"step": 1, "metrics": {"a/b": 2.0}}]


def test_the_table_shows_each_metric_and_the_problems_apart(tmp_path: Path) -> None:
    path = written(tmp_path, "step:1 - a/b:1\nstep:2 - a/b:3 - c/\n")

    status, out, err = run(path)

    assert status == 0
    assert out.splitlines()[0] == "1 metrics at steps 1..2"
    assert out.splitlines()[2].split() == ["a/b", "2", "1", "3", "1", "3", "2"]
    assert err.startswith("problem: line 2")


def test_a_log_without_steps_is_shown_as_such(tmp_path: Path) -> None:
    status, out, err = run(written(tmp_path, "hello\n"))

    assert (status, out) == (0, "0 metrics at steps none\n")
    assert "no step" in err


@pytest.mark.parametrize("name", ["absent.log", "."])
def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path: Path, name: str) -> None:
    status, out, err = run(str(tmp_path / name), "--json")

    assert (status, out) == (2, "")
    assert "cannot be read" in err
    assert len(err.splitlines()) == 1
