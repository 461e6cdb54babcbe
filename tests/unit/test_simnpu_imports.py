"""The post-import hook of the simulated NPU: when an action runs, and what it leaves behind."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_ascend_e2e.simnpu import SimulationError
from pytest_ascend_e2e.simnpu.imports import Action, PostImportFinder, act_after_imports


@pytest.fixture
def module_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give an importable module that defines `value = "plain"`, and restore the import system afterwards."""
    name = "simnpu_fixture_module"
    (tmp_path / f"{name}.py").write_text('value = "plain"\n', encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def setting(value: str) -> Action:
    def act(module: ModuleType) -> None:
        module.__dict__["value"] = value

    return act


def test_action_runs_before_the_import_returns(module_name: str) -> None:
    act_after_imports({module_name: setting("patched")})

    module = importlib.import_module(module_name)

    assert module.value == "patched"


def test_a_name_copied_at_the_first_import_is_the_patched_one(module_name: str) -> None:
    act_after_imports({module_name: setting("patched")})

    copied: dict[str, str] = {}
    exec(f"from {module_name} import value", copied)  # noqa: S102  # the statement is the subject

    assert copied["value"] == "patched"


def test_module_keeps_its_real_loader(module_name: str) -> None:
    act_after_imports({module_name: setting("patched")})

    module = importlib.import_module(module_name)

    assert type(module.__loader__).__name__ == "SourceFileLoader"
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__


def test_other_modules_are_left_to_the_other_finders(module_name: str) -> None:
    finder = PostImportFinder({"some_other_module": setting("patched")})

    assert finder.find_spec(module_name, None) is None


def test_a_missing_module_stays_missing(module_name: str) -> None:
    act_after_imports({f"{module_name}_missing": setting("patched")})

    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{module_name}_missing")


def test_a_failing_action_fails_the_import(module_name: str) -> None:
    def refuse(module: ModuleType) -> None:
        raise SimulationError(f"{module.__name__} is not what it was")

    act_after_imports({module_name: refuse})

    with pytest.raises(SimulationError, match=f"{module_name} is not what it was"):
        importlib.import_module(module_name)


def test_module_imported_before_is_refused(module_name: str) -> None:
    importlib.import_module(module_name)

    with pytest.raises(SimulationError, match=rf"{module_name}: imported before .* put simnpu/site first on PYTHONPATH"):
        act_after_imports({module_name: setting("patched")})
