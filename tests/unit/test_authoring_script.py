"""What bash reads in a script: the commands with their words and variables, while nothing that the script names is done."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_ascend_e2e.authoring import is_training, outputs_in, read_script
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
        "{ echo touched; } > @HERE@/touched",
        "bash -c '/usr/bin/touch @HERE@/touched; echo > @HERE@/touched'",
        "reach() { command -p touch @HERE@/touched; touch @HERE@/touched; }; PATH=/usr/bin:/bin reach > @HERE@/out.log",
        "eval 'echo touched > @HERE@/touched; touch @HERE@/touched' >> @HERE@/out.log",
        "cat @HERE@/run.sh > @HERE@/touched",
        "cd @HERE@; echo touched > touched",
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
        "export FOO=1; PYTHON=/opt/python/bin/python3; $PYTHON -m verl.trainer.main_ppo a.b=1",
        "export FOO=1; train() { python3 -m verl.trainer.main_ppo a.b=1; }; train > log 2>&1",
        "train() { python3 -m verl.trainer.main_ppo a.b=1 > inner.log; }; FOO=1 train > log 2>&1 &\nwait",
        "train() { local n=$1; FOO=1 python3 -m verl.trainer.main_ppo a.b=$n >> log; }; train 1",
        "CMD='python3 -m verl.trainer.main_ppo a.b=1'; FOO=1 eval \"$CMD\" > log 2>&1",
        "export FOO=1; { echo go; python3 -m verl.trainer.main_ppo a.b=1; } > log 2>&1",
        "(\n  export FOO=1\n  python3 -m verl.trainer.main_ppo a.b=1\n) &> 'a log'",
        "(export FOO=1; python3 -m verl.trainer.main_ppo a.b=1) > >(tee log) 2>&1 &",
        "export FOO=1; for n in 1; do python3 -m verl.trainer.main_ppo a.b=$n; done > log",
        "export FOO=1; if true; then python3 -m verl.trainer.main_ppo a.b=1; fi >> log",
        "export FOO=1; bash -c 'python3 -m verl.trainer.main_ppo a.b=1 > log'",
        "FOO=1 nohup bash -lc 'set -e; exec python3 -m verl.trainer.main_ppo a.b=$1' bash 1 > log 2>&1 &",
        "env FOO=1 timeout 2h sh -e -c \"bash -c 'python3 -m verl.trainer.main_ppo a.b=1'\"",
    ],
)
def test_a_training_is_found_however_it_is_started(tmp_path: Path, line: str) -> None:
    ((words, environment),) = trainings(tmp_path, line)

    assert words[-1] == "a.b=1"
    assert environment.get("FOO") == "1" or "FOO=1" in words


def test_each_training_of_a_loop_is_found_in_order(tmp_path: Path) -> None:
    found = trainings(tmp_path, "for n in 1 2; do python3 -m verl.trainer.main_ppo rollout.n=$n | tee $n.log; done\n")

    assert [words[-1] for words, _ in found] == ["rollout.n=1", "rollout.n=2"]


def test_what_a_pipe_would_have_read_ends_no_script(tmp_path: Path) -> None:
    script = "{ for n in 1 2 3 4; do echo $n; python3 -m verl.trainer.main_ppo a.b=$n > $n.log; done; } 2>&1 | tee log\n"

    found = trainings(tmp_path, script)

    assert [words[-1] for words, _ in found] == ["a.b=1", "a.b=2", "a.b=3", "a.b=4"]


@pytest.mark.parametrize("waiting", ["wait $PID", "while kill -0 $PID 2>/dev/null; do sleep 5; done"])
def test_a_training_in_the_background_is_over_at_once(tmp_path: Path, waiting: str) -> None:
    script = f"set -eu\nfor n in 1 2; do python3 -m verl.trainer.main_ppo a.b=$n > $n.log &\nPID=$!\n{waiting}\ndone\n"

    found = trainings(tmp_path, script)

    assert [words[-1] for words, _ in found] == ["a.b=1", "a.b=2"]


def test_a_variable_that_is_given_reaches_the_script(tmp_path: Path) -> None:
    ((words, _),) = trainings(tmp_path, "python3 -m verl.trainer.main_ppo model.path=$MODEL\n", MODEL="Qwen/Qwen3-8B")

    assert words[-1] == "model.path=Qwen/Qwen3-8B"


@pytest.mark.parametrize(
    "line",
    [
        'python3 -m verl.trainer.main_ppo "$@" > log',
        'train() { "$@" > log; }; train python3 -m verl.trainer.main_ppo "$@"',
        "words=a.b=1 text=c.d=2; python3 -m verl.trainer.main_ppo $words $text > log",
        "[[ a.b=1,c.d=2 =~ (.*),(.*) ]]\npython3 -m verl.trainer.main_ppo ${BASH_REMATCH[1]} ${BASH_REMATCH[2]} > log",
        'A=(/usr/bin/python3 -m verl.trainer.main_ppo a.b=1); "${A[@]}" c.d=2 > log',
        "X=$(find /data -name c); python3 -m verl.trainer.main_ppo 'a.b=1' ${X:+c.d=2}",
    ],
)
def test_no_word_is_lost_or_changed_by_the_reading(tmp_path: Path, line: str) -> None:
    ((words, _),) = trainings(tmp_path, line, "a.b=1", "c.d=2")

    assert words[-2:] == ("a.b=1", "c.d=2")


def test_a_sign_within_quotes_is_no_redirection(tmp_path: Path) -> None:
    ((words, _),) = trainings(tmp_path, "python3 -m verl.trainer.main_ppo x.name='a > b' a.b=1 > log\n")

    assert words[-2:] == ("x.name=a > b", "a.b=1")


def test_a_script_has_its_own_path_and_the_directory_of_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "more.txt").write_text("c.d=2\n")
    monkeypatch.chdir(tmp_path / "inner")
    script = """HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mapfile -t MORE < more.txt
