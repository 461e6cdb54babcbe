"""`ascend-e2e baseline`: what it records, what it refuses, and what a reviewer sees."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest
import yaml

from pytest_ascend_e2e.cli import baseline, main
from pytest_ascend_e2e.errors import BaselineError
from pytest_ascend_e2e.records import Check, Ending, Verdict
from pytest_ascend_e2e.session import METRICS, published_cases, read_baselines, read_run, record_baseline, write_baselines
from pytest_ascend_e2e.verdict import check_baseline
from tests.fakes.logged_run import logged_run
from tests.fakes.run_directories import PASSED, write_run

CASE = "tests/test_cases.py::test_grpo"


def run(*words: object) -> str:
    parser = argparse.ArgumentParser()
    baseline.add_parser(parser.add_subparsers())
    stdout = io.StringIO()
    assert baseline.run(parser.parse_args(["baseline", *map(str, words)]), stdout, io.StringIO()) == 0
    return stdout.getvalue()


def ten(tmp_path: Path, **changed: object) -> list[Path]:
    return [write_run(tmp_path, number, **changed) for number in range(1, 11)]  # type: ignore[arg-type]  # any field


def test_two_cases_whose_parameters_end_alike_have_a_baseline_each(tmp_path: Path) -> None:
    file = tmp_path / "baselines.yaml"
    held = record_baseline([read_run(path) for path in ten(tmp_path)])

    write_baselines(file, f"{CASE}[a::b]", "a3-4", held)

    assert read_baselines(file, f"{CASE}[a::b]", "a3-4").keys() == held.keys()
    assert read_baselines(file, f"{CASE}[c::b]", "a3-4") == {}


def test_ten_sound_runs_become_a_baseline_that_a_further_run_keeps(tmp_path: Path) -> None:
    file = tmp_path / "baselines.yaml"

    run("record", *ten(tmp_path), "--file", file, "--image", "ci:1", "--reason", "first one")

    held = read_baselines(file, CASE, "a3-4")
    assert set(held) == set(METRICS)
    throughput = held["perf/throughput"]
    assert (throughput.runs, throughput.commit, throughput.device, throughput.date) == (
        10,
        "0a1b2c3d4e5f",
        "Ascend910_93",
        "2026-11-30",
    )
    assert (throughput.image, throughput.reason, len(throughput.run_ids)) == ("ci:1", "first one", 10)
    assert throughput.versions == {"verl": "0.9.1", "vllm": "0.11.0"}
    assert throughput.false_alarms == pytest.approx(0.002 / 5)
    another = read_run(write_run(tmp_path / "more", 77))
    assert not any(check.is_failed for check in check_baseline(another.metrics, held, device="Ascend910_93"))


def test_the_image_is_that_of_the_records(tmp_path: Path) -> None:
    file = tmp_path / "baselines.yaml"

    run("record", *ten(tmp_path, image="swr/verl:8.5.1"), "--file", file)

    held = read_baselines(file, CASE, "a3-4")["perf/throughput"]
    assert held.image == "swr/verl:8.5.1"
    assert "image swr/verl:8.5.1 -> swr/verl:8.6" in held.changes({**held.versions, "image": "swr/verl:8.6"})
    assert held.changes(held.versions) == ()


def test_a_ceiling_is_kept_when_a_baseline_is_recorded_anew(tmp_path: Path) -> None:
    file = tmp_path / "baselines.yaml"
    memory = "actor/perf/max_memory_allocated_gb"
    run("record", *ten(tmp_path), "--file", file, "--ceiling", f"{memory}=60")

    run("record", *ten(tmp_path / "later"), "--file", file)

    held = read_baselines(file, CASE, "a3-4")
    assert {key: baseline.ceiling for key, baseline in held.items() if baseline.ceiling is not None} == {memory: 60}
    with pytest.raises(BaselineError, match="ceiling of perf/mfu/actor: it is not among the metrics"):
        run("record", *ten(tmp_path / "more"), "--file", file, "--ceiling", "perf/mfu/actor=0.2")


def test_a_slower_run_fails_against_it(tmp_path: Path) -> None:
    file = tmp_path / "baselines.yaml"
    run("record", *ten(tmp_path), "--file", file)
    rows = {step: {**row, "perf/throughput": row["perf/throughput"] * 0.9} for step, row in logged_run(15, seed=9).items()}

    failed = [check.name for check in check_baseline(read_run(write_run(tmp_path / "more", 9, rows=rows)).metrics,
                                                     read_baselines(file, CASE, "a3-4")) if check.is_failed]  # fmt: skip

    assert failed == ["baseline.perf/throughput"]


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"exit_status": 1, "end_reason": "exit status 1"}, "test_grpo-3 failed (exit status 1)"),
        ({"ending": Ending.DEADLINE, "exit_status": None, "end_reason": "deadline"}, "test_grpo-3 failed (deadline)"),
        ({"checks": (PASSED, Check(name="rewards.level", verdict=Verdict.FAILED, message="low"))}, "failed (rewards.level)"),
        ({"checks": ()}, "never judged"),
        ({"is_dirty": True}, "a tree with changes"),
        ({"commit": ""}, "has no commit"),
        ({"commit": "ffff"}, "different commits: '0a1b2c3d4e5f'; 'ffff'"),
        ({"versions": {"verl": "0.9.2", "vllm": "0.11.0"}}, "different versions"),
        ({"device": "Ascend910B3"}, "different devices"),
        ({"device": ""}, "has no device"),
        ({"image": "swr/verl:8.5.1"}, "different images: ''; 'swr/verl:8.5.1'"),
        ({"runner": "a3-8"}, "different runners"),
        ({"case": "tests/test_cases.py::test_other"}, "different cases"),
        ({"layout": "dp 2"}, "different layouts"),
        ({"rows": {}}, "perf/throughput: the run has no metrics"),
    ],
)
def test_runs_that_prove_nothing_are_refused(tmp_path: Path, changed: dict[str, object], text: str) -> None:
    file = tmp_path / "baselines.yaml"
    runs = [write_run(tmp_path, number, **(changed if number == 3 else {})) for number in range(1, 11)]  # type: ignore[arg-type]  # any field

    with pytest.raises(BaselineError) as caught:
        run("record", *runs, "--file", file)

    assert text in str(caught.value)
    assert not file.exists()


def test_too_few_runs_and_a_run_given_twice_are_refused(tmp_path: Path) -> None:
    runs = ten(tmp_path)

    with pytest.raises(BaselineError, match="9 runs are too few"):
        run("record", *runs[:9], "--file", tmp_path / "b.yaml")
    with pytest.raises(BaselineError, match="given twice"):
        run("record", *runs, runs[0], "--file", tmp_path / "b.yaml")
    with pytest.raises(BaselineError, match="2 runs are too few: a baseline is asked to rest on 3"):
        run("record", *runs[:2], "--fewest", 1, "--file", tmp_path / "b.yaml")


def test_a_run_that_failed_only_for_want_of_a_baseline_counts(tmp_path: Path) -> None:
    wanting = Check(name="throughput.no-limit", verdict=Verdict.FAILED, message="nothing limits this run")

    assert "written" in run("record", *ten(tmp_path, checks=(PASSED, wanting)), "--file", tmp_path / "b.yaml")


def test_the_refusal_is_one_line_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["baseline", "record", str(write_run(tmp_path, 1, is_dirty=True)), "--file", str(tmp_path / "b.yaml")])

    err = capsys.readouterr().err
    assert status == 2
    assert len(err.splitlines()) == 1
    assert "too few" in err
    assert "a tree with changes" in err
    assert "Traceback" not in err


def test_the_table_shows_old_and_new_with_sign_and_a_stale_baseline(tmp_path: Path) -> None:
    file = tmp_path / "baselines.yaml"
    run("record", *ten(tmp_path), "--file", file)
    faster = [
        write_run(
            tmp_path / "faster", number,
            rows={step: {**row, "perf/throughput": 1.3 * row["perf/throughput"], "timing_s/step": 1.2 * row["timing_s/step"]}
                  for step, row in logged_run(15, seed=number).items()},
        ) for number in range(1, 11)
    ]  # fmt: skip

    before = file.read_text()
    out = run("record", *faster, "--file", file, "--dry-run")

    lines = {line.split()[0]: line for line in out.splitlines()}
    assert "+30.0%" in lines["perf/throughput"]
    assert "better: the old one is stale" in lines["perf/throughput"]
    assert "+20.0%" in lines["timing_s/step"]
    assert "worse" in lines["timing_s/step"]
    assert "within the tolerance" in lines["actor/perf/max_memory_allocated_gb"]
    assert file.read_text() == before


def test_other_cases_and_runners_of_the_file_stay(tmp_path: Path) -> None:
    file = tmp_path / "baselines.yaml"
    run("record", *ten(tmp_path), "--file", file)
    run("record", *ten(tmp_path / "b", runner="a3-8"), "--file", file, "--metric", "perf/throughput")
    run("record", *ten(tmp_path / "c", case="tests/test_cases.py::test_other"), "--file", file)

    cases = yaml.safe_load(file.read_text())["cases"]
    assert {name: sorted(runners) for name, runners in cases.items()} == {"test_grpo": ["a3-4", "a3-8"], "test_other": ["a3-4"]}
    assert set(cases["test_grpo"]["a3-8"]["metrics"]) == {"perf/throughput"}


def test_the_file_stands_beside_the_case_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_cases.py").touch()
    runs = ten(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)

    run("record", *runs)

    assert (tmp_path / "tests" / "baselines.yaml").is_file()
    monkeypatch.chdir(tmp_path / "runs")
    with pytest.raises(BaselineError, match="give --file"):
        run("record", *runs)


def test_the_six_published_cases_are_shown_with_their_five_figures() -> None:
    out = run("published")

    assert len(published_cases()) == 6
    assert all(set(case.values) == set(METRICS) for case in published_cases())
    (line,) = [line for line in out.splitlines() if line.startswith("vl-8b")]
    assert "164.2" in line
    assert "45.43" in line


def test_a_published_case_is_imported_as_what_it_is_and_judges(tmp_path: Path) -> None:
    file = tmp_path / "baselines.yaml"

    run("published", "gspo-30b", "--case", "test_gspo_qwen3_30b_megatron_vllm", "--file", file)

    held = read_baselines(file, "test_gspo_qwen3_30b_megatron_vllm", "a3-16")
    memory = held["actor/perf/max_memory_allocated_gb"]
    assert (memory.value, memory.runs, memory.tolerance, memory.device) == (49.135295, 1, 1.0, "Ascend910_93")
    assert "verl-ascend-recipe" in memory.origin
    checks = {check.metric: check for check in check_baseline(read_run(write_run(tmp_path, 1)).metrics, held)}
    assert not checks["perf/throughput"].is_failed
    assert "stale" in checks["perf/throughput"].message
    assert checks["critic/rewards/mean"].is_failed


def test_an_import_of_what_was_not_published_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="expected one of ppo-8b"):
        run("published", "gspo-99b", "--case", "test_x", "--file", tmp_path / "b.yaml")
    with pytest.raises(BaselineError, match="give --case TEST and --file FILE"):
        run("published", "gspo-8b")
