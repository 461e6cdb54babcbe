"""Fields of dataclasses, read from a source tree that is never imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ascend_e2e.preflight.dataclass_fields import DataclassFields

SOURCES = {
    "__init__.py": "raise RuntimeError('must not be imported')",
    "base_config.py": "class BaseConfig:\n    _target_: str = ''\n",
    "workers/config/__init__.py": "from .engine import *",
    "workers/config/engine.py": (
        "from typing import ClassVar\nfrom verl.base_config import BaseConfig\n"
        "class EngineConfig(BaseConfig):\n    kind: ClassVar[str] = 'x'\n    seed: int = 42\n    def f(self) -> None: ...\n"
        "class Mcore(EngineConfig):\n    tp: int = 1\n"
        "class Odd(unknown.Mixin):\n    a: int = 1\n"
    ),
    "other/engine.py": "class Mcore:\n    another: int = 1\n",
}


@pytest.fixture
def fields(tmp_path: Path) -> DataclassFields:
    root = tmp_path / "verl"
    for name, text in SOURCES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return DataclassFields(root)


def test_fields_are_those_of_the_class_and_its_bases(fields: DataclassFields) -> None:
    assert fields.of("verl.workers.config.Mcore") == frozenset({"tp", "seed", "_target_"})


def test_the_class_nearest_to_the_target_is_meant(fields: DataclassFields) -> None:
    assert fields.of("verl.other.Mcore") == frozenset({"another"})


@pytest.mark.parametrize("target", ["verl.workers.config.Odd", "verl.workers.config.Absent", "torch.nn.Module", "Mcore", ""])
def test_a_class_that_the_source_does_not_tell_is_not_judged(fields: DataclassFields, target: str) -> None:
    assert fields.of(target) is None
