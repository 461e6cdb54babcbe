"""What bash reads in a script: the commands with their words and variables, while nothing that the script names is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ascend_e2e.authoring import is_training, read_script
from pytest_ascend_e2e.errors import AuthoringError

TYPICAL = r"""#!/usr/bin/env bash
set -xeuo pipefail
source /opt/vendor/set_env.sh
cd "$(dirname "$0")"
pkill -9 python || true
mkdir -p @HERE@/made
export HCCL_CONNECT_TIMEOUT=1500
MODEL=${MODEL:-"${HOME}/models/Qwen/Qwen3-8B"}
NGPUS=${1:-8}
if [[ $NGPUS > 4 && "$MODEL" == *Qwen3* ]]; then N=5; else N=1; fi
DATA=(
  data.train_batch_size=$((NGPUS * 4))
  "data.train_files=['a b.parquet']"
)
cat > @HERE@/config.yaml <<EOF
a: 1
EOF
echo "started" >> @HERE@/progress.txt
python3 -m verl.trainer.main_ppo \
  "${DATA[@]}" actor_rollout_ref.rollout.n=$N \
  trainer.experiment_name='x > y' "${@:2}" 2>&1 | tee @HERE@/run.log
"""


def trainings(tmp_path: Path, script: str, *arguments: str, **variables: str) -> list[tuple[tuple[str, ...], dict[str, str]]]:
    path = tmp_path / "run.sh"
    path.write_text(script.replace("@HERE@", str(tmp_path)))
    started = read_script(path, arguments, variables).started
    return [(command.words, dict(command.environment)) for command in started if is_training(command.words)]


def test_variables_arrays_conditions_and_arguments_mean_what_they_mean(tmp_path: Path) -> None:
    ((words, environment),) = trainings(tmp_path, TYPICAL, "16", "trainer.nnodes=2")

    assert words == (
        *("python3", "-m", "verl.trainer.main_ppo", "data.train_batch_size=64", "data.train_files=['a b.parquet']"),
        *("actor_rollout_ref.rollout.n=1", "trainer.experiment_name=x > y", "trainer.nnodes=2"),
    )
    assert environment == {"HCCL_CONNECT_TIMEOUT": "1500"}


def test_nothing_is_written_or_run(tmp_path: Path) -> None:
    trainings(tmp_path, TYPICAL)

    assert [path.name for path in tmp_path.iterdir()] == ["run.sh"]


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/touch @HERE@/touched",
        "exec > @HERE@/out.log 2>&1",
        "exec > >(/usr/bin/tee @HERE@/out.log) 2>&1",
        "PATH=/usr/bin:/bin; touch @HERE@/touched",
        "command -p touch @HERE@/touched",
        "(/bin/sh -c 'touch @HERE@/touched') &",
        "builtin kill -9 $$",
    ],
)
def test_what_would_reach_outside_does_not_and_the_reading_goes_on(tmp_path: Path, line: str) -> None:
    found = trainings(tmp_path, f"set -e\n{line}\nwait\npython -m verl.trainer.main_ppo a.b=1\n")

    assert [path.name for path in tmp_path.iterdir()] == ["run.sh"]
    assert [words[-1] for words, _ in found] == ["a.b=1"]


@pytest.mark.parametrize(
    "line",
    [
        "FOO=1 nohup python3 -m verl.trainer.main_ppo a.b=1 > log.txt 2>&1 &\nwait",
        "FOO=1 /usr/local/bin/python3 -m verl.trainer.main_ppo a.b=1 &> 'a log.txt'",
        'train() { FOO=1 "$@" | tee log; }; train python3 -m verl.trainer.main_ppo a.b=1',
        'CMD="python3 -m verl.trainer.main_ppo a.b=1"; export FOO=1; eval "$CMD"',
        "export FOO=1; exec python3 -m verl.trainer.main_ppo a.b=1",
    ],
)
def test_a_training_is_found_however_it_is_started(tmp_path: Path, line: str) -> None:
    ((words, environment),) = trainings(tmp_path, line)

    assert words[-1] == "a.b=1"
    assert environment.get("FOO") == "1" or "FOO=1" in words


def test_each_training_of_a_loop_is_found_in_order(tmp_path: Path) -> None:
    found = trainings(tmp_path, "for n in 1 2; do python3 -m verl.trainer.main_ppo rollout.n=$n | tee $n.log; done\n")

    assert [words[-1] for words, _ in found] == ["rollout.n=1", "rollout.n=2"]


def test_a_variable_that_is_given_reaches_the_script(tmp_path: Path) -> None:
    ((words, _),) = trainings(tmp_path, "python3 -m verl.trainer.main_ppo model.path=$MODEL\n", MODEL="Qwen/Qwen3-8B")

    assert words[-1] == "model.path=Qwen/Qwen3-8B"


def test_what_bash_says_of_a_broken_script_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("set -u\npython3 -m verl.trainer.main_ppo a=$MISSING\n")

    reading = read_script(path)

    assert reading.started == ()
    assert "MISSING: unbound variable" in reading.errors[-1]


def test_a_script_that_is_not_there_is_one_clear_problem(tmp_path: Path) -> None:
    with pytest.raises(AuthoringError, match=r"nowhere\.sh' cannot be read: no such file; expected a bash script"):
        read_script(tmp_path / "nowhere.sh")
