"""A tiny model is made once, by a child process, under a lock, and is whole or not there."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from pytest_ascend_e2e.datasets import Difficulty, prepare
from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.errors import ModelError
from pytest_ascend_e2e.models import Warmup, find_model, make_tiny
from tests.fakes import model_maker

MODEL = "Qwen/Qwen3-8B"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def train_files(tmp_path: Path) -> Path:
    """A training file; the fake child does not read it."""
    path = tmp_path / "train.parquet"
    path.write_bytes(b"rows")
    return path


def _make(tmp_path: Path, train_files: Path, python: str, *, limit_s: float = 60, model: str = MODEL, seed: int = 0) -> Path:
    return make_tiny(
        model,
        cache_root=tmp_path / "cache",
        train_files=train_files,
        python=python,
        seed=seed,
        deadline=Deadline.after(limit_s, name="tiny model"),
    )


def _entries(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache").iterdir() if path.is_dir())


def test_model_is_whole(tmp_path: Path, train_files: Path) -> None:
    made = _make(tmp_path, train_files, model_maker.install(tmp_path / "bin", "make"))

    assert find_model(str(made), tmp_path) == made


def test_second_call_starts_no_child(tmp_path: Path, train_files: Path) -> None:
    python = model_maker.install(tmp_path / "bin", "make")

    first, second = (_make(tmp_path, train_files, python) for _ in range(2))

    assert first == second
    assert model_maker.calls(tmp_path / "bin") == 1


def test_models_of_one_architecture_share_their_tiny_model(tmp_path: Path, train_files: Path) -> None:
    python = model_maker.install(tmp_path / "bin", "make")

    assert _make(tmp_path, train_files, python) == _make(tmp_path, train_files, python, model="Qwen/Qwen3-0.6B")


def test_other_seed_architecture_or_rows_are_another_model(tmp_path: Path, train_files: Path) -> None:
    python = model_maker.install(tmp_path / "bin", "make")
    made = {_make(tmp_path, train_files, python), _make(tmp_path, train_files, python, seed=1)}
    made.add(_make(tmp_path, train_files, python, model="Qwen/Qwen3-30B-A3B"))

    train_files.write_bytes(b"other rows")
    made.add(_make(tmp_path, train_files, python))

    assert len(made) == 4


def test_damaged_model_is_made_anew(tmp_path: Path, train_files: Path) -> None:
    python = model_maker.install(tmp_path / "bin", "make")
    made = _make(tmp_path, train_files, python)
    (made / "config.json").write_text("{")

    _make(tmp_path, train_files, python)

    assert json.loads((made / "config.json").read_text()) == {"model_type": "qwen3"}
    assert model_maker.calls(tmp_path / "bin") == 2


def test_callers_at_one_time_start_one_child(tmp_path: Path, train_files: Path) -> None:
    python = model_maker.install(tmp_path / "bin", "make")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        made = set(pool.map(lambda _: _make(tmp_path, train_files, python), range(4)))

    assert len(made) == 1
    assert model_maker.calls(tmp_path / "bin") == 1


def test_failed_child_leaves_no_entry_and_its_log_is_told(tmp_path: Path, train_files: Path) -> None:
    python = model_maker.install(tmp_path / "bin", "fail")

    with pytest.raises(ModelError) as caught:
        _make(tmp_path, train_files, python)

    assert "no tiny model: the child ended with exit status 1" in str(caught.value)
    assert "these rows cannot be learned" in str(caught.value)
    assert _entries(tmp_path) == []


def test_child_that_writes_half_a_model_leaves_no_entry(tmp_path: Path, train_files: Path) -> None:
    python = model_maker.install(tmp_path / "bin", "half")

    with pytest.raises(ModelError, match=r"the tiny model is not whole: .*config\.json is missing"):
        _make(tmp_path, train_files, python)

    assert _entries(tmp_path) == []


def test_missing_interpreter_is_told(tmp_path: Path, train_files: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot be started \(No such file or directory\); give a Python that has torch"):
        _make(tmp_path, train_files, str(tmp_path / "no-python"))


def test_missing_training_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.parquet cannot be read"):
        _make(tmp_path, tmp_path / "none.parquet", "python")


def test_cache_that_cannot_be_written_is_told(tmp_path: Path, train_files: Path) -> None:
    (tmp_path / "cache").write_text("a file")

    with pytest.raises(ModelError, match="a tiny model cannot be made there"):
        _make(tmp_path, train_files, "python")


def test_deadline_ends_the_child(tmp_path: Path, train_files: Path) -> None:
    python = model_maker.install(tmp_path / "bin", "hang")

    with pytest.raises(ModelError, match=r"no tiny model after .* \(tiny model\); the child was ended"):
        _make(tmp_path, train_files, python, limit_s=2)

    assert not [child for child in psutil.Process().children(recursive=True) if "model_maker.py" in " ".join(child.cmdline())]
    assert _entries(tmp_path) == []


def test_killed_child_leaves_no_entry(tmp_path: Path, train_files: Path) -> None:
    python = model_maker.install(tmp_path / "bin", "hang")
    killer = threading.Thread(target=lambda: os.kill(_wait_for_maker(psutil.Process()), signal.SIGKILL))
    killer.start()

    with pytest.raises(ModelError, match="the child was ended by SIGKILL"):
        _make(tmp_path, train_files, python)

    killer.join()
    assert _entries(tmp_path) == []


def test_child_of_a_killed_caller_keeps_the_lock(tmp_path: Path, train_files: Path) -> None:
    python = model_maker.install(tmp_path / "bin", "hang")
    caller = subprocess.Popen([sys.executable, "-c", _CALLER, str(tmp_path), str(train_files), python], cwd=ROOT)
    maker = _wait_for_maker(psutil.Process(caller.pid))
    caller.kill()
    caller.wait()

    with pytest.raises(ModelError, match="another process was still making this tiny model"):
        _make(tmp_path, train_files, python, limit_s=0.5)

    os.kill(maker, signal.SIGKILL)
    made = _make(tmp_path, train_files, model_maker.install(tmp_path / "bin", "make"))
    assert _entries(tmp_path) == [made.name]


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs torch and transformers in this Python")
def test_child_makes_a_real_model_whose_tokenizer_keeps_thoughts(tmp_path: Path) -> None:
    rows = prepare(
        "gsm8k", raw_root=tmp_path / "raw", cache_root=tmp_path / "data", train_size=24, val_size=4, generate=Difficulty.SIMPLE
    )

    made = make_tiny(
        MODEL,
        cache_root=tmp_path / "cache",
        train_files=rows.train_files,
        python=sys.executable,
        deadline=Deadline.after(300, name="tiny model"),
        warmup=Warmup(steps=2, batch_size=4, least_reward=0),
    )

    assert json.loads((made / "config.json").read_text())["architectures"] == ["Qwen3ForCausalLM"]
    tokens = {token["content"]: token["special"] for token in json.loads((made / "tokenizer.json").read_text())["added_tokens"]}
    assert tokens["<|im_end|>"] is True
    assert tokens["<think>"] is False


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs torch and transformers in this Python")
def test_reward_that_leaves_rl_nothing_to_hold_on_to_is_refused(tmp_path: Path) -> None:
    rows = prepare(
        "gsm8k", raw_root=tmp_path / "raw", cache_root=tmp_path / "data", train_size=24, val_size=4, generate=Difficulty.SIMPLE
    )

    with pytest.raises(
        ModelError, match=r"after 1 steps the tiny model has a mean reward of 0\.000; RL needs one from 0\.05 to 0\.6"
    ):
        make_tiny(
            MODEL,
            cache_root=tmp_path / "cache",
            train_files=rows.train_files,
            python=sys.executable,
            deadline=Deadline.after(300, name="tiny model"),
            warmup=Warmup(steps=1, batch_size=4),
        )

    assert _entries(tmp_path) == []


def _wait_for_maker(parent: psutil.Process) -> int:
    deadline = Deadline.after(30, name="the fake child")
    while not deadline.is_over():
        for child in parent.children(recursive=True):
            if "model_maker.py" in " ".join(child.cmdline()):
                return child.pid
    raise AssertionError("the fake child did not start")


_CALLER = """
import sys
from pathlib import Path
from tests.system.test_models_workshop import _make
_make(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
"""
