"""The CI of this project's own nightly cases, and the workflow that is made for a suite."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from pytest_ascend_e2e.cli import main
from tests.fakes.tools import run_tool

TRAIN = "Train and judge"
CASES = Path(__file__).parent.parent / "e2e_npu"
CASE = """
from pytest_ascend_e2e import npu_nightly

@npu_nightly(runner='a3-16', estimate='1h')
def test_first(train): pass

@npu_nightly(runner='a3-16', estimate='1h')
def test_second(train): pass
"""


CRONS = ("0 17 * * *", "*/15 0-6,18-23 1,15 JAN-MAR MON-FRI", "05 08 01 12 0", "30 2 * * sun", "59 23 31 12 6")
NO_CRONS = (
    "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "*/0 * * * *", "5-1 * * * *",
    "MON * * * *", "* * * * MONDAY", "1, * * * *", "- * * * *", "@daily", "0 17 * * 0MON", "*/\u0665 * * * *", "0\t17 * * *",
)  # fmt: skip


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


def test_the_runners_and_the_time_limit_of_the_ini_file_are_those_of_the_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(tmp_path, monkeypatch, CASE.replace("a3-16", "lab-8").replace(", estimate='1h'", ""))
    (tmp_path / "pytest.ini").write_text("[pytest]\ne2e_runners_file = runners.yaml\ne2e_run_timeout = 5h\n")
    (tmp_path / "runners.yaml").write_text(
        "schema: 1\nrunners:\n  lab-8: "
        "{devices: 8, chip: Ascend910B3, dies_per_card: 1, memory_gb: 64, ci_label: lab, images: {vllm: a}}\n"
    )

    assert main(["matrix"]) == 0
    (job,) = json.loads(capsys.readouterr().out)["include"]
    assert main(["matrix", "--timeout", "30m"]) == 0
    (shorter,) = json.loads(capsys.readouterr().out)["include"]

    assert (job["runs_on"], job["timeout_minutes"], shorter["timeout_minutes"]) == ("lab", 60 * (2 * 5 + 1), 2 * 30 + 60)


def test_cases_are_named_from_here_wherever_their_ini_file_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "repository" / "e2e").mkdir(parents=True)
    suite(tmp_path / "repository" / "e2e", monkeypatch)
    assert main(["matrix", "--ids", "--only", "test_first"]) == 0
    inside = capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "repository")

    assert main(["matrix", "e2e", "--ids", "--only", "test_first"]) == 0

    assert inside == "test_cases.py::test_first\n"
    assert capsys.readouterr().out == "e2e/test_cases.py::test_first\n"


def test_a_case_of_simulated_npus_is_in_no_job_and_keeps_none_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = suite(tmp_path, monkeypatch, CASE.replace("runner='a3-16'", "runner='sim-2'", 1))

    assert main(["matrix", "--ids", "--cases", "cases.json"]) == 0
    told = capsys.readouterr()
    assert told.out == "test_cases.py::test_second\n"
    assert told.err.startswith("in no job: test_cases.py::test_first: it runs on simulated NPUs")
    assert [bool(case["off"]) for case in json.loads(Path("cases.json").read_text())["cases"]] == [True, False]

    path.write_text(CASE.replace("runner='a3-16'", "runner='sim-2'"))
    assert main(["matrix"]) == 2
    assert "all 2 cases are off: nothing to run" in capsys.readouterr().err


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


@pytest.mark.parametrize("cron", CRONS)
def test_a_time_that_github_takes_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cron: str) -> None:
    suite(tmp_path, monkeypatch)

    assert main(["workflow", "--cron", cron, "--output", "w.yml"]) == 0

    assert f'- cron: "{cron}"' in Path("w.yml").read_text()
    linted = run_tool("actionlint", "w.yml")
    assert linted.returncode == 0, linted.stdout


def test_each_tier_has_a_workflow_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite(tmp_path, monkeypatch)
    (tmp_path / "test_pull_requests.py").write_text(CASE.replace("npu_nightly", "npu_e2e"))

    assert main(["workflow"]) == 0
    assert main(["workflow", "--tier", "pull-request"]) == 0

    places = sorted(path.name for path in (tmp_path / ".github" / "workflows").iterdir())
    assert places == ["ascend_e2e_nightly.yml", "ascend_e2e_pull_request.yml"]


def test_a_workflow_that_is_run_again_replaces_what_it_left_and_does_not_wait_for_a_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite(tmp_path, monkeypatch)

    assert main(["workflow", "--output", "w.yml"]) == 0

    workflow = yaml.safe_load(Path("w.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    uploads = [step["with"] for step in steps if step.get("uses", "").startswith("actions/upload-artifact")]
    assert [upload["overwrite"] for upload in uploads] == [True, True, True]
    downloads = [step["with"] for step in steps if step.get("uses", "").startswith("actions/download-artifact")]
    assert [download.get("name") or download["pattern"] for download in downloads] == ["e2e-cases", "e2e-report-*"]
    assert "github.run_id" in workflow["concurrency"]["group"]
    assert not workflow["concurrency"]["cancel-in-progress"]


ODD = """
import pytest
from pytest_ascend_e2e import npu_nightly

