"""`ascend-e2e new-case` with the installed verl: what is written can be collected, means what the script means, and says so."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_ascend_e2e.cli import main

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("verl", "hydra")), reason="needs verl and hydra-core to compose with"
)

TRAINING = """python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_files=/data/gsm8k/train.parquet \
data.val_files=/data/gsm8k/test.parquet data.train_batch_size=64 actor_rollout_ref.model.path=Qwen/Qwen3-8B \
actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
actor_rollout_ref.rollout.n=5 trainer.total_training_steps=5 \
actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4 trainer.n_gpus_per_node=8"""
ROLLOUT = "actor_rollout_ref.rollout.name=vllm"
SOUND = "composes it to the configuration of the command"


def new_case(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["new-case", *words])

    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    return status, shown.out, shown.err


def script(directory: Path, text: str) -> str:
    path = directory / "run.sh"
    path.write_text(text)
    return str(path)


def recipes_of(path: Path) -> Sequence[Any]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [test.pytestmark[0].kwargs["recipe"] for name, test in vars(module).items() if name.startswith("test")]


def test_numbers_that_are_not_finite_are_written_and_compose_to_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "test_new.py"
    text = f"{TRAINING} {ROLLOUT} +data.low=-inf +data.miss=nan '+data.sizes=[inf,1,nan]' > log\n"

    status, _, told = new_case(capsys, "-o", str(path), script(tmp_path, text))

    (recipe,) = recipes_of(path)
    assert status == 0
    assert f"{SOUND}\n" in told
    assert str(recipe.overrides["data"]) == "{'+low': -inf, '+miss': nan, '+sizes': [inf, 1, nan]}"


def test_all_trainings_of_a_script_are_collected_and_in_the_format_of_ruff(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "test_new.py"
    text = f"""train() {{ {TRAINING} {ROLLOUT} "$@" > log; }}
{{ for n in 4 8; do train data.max_prompt_length=$n; done; }} 2>&1 | tee log
export TRAIN='{TRAINING}'
bash -c "$TRAIN {ROLLOUT} \\"actor_rollout_ref.model.path='/data/01.Ünder²score'\\"" > log
"""

    status, _, told = new_case(capsys, "-o", str(path), script(tmp_path, text))

    assert status == 0, told
    assert told.count(f"{SOUND}\n") == 3
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    formatted = subprocess.run([sys.executable, "-m", "ruff", "format", "--check", "--line-length=132", str(path)], check=False)
    assert [line for line in collected.stdout.splitlines() if "::" in line] == [
        f"test_new.py::test_grpo_{name}" for name in ("qwen3_8b_fsdp_vllm", "qwen3_8b_fsdp_vllm_2", "01_nder_score_fsdp_vllm")
    ]
    assert formatted.returncode == 0


def test_a_part_that_verl_refuses_is_no_part_of_what_the_case_is_held_against(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, told = new_case(capsys, script(tmp_path, f"{TRAINING} {ROLLOUT} trainer.seed=1\n"))

    assert status == 0
    assert "not taken over: trainer.seed=1" in told
    assert f"{SOUND} without what is not taken over\n" in told


def test_files_of_another_dataset_than_the_first_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = "\"data.train_files=['/data/gsm8k/train.parquet','/data/math/train.parquet']\" data.val_files=/data/aime-2024.parquet"

    _, _, told = new_case(capsys, script(tmp_path, f"{TRAINING} {ROLLOUT} {files}\n"))

    assert "data.train_files: /data/math/train.parquet is not taken over, a case has one dataset (gsm8k)\n" in told
    assert "data.val_files: /data/aime-2024.parquet is not taken over, a case has one dataset (gsm8k)\n" in told


def test_options_behind_the_script_and_a_name_that_pytest_does_not_collect_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "grpo.py"

    status, _, told = new_case(capsys, "-o", str(path), script(tmp_path, f"{TRAINING} {ROLLOUT}\n"), "--tier=nightly", "16")

    assert status == 0
    assert "--tier=nightly: given to" in told
    assert "an option of new-case stands before the script\n" in told
    assert "grpo.py: pytest collects test_*.py and *_test.py by default" in told


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("python3 -m verl.trainer.main_ppo", "rollout.name is not given, and verl has no default: expected"),
        (
            f"python3 -m verl.trainer.main_ppo {ROLLOUT}",
            "ppo_micro_batch_size_per_gpu: None needs use_dynamic_bsz=True; give a number",
        ),
        (f"{TRAINING} {ROLLOUT} trainer.nnodes=many", "trainer.nnodes='many' cannot be used: expected a whole number"),
        (f"{TRAINING} {ROLLOUT} data.max_prompt_length=$UNSET", "data.max_prompt_length: is empty in the script"),
    ],
)
def test_what_is_missing_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str) -> None:
    status, out, told = new_case(capsys, script(tmp_path, text))

    assert (status, out) == (2, "")
    assert reason in told
    assert told.count("\n") == 1
