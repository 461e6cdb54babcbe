"""What the documentation shows is true: its cases are collected and planned, its files are read, its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_ascend_e2e.plugin.options import OPTIONS
from pytest_ascend_e2e.runners import load_catalogue
from pytest_ascend_e2e.session.baselines import find_baselines

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]


SWITCHES = {"--e2e-confirm", "--e2e-elsewhere", "--e2e-keep", "--e2e-list", "--e2e-plan", "--e2e-NAME"}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


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


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    named = {target for page in PAGES for target in re.findall(r"make (e2e|test|faults|check|plan|clean)\b", page.read_text())}

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