@pytest.mark.parametrize('odd', ['a::b', 'two words', "it's", '"$HOME" `touch x` $(touch y)', '${{ secrets.KEY }}', '#;&|', '-x'])
@npu_nightly(runner='a3-16', estimate='1h')
def test_odd(train, odd): pass
"""


def run_step(job: str, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a step of the workflow w.yml in this directory as GitHub does."""
    (step,) = [
        step for step in yaml.safe_load(Path("w.yml").read_text())["jobs"][job]["steps"] if step.get("name", "").startswith(name)
    ]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    words = ["/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(words, env={**os.environ, "PATH": path, **variables}, capture_output=True, text=True, check=False)


def test_the_steps_of_a_job_hand_over_each_name_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(tmp_path, monkeypatch, ODD)
    assert main(["matrix", "--device-hours", "1000"]) == 0
    (job,) = json.loads(capsys.readouterr().out)["include"]
    assert main(["workflow", "--output", "w.yml"]) == 0

    done = run_step("train", TRAIN, E2E_CASES=job["cases"], PYTEST_ADDOPTS="--collect-only -q -p no:cacheprovider")

    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(line for line in done.stdout.splitlines() if "::" in line) == sorted(job["cases"].splitlines())
    assert len(job["cases"].splitlines()) == 7
    assert not {"x", "y"} & {path.name for path in tmp_path.iterdir()}


def test_the_steps_of_a_workflow_report_each_case_once_and_one_that_vanished_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "e2e").mkdir()
    suite(tmp_path / "e2e", monkeypatch, ODD.replace("train, ", ""))
    monkeypatch.chdir(tmp_path)
    assert main(["workflow", "e2e", "--output", "w.yml"]) == 0

    planned = run_step("plan", "Put the cases", GITHUB_OUTPUT="output", E2E_CASE="", E2E_IMAGE="")
    jobs = json.loads(Path("output").read_text().partition("matrix=")[2])["include"]
    trained = [
        run_step(
            "train", TRAIN, E2E_CASES=job["cases"], ASCEND_E2E_RUNNER=job["runner"], ASCEND_E2E_REPORT=f"e2e-artifacts/{number}"
        )
        for number, job in enumerate(jobs)
    ]
    Path("e2e-cases.json").rename("e2e-artifacts/e2e-cases.json")
    merged = run_step("summary", "Merge", GITHUB_STEP_SUMMARY="page.md")
    shutil.rmtree("e2e-artifacts/0")
    vanished = run_step("summary", "Merge", GITHUB_STEP_SUMMARY="page.md")

    assert (planned.returncode, [job.returncode for job in trained]) == (0, [0] * 4), planned.stderr + trained[0].stdout
    assert (merged.returncode, merged.stdout) == (0, "e2e-merged/junit.xml: 7 passed\n"), merged.stderr
    assert vanished.returncode == 1
    assert vanished.stderr.count(": not reported: no job reported it\n") == 2 * len(jobs[0]["cases"].splitlines())
    assert not list(tmp_path.rglob("[xy]"))


def test_what_a_library_says_in_no_unicode_while_cases_are_collected_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(tmp_path, monkeypatch)
    (tmp_path / "conftest.py").write_text("import atexit, os\natexit.register(os.write, 2, b'\\xc9\\xfd')\n")

    assert main(["matrix", "--ids", "--only", "test_first"]) == 0

    assert capsys.readouterr().out == "test_cases.py::test_first\n"


def test_a_case_whose_parameter_holds_colons_is_chosen_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(tmp_path, monkeypatch, ODD)

    for wish in ("test_odd[a::b]", "test_cases.py::test_odd[a::b]", " test_odd[a::b] ", "*a::b*"):
        assert main(["matrix", "--ids", "--only", wish]) == 0
        assert capsys.readouterr().out == "test_cases.py::test_odd[a::b]\n"


