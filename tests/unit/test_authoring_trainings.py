"""The trainings of a script: what its reading left unknown is told with each."""

from __future__ import annotations

from pathlib import Path

from pytest_ascend_e2e.authoring import Invocation, trainings_of


def trainings(tmp_path: Path, script: str) -> list[Invocation]:
    path = tmp_path / "run.sh"
    path.write_text(script)
    return trainings_of(path)


def test_a_variable_that_a_program_would_have_printed_is_left_out(tmp_path: Path) -> None:
    script = "export IFNAME=$(ip route) KEPT=1\npython3 -m verl.trainer.main_ppo a.b=1\n"

    (found,) = trainings(tmp_path, script)

    assert found.environment == {"KEPT": "1"}
    assert found.notes == ("IFNAME: left out of env, it holds what ip would print",)


def test_an_empty_value_is_told(tmp_path: Path) -> None:
    (found,) = trainings(tmp_path, "python3 -m verl.trainer.main_ppo data.train_files=$UNSET x='' y.z=a=\n")

    assert [note.partition(":")[0] for note in found.notes] == ["data.train_files", "x"]
    assert "is empty in the script; a variable that is not set is given with --env NAME=VALUE" in found.notes[0]


def test_answers_that_are_not_the_machines_are_told_once(tmp_path: Path) -> None:
    script = "for n in $(nproc) $(nproc); do python3 -m verl.trainer.main_ppo a.b=$n; done\n"

    first, second = trainings(tmp_path, script)

    assert first.arguments == ("a.b=8",)
    assert first.notes == ("nproc: said '8' to the script, whatever this machine has",)
    assert second.notes == ()


def test_what_bash_says_is_told_and_what_time_prints_is_not(tmp_path: Path) -> None:
    (found,) = trainings(tmp_path, "set -x\nmapfile -t A < nowhere.txt\ntime python3 -m verl.trainer.main_ppo a.b=1\n")

    assert found.notes == ("bash says: line 2: nowhere.txt: No such file or directory",)


def test_a_program_of_verl_beside_the_training_is_left_out(tmp_path: Path) -> None:
    script = "python3 -m verl.trainer.main_ppo a.b=1\npython3 -m verl.model_merger merge --backend fsdp\n"

    (found,) = trainings(tmp_path, script)

    assert found.arguments == ("a.b=1",)
    assert found.notes == ("python3 -m verl.model_merger merge --backend fsdp: left out, no recipe trains with it",)
