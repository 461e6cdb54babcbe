"""What the documentation shows is true: its cases are collected and planned, its files are read, its commands exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
import textwrap
from pathlib import Path

import pytest
import yaml

from pytest_ascend_e2e.authoring import invocation_of, is_training, read_script
from pytest_ascend_e2e.cli import build_parser, main
from pytest_ascend_e2e.metrics import Metrics
from pytest_ascend_e2e.plugin.options import OPTIONS
from pytest_ascend_e2e.runners import load_catalogue
from pytest_ascend_e2e.session.baselines import find_baselines
from pytest_ascend_e2e.verdict import (
    LogprobLimits,
    check_completed,
    check_logprob_consistency,
    check_rewards,
    check_throughput,
    check_update_health,
)
from tests.fakes.logged_run import DEVICES, logged_run
from tools import reference

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]


SWITCHES = {"--e2e-confirm", "--e2e-elsewhere", "--e2e-export", "--e2e-keep", "--e2e-plan", "--e2e-NAME"}


def blocks(page: Path, language: str) -> list[str]:
    return [
        textwrap.dedent(found)
        for found in re.findall(rf"^ *```{language}\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE)
    ]


def test_the_case_of_the_readme_can_work(pytester: pytest.Pytester) -> None:
    (case,) = blocks(README, "python")
    pytester.makepyfile(test_readme=case)

    result = pytester.runpytest_inprocess("--e2e-plan", "--runner", "a3-16", "-p", "no:cacheprovider")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "test_readme.py::test_grpo_qwen3_5_35b on a3-16 (16 devices, 1 node): can work",
            "  layout: TP2 PP2 CP1 EP8 ETP1: dp 4, expert-dp 1 on 16 devices",
        ]
    )


def test_the_runner_of_the_readme_is_read(tmp_path: Path) -> None:
    (text,) = blocks(README, "yaml")
    path = tmp_path / "runners.yaml"
    path.write_text(text)

    catalogue = load_catalogue(path)

    assert catalogue.get("lab-8").devices == 8


def test_the_baseline_of_the_docs_is_read(tmp_path: Path) -> None:
    (text,) = blocks(ROOT / "docs" / "checks.md", "yaml")
    (tmp_path / "baselines.yaml").write_text(text)

    found = find_baselines(tmp_path / "test_x.py", "test_x.py::test_gspo_qwen3_30b_megatron_vllm", "a3-16")

    assert found["perf/throughput"].value == 32.1


def test_every_case_of_the_pages_can_work(pytester: pytest.Pytester) -> None:
    cases = {
        f"test_{page.stem.replace('-', '_')}_page": case for page in PAGES[1:] for case in blocks(page, "python") if "@npu_" in case
    }
    pytester.makepyfile(**cases)

    result = pytester.runpytest_inprocess("--e2e-plan", "-p", "no:cacheprovider")

    assert len(cases) >= 3
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines([f"{len(cases)} planned, 0 cannot work; no device was taken, nothing was trained"])


def test_the_mistake_of_the_tutorial_is_told_as_it_says(pytester: pytest.Pytester) -> None:
    (case,) = blocks(ROOT / "docs" / "tutorial.md", "python")
    pytester.makepyfile(test_mine=case.replace("Vllm(n=4)", "Vllm(n=4, tp=3)"))

    result = pytester.runpytest_inprocess("--e2e-plan", "--runner", "sim-2", "-p", "no:cacheprovider")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*cannot work*", "*rollout: tp x dp = 3 x 1 = 3 does not divide 2 devices; set tp=2*"])


def test_the_runner_of_the_pages_is_read(tmp_path: Path) -> None:
    (text,) = blocks(ROOT / "docs" / "howto" / "own-runner.md", "yaml")
    path = tmp_path / "runners.yaml"
    path.write_text(text)

    assert load_catalogue(path).get("lab-8").ci_label == "lab-npu"


def test_the_script_of_the_pages_is_read_as_they_say(tmp_path: Path) -> None:
    (script,) = blocks(ROOT / "docs" / "howto" / "new-case.md", "bash")
    path = tmp_path / "run_grpo.sh"
    path.write_text(script)

    (training,) = [started for started in read_script(path).started if is_training(started.words)]

    assert "data.train_batch_size=32" in invocation_of(training.words).arguments
    assert dict(training.environment) == {"HCCL_CONNECT_TIMEOUT": "1500"}


@pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="needs verl to compose with")
def test_the_case_of_the_script_is_the_one_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "docs" / "howto" / "new-case.md"
    (script,), (case,) = blocks(page, "bash"), blocks(page, "python")
    (tmp_path / "run_grpo.sh").write_text(script)
    monkeypatch.chdir(tmp_path)

    status = main(["new-case", "-o", "test_new.py", "run_grpo.sh"])

    told = capsys.readouterr().err
    assert (status, (tmp_path / "test_new.py").read_text()) == (0, case)
    assert "composes it to the configuration of the command\n" in told
    assert "next: pytest test_new.py --runner a2b3-8 --e2e-plan" in told


def test_the_reference_is_what_the_code_says() -> None:
    assert reference.PAGE.read_text() == reference.page(), "run python -m tools.reference"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_is_shown_is_one(page: Path) -> None:
    lines = [line.strip() for block in blocks(page, "sh") for line in block.splitlines() if line.strip().startswith("ascend-e2e ")]

    for line in lines:
        build_parser().parse_args(shlex.split(line.removeprefix("ascend-e2e "), comments=True))


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()

    missing = [page.name for page in PAGES[1:] if f"- {page.relative_to(ROOT / 'docs').as_posix()}\n" not in navigation]

    assert missing == []
    assert yaml.safe_load(navigation)["strict"] is True


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    named = {target for page in PAGES for target in re.findall(r"make (e2e|test|faults|check|plan|docs|clean)\b", page.read_text())}

    assert {"e2e", "test"} <= named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_flag_that_is_named_exists(page: Path) -> None:
    flags = {option.flag for option in OPTIONS} | SWITCHES

    named = set(re.findall(r"--e2e-[a-zA-Z-]+|--runner\b", page.read_text()))

    assert named <= flags


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()) if "://" not in link]

    missing = [link for link in links if not (page.parent / link).exists()]

    assert missing == []


def test_the_docs_show_no_placeholder() -> None:
    shown = [(page.name, word) for page in PAGES for word in ("SAMPLE", "PLAN\n", "RED\n", "TODO") if word in page.read_text()]

    assert shown == []


def test_every_check_that_a_run_offers_is_explained() -> None:
    text = (ROOT / "docs" / "checks.md").read_text()

    for name in (
        "check_completed",
        "check_rewards",
        "check_logprob_consistency",
        "check_update_health",
        "check_throughput",
        "same_as",
    ):
        assert f"run.{name}(" in text


def test_every_check_that_is_made_by_default_is_explained() -> None:
    text = (ROOT / "docs" / "checks.md").read_text()
    metrics = Metrics(logged_run(15))
    made = (
        *check_completed(metrics, steps=15),
        *check_rewards(metrics, minimum=0.1),
        *(
            check
            for dtype in ("bfloat16", "float32")
            for check in check_logprob_consistency(metrics, has_reference=True, limits=LogprobLimits.for_dtype(dtype))
        ),
        *check_update_health(metrics),
        *check_throughput(metrics, devices=DEVICES, minimum=1, step_time_max_s=99, memory_max_gb=99, host_memory_max_gb=999),
    )

    unexplained = {check.name for check in made if f"`{check.name}`" not in text}

    assert len(made) > 30
    assert unexplained == set()


def test_every_check_of_a_host_is_explained() -> None:
    sources = [
        *(ROOT / "pytest_ascend_e2e" / "preflight" / "host").glob("*.py"),
        ROOT / "pytest_ascend_e2e" / "session" / "host.py",
    ]
    checks = {check for source in sources for check in re.findall(r'check="(host\.[a-z-]+)"', source.read_text())}

    explained = set(re.findall(r"^\| `(host\.[a-z-]+)`", (ROOT / "docs" / "host.md").read_text(), re.MULTILINE))

    assert checks == explained