python3 -m verl.trainer.main_ppo x=$HERE/x y=$PWD/y z=$0 v=$(dirname "$(readlink -f "$0")")/v u=$(dirname /u) \\
  "${MORE[@]}" w="$(cat <<EOF
a $((1 + 1))
EOF
)" """

    ((words, _),) = trainings(tmp_path, script)

    above, here = tmp_path.parent, tmp_path / "inner"
    assert words[3:] == (f"x={above}/x", f"y={here}/y", f"z={tmp_path}/run.sh", f"v={tmp_path}/v", "u=/", "c.d=2", "w=a 2")


def test_what_a_program_would_have_printed_has_its_name(tmp_path: Path) -> None:
    script = """MODEL=$(find /models -name 'Qwen*' 2>/dev/null | head -1)
python3 -m verl.trainer.main_ppo model.path=$MODEL/x data.seed=$(/usr/bin/date) data.train_files=$(ls /data)
"""

    ((words, _),) = trainings(tmp_path, script)

    assert [outputs_in(word) for word in words[3:]] == [["head"], ["date"], ["ls"]]


def test_no_arithmetic_takes_what_is_not_known_for_a_number(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("N=$(npu-smi info | wc -l)\npython3 -m verl.trainer.main_ppo trainer.nnodes=$((N / 2))\n")

    reading = read_script(path)

    assert not any(is_training(command.words) for command in reading.started)
    assert "OUTPUT.OF.wc" in reading.errors[-1]


def test_a_date_has_the_form_that_is_asked_for(tmp_path: Path) -> None:
    ((words, _),) = trainings(tmp_path, "python3 -m verl.trainer.main_ppo x.y=$(date +run-%m)\n")

    assert re.fullmatch(r"x\.y=run-\d\d", words[-1])


def test_a_script_with_line_ends_of_windows_and_bytes_of_another_encoding_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_bytes("# 训练\r\npython3 -m verl.trainer.main_ppo \\\r\n  a.b=1\r\n".encode("gbk"))

    (started,) = read_script(path).started

    assert started.words[-1] == "a.b=1"


@pytest.mark.parametrize("line", ["ssh node1 bash -c '@'", "docker exec -it verl bash -c '@'"])
def test_a_shell_elsewhere_is_not_read(tmp_path: Path, line: str) -> None:
    assert trainings(tmp_path, line.replace("@", "python3 -m verl.trainer.main_ppo a.b=1")) == []


def test_a_script_that_waits_tells_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.sh"
    path.write_text("while true; do sleep 5; done\n")
    monkeypatch.setattr("pytest_ascend_e2e.authoring.script._LIMIT_S", 0.3)

    with pytest.raises(AuthoringError, match=r"and came to 'sleep 5': does it wait there\? Give the command itself"):
        read_script(path)


def test_what_bash_says_of_a_broken_script_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("set -u\npython3 -m verl.trainer.main_ppo a=$MISSING\n")

    reading = read_script(path)

    assert reading.started == ()
    assert "MISSING: unbound variable" in reading.errors[-1]


def test_what_bash_says_names_the_script_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text('echo "no model in $(dirname "$0")" >&2\n')

    assert read_script(path).errors[-1] == f"no model in {tmp_path}"


def test_a_script_that_is_not_there_is_one_clear_problem(tmp_path: Path) -> None:
    with pytest.raises(AuthoringError, match=r"nowhere\.sh' cannot be read: no such file; expected a bash script"):
        read_script(tmp_path / "nowhere.sh")