def test_a_name_without_its_parameters_is_that_of_all_and_no_pattern_where_a_case_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(tmp_path, monkeypatch, ODD.replace("['a::b'", "['ab', 'a::b'").replace("test_odd", "test_x") + "test_xa = test_x\n")

    counts = {}
    for wish in ("test_x", "test_cases.py::test_x", "test_cases.py::test_xa*", "test_x[ab]"):
        assert main(["matrix", "--ids", "--only", wish]) == 0
        counts[wish] = len(capsys.readouterr().out.splitlines())

    assert counts == {"test_x": 8, "test_cases.py::test_x": 8, "test_cases.py::test_xa*": 8, "test_x[ab]": 1}


@pytest.mark.parametrize("words", [("matrix", "--cases"), ("workflow", "--output")])
@pytest.mark.parametrize("place", ["taken/file", "directory"])
def test_a_place_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], place: str
) -> None:
    suite(tmp_path, monkeypatch)
    (tmp_path / "taken").touch()
    (tmp_path / "directory").mkdir()

    assert main([*words, place]) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert f"{place}: cannot be written: " in line


def test_more_jobs_than_a_matrix_holds_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(tmp_path, monkeypatch, ODD.replace("['a::b'", "[*map(str, range(260)), 'a::b'"))

    assert main(["matrix", "--device-hours", "0.1"]) == 2

    assert "267 jobs, and a matrix holds 256: give more --device-hours" in capsys.readouterr().err
    assert main(["matrix", "--device-hours", "inf"]) == 0


def test_commands_and_names_stand_in_the_workflow_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite(tmp_path, monkeypatch)
    commands = ["  echo 'a: b' # c", 'echo "{x}" \\ @NAME@', "# nothing"]

    words = [word for command in commands for word in ("--install", command)]
    assert main(["workflow", "--output", "w.yml", "--name", "Nächte: '\N{CRESCENT MOON}' #1", *words]) == 0

    workflow = yaml.safe_load(Path("w.yml").read_text())
    (install,) = [step["run"] for step in workflow["jobs"]["train"]["steps"] if step.get("name") == "Install"]
    assert install.splitlines() == [command.strip() for command in commands]
    assert workflow["name"] == "Nächte: '\N{CRESCENT MOON}' #1"
    linted = run_tool("actionlint", "w.yml")
    assert linted.returncode == 0, linted.stdout


def test_a_link_out_of_the_repository_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    suite(repository, monkeypatch)
    (tmp_path / "runners.yaml").write_text("schema: 1\nrunners: {}\n")
    Path("runners.yaml").symlink_to(tmp_path / "runners.yaml")

    assert main(["workflow", "--runners-file", "runners.yaml"]) == 2

    assert "'runners.yaml' is not in the checkout that the workflow makes" in capsys.readouterr().err


def test_a_workflow_is_made_in_the_root_of_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    below = tmp_path / "below"
    below.mkdir()
    suite(below, monkeypatch)
    (tmp_path / ".git").mkdir()

    assert main(["workflow"]) == 2

    assert f"{below} lies in the repository {tmp_path}: go there" in capsys.readouterr().err
    assert not (below / ".github").exists()


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
        (("--name", "two\u2028lines"), "cannot stand in a workflow: expected one line"),
        (("--name", "a line\n"), "cannot stand in a workflow: expected one line"),
        (("--install", "echo \a"), "expected one line of printable characters"),
        (("--python", ""), "--python: '' cannot be used: expected one such as '3.11'"),
        (("--plan-runner", " "), "--plan-runner: ' ' cannot be used: expected one such as 'ubuntu-latest'"),
        (("--install", " "), "--install: ' ' is no command: expected one such as 'python -m pip install pytest-ascend-e2e'"),
        (("--plan-install", ""), "--plan-install: '' is no command"),
        (("/root/tests",), "'/root/tests' is not in the checkout that the workflow makes"),
        (("--runners-file", "../runners.yaml"), "'../runners.yaml' is not in the checkout"),
        *((("--cron", cron), f"--cron: {cron!r} cannot be used") for cron in NO_CRONS),
    ],
)
def test_what_cannot_stand_in_a_workflow_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["workflow", *words]) == 2

    assert told in capsys.readouterr().err
