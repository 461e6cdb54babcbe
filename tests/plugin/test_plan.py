"""Plan mode: cases are judged, no device is taken, nothing is trained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ascend_e2e.history import History
from tests.fakes.run_directories import SOUND
from tests.plugin.conftest import PLAIN_AND_XDIST, Host

FITS = "@npu_nightly(runner='toy-2', recipe=recipe())\ndef test_fits(run): run.check_completed()\n"
TOO_LARGE = "@npu_nightly(runner='toy-2', recipe=recipe(rollout=Vllm(tp=4, n=4)))\ndef test_too_large(run): run.check_completed()\n"
OWN_RECIPES = (
    "@npu_nightly(runner='toy-2')\n"
    "def test_own_recipes(train):\n"
    "    train(recipe(steps=3))\n"
    "    raise RuntimeError('the body goes no further')\n"
)


@PLAIN_AND_XDIST
def test_a_plan_shows_layout_command_and_environment(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(FITS)

    result = host.run("--e2e-plan", "--runner", "toy-2", *workers)

    assert result.ret == pytest.ExitCode.OK
    text = result.stdout.str()
    assert "test_cases.py::test_fits on toy-2 (2 devices, 1 node): can work" in text
    assert "layout: FSDP2 SP1: dp 2 on 2 devices" in text
    assert "trainer.n_gpus_per_node=2" in text
    assert "1 planned, 0 cannot work; no device was taken, nothing was trained" in text
    assert not (host.pytester.path / "runs").exists()
    assert not (host.root / "locks").exists()


@PLAIN_AND_XDIST
def test_a_case_that_cannot_work_makes_the_plan_red(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(FITS + TOO_LARGE)

    result = host.run("--e2e-plan", "--runner", "toy-2", *workers)

    text = result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "test_cases.py::test_too_large on toy-2 (2 devices, 1 node): cannot work" in text
    assert "2 planned, 1 cannot work" in text
    assert "Traceback" not in text


def test_a_test_that_builds_its_recipes_is_judged_at_its_first_training(host: Host) -> None:
    host.cases(OWN_RECIPES)

    result = host.run("--e2e-plan", "--runner", "toy-2")

    assert result.ret == pytest.ExitCode.OK
    assert "test_cases.py::test_own_recipes on toy-2 (2 devices, 1 node): can work" in result.stdout.str()


def test_without_a_runner_every_case_is_judged_on_its_own(host: Host) -> None:
    host.cases(FITS + TOO_LARGE.replace("'toy-2'", "'toy-4'"))

    result = host.run("--e2e-plan")

    assert result.ret == pytest.ExitCode.OK
    assert "test_too_large on toy-4 (4 devices, 1 node): can work" in result.stdout.str()


def test_a_plan_without_a_case_is_red(host: Host) -> None:
    host.cases("def test_plain(): pass\n")

    result = host.run("--e2e-plan")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "no case was planned: the selection holds none" in result.stdout.str()


def test_a_plan_above_the_budget_is_red(host: Host) -> None:
    host.cases(FITS.replace("runner='toy-2'", "runner='toy-2', estimate='3h'"))

    result = host.run("--e2e-plan", "--runner", "toy-2", "--e2e-budget", "5")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str()
    assert "estimated device-hours: 6 of a budget of 5" in text
    assert "the cases are estimated at 6 device-hours, more than the budget of 5 (--e2e-budget)" in text


def test_a_case_that_ran_before_is_estimated_by_its_runs(host: Host) -> None:
    host.cases(FITS.replace("runner='toy-2'", "runner='toy-2', estimate='3h'"))
    run = replace(SOUND, case="test_cases.py::test_fits", runner="toy-2", duration_s=5400.0)
    History(host.pytester.path / "e2e-runs" / "history.sqlite").add([run])

    result = host.run("--e2e-plan", "--runner", "toy-2")

    assert "estimated device-hours: 3; 1 from the history" in result.stdout.str()


def test_cases_of_other_runners_are_not_planned(host: Host) -> None:
    host.cases(FITS + FITS.replace("toy-2", "toy-4").replace("test_fits", "test_other"))

    result = host.run("--e2e-plan", "--runner", "toy-2")

    assert result.ret == pytest.ExitCode.OK
    assert "1 planned, 0 cannot work" in result.stdout.str()


def test_the_workers_of_xdist_compose_all_cases_in_one_child(host: Host) -> None:
    host.cases(FITS + FITS.replace("test_fits", "test_fits_too").replace("recipe()", "recipe(steps=3)"))
    python, starts = host.root / "python", host.root / "starts"
    python.write_text(python.read_text().replace("\nif ", f'\necho "$2" >> {starts}\nif ', 1))

    result = host.run("--e2e-plan", "--runner", "toy-2", "-n2")

    assert result.ret == pytest.ExitCode.OK
    assert "2 planned, 0 cannot work" in result.stdout.str()
    assert starts.read_text().splitlines().count("pytest_ascend_e2e.preflight.compose") == 1


def test_weights_that_are_not_on_this_host_make_its_plan_red(host: Host) -> None:
    host.cases(FITS.replace("recipe()", "recipe(model='acme/absent')"))

    result = host.run("--e2e-plan", "--runner", "toy-2")

    text = result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert f"problem: model 'acme/absent': {host.root / 'models' / 'acme' / 'absent'} is no directory" in text
    assert "[host.weights]" in text
    assert "Traceback" not in text


def test_another_host_need_not_have_the_weights(host: Host) -> None:
    host.cases(FITS.replace("recipe()", "recipe(model='acme/absent')").replace("toy-2", "toy-4"))

    result = host.run("--e2e-plan", "--runner", "toy-4")

    assert result.ret == pytest.ExitCode.OK


def test_what_this_host_lacks_for_every_case_is_told_once(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.cases(FITS + FITS.replace("test_fits", "test_fits_too"))
    monkeypatch.setenv("ASCEND_HOME_PATH", str(host.root / "gone"))

    result = host.run("--e2e-plan", "--runner", "toy-2")

    text = result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "2 planned, 0 cannot work" in text
    assert text.count(f"this host: ASCEND_HOME_PATH='{host.root / 'gone'}' is no directory") == 1


OFF = "@quarantine(reason='leaks', owner='ann', issue='https://example.org/1', until='{until}')\n"


@pytest.mark.parametrize(("until", "ret"), [("2999-01-01", pytest.ExitCode.OK), ("2020-01-01", pytest.ExitCode.TESTS_FAILED)])
def test_a_case_in_quarantine_is_planned_until_its_day(host: Host, until: str, ret: pytest.ExitCode) -> None:
    host.cases("from pytest_ascend_e2e import quarantine\n" + OFF.format(until=until) + FITS)

    result = host.run("--e2e-plan", "--runner", "toy-2")

    assert result.ret == ret
    text = result.stdout.str()
    if ret == pytest.ExitCode.OK:
        assert "can work, off until 2999-01-01" in text
    else:
        assert "quarantined until 2020-01-01 by ann: leaks (https://example.org/1), and that day has passed" in text
    assert "Traceback" not in text


@PLAIN_AND_XDIST
@pytest.mark.parametrize("until", ["2999-01-01", "2020-01-01"])
def test_a_case_in_quarantine_is_off_until_its_day_and_red_after_it(host: Host, workers: tuple[str, ...], until: str) -> None:
    host.cases("from pytest_ascend_e2e import quarantine\n" + OFF.format(until=until) + FITS)

    result = host.run("-rs", *workers)

    is_over = until.startswith("2020")
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if is_over else pytest.ExitCode.OK)
    text = result.stdout.str()
    assert f"quarantined until {until} by ann: leaks (https://example.org/1)" in text
    assert ("and that day has passed: mend the case, or decide anew with its owner" in text) is is_over
    assert "Traceback" not in text
    assert not (host.pytester.path / "runs").exists()


def test_a_model_that_cannot_be_simulated_is_a_case_that_cannot_work(host: Host) -> None:
    recipe = "recipe(model='Qwen/Qwen3.5-2B')"
    host.cases(f"@npu_nightly(runner='sim-2', recipe={recipe})\ndef test_hybrid(run): run.check_completed()\n")

    result = host.run("--e2e-plan", "--runner", "sim-2")

    text = result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "problem: model 'Qwen/Qwen3.5-2B': no tiny model of this architecture can be made" in text
    assert "1 planned, 1 cannot work" in text
    assert "composition: not checked" not in text


def test_the_sizes_of_a_tiny_model_are_judged_before_it_is_made(host: Host) -> None:
    runners = host.root / "runners.yaml"
    eight = "{devices: 8, chip: simulated, dies_per_card: 1, memory_gb: 1, simulated: true}"
    runners.write_text(f"{runners.read_text()}  sim-8: {eight}\n")
    host.cases(
        "@npu_nightly(runner='sim-8', recipe=recipe(model='Qwen/Qwen3-0.6B', rollout=Vllm(tp=8, n=4)))\n"
        "def test_more_ranks_than_heads(run): run.check_completed()\n"
    )

    result = host.run("--e2e-plan", "--runner", "sim-8")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "rollout.tp: 8 does not divide the 4 attention heads of the model; set 4 [R3]" in result.stdout.str()
    assert not (host.root / "cache" / "models").exists()


UNKNOWN_DATA = "@npu_nightly(runner='{runner}', recipe=recipe({fields}))\ndef test_data(run): run.check_completed()\n"


@PLAIN_AND_XDIST
def test_an_unknown_dataset_of_a_simulation_cannot_work(host: Host, workers: tuple[str, ...]) -> None:
    host.cases(UNKNOWN_DATA.format(runner="sim-2", fields="model='Qwen/Qwen3-0.6B', dataset='gms8k'"))

    result = host.run("--e2e-plan", "--runner", "sim-2", *workers)

    text = result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "problem: dataset 'gms8k' is not known; expected one of 'geometry3k', 'gsm8k'; did you mean 'gsm8k'?" in text
    assert "1 planned, 1 cannot work" in text
    assert "Traceback" not in text


def test_data_that_lie_ready_are_none_of_a_simulation(host: Host) -> None:
    host.cases(UNKNOWN_DATA.format(runner="sim-2", fields="model='Qwen/Qwen3-0.6B', dataset='mine'"))
    (host.root / "datasets" / "mine.parquet").touch()

    result = host.run("--e2e-plan", "--runner", "sim-2")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "problem: dataset 'mine' is not known" in result.stdout.str()


@pytest.mark.parametrize(("dataset", "meant"), [("gms8k", "gsm8k"), ("mnie", "mine")])
def test_a_dataset_that_is_not_on_this_host_cannot_work_here(host: Host, dataset: str, meant: str) -> None:
    host.cases(UNKNOWN_DATA.format(runner="toy-2", fields=f"dataset={dataset!r}"))
    (host.root / "datasets" / "mine.parquet").touch()

    result = host.run("--e2e-plan", "--runner", "toy-2")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert f"prepare it for verl, and put it there; or did you mean {meant!r}? [host.dataset]" in result.stdout.str()


@pytest.mark.parametrize(
    ("dataset", "is_doubtful"),
    [
        ("gms8k", True),
        ("gsm8kk", True),
        ("openai/gsm8k", True),
        ("gsm8k_sft", False),
        ("mine", False),
        ("gsm8k", False),
        ("geometry3k", False),
    ],
)
def test_another_host_may_have_data_that_this_one_lacks(host: Host, dataset: str, is_doubtful: bool) -> None:
    host.cases(UNKNOWN_DATA.format(runner="toy-4", fields=f"dataset={dataset!r}"))

    result = host.run("--e2e-plan", "--runner", "toy-4")

    warning = (
        f"warning: dataset {dataset!r} is none of geometry3k, gsm8k, so it must lie ready on the runner; did you mean 'gsm8k'?"
    )
    assert result.ret == pytest.ExitCode.OK
    assert (warning in result.stdout.str()) is is_doubtful


@pytest.mark.parametrize("fixture", ["run", "npus"])
def test_an_unknown_dataset_is_refused_before_devices_are_taken(host: Host, fixture: str) -> None:
    host.cases(UNKNOWN_DATA.format(runner="toy-2", fields="dataset='gms8k'").replace("test_data(run)", f"test_data({fixture})"))

    result = host.run("--runner", "toy-2")

    text = result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "did you mean 'gsm8k'?" in text
    assert "Traceback" not in text
    assert not (host.root / "locks").exists()


NOT_SIMULATED = {
    "sp": ("engine=FSDP2(sp=2)", "engine.sp: 2 cannot be simulated: verl splits packed sequences only, "),
    "changed": ("", "cannot be simulated: verl splits packed sequences only, "),
    "megatron": ("engine=Megatron(tp=2)", "Megatron is not simulated, and sim-2 is; use FSDP2 or a runner with NPUs"),
    "fsdp": ("engine=FSDP()", "FSDP is not simulated, and sim-2 is; use FSDP2 or a runner with NPUs"),
    "critic": (
        "model='Qwen/Qwen3-VL-2B-Instruct', algorithm=PPO()",
        "a critic of a model of images is not simulated, and sim-2 is; use a runner with NPUs",
    ),
    "sglang": ("rollout=Sglang(n=2)", "SGLang is not simulated, and sim-2 is; use a runner with NPUs"),
}


@pytest.mark.parametrize("wish", NOT_SIMULATED)
def test_what_cannot_be_simulated_is_told_as_such(host: Host, wish: str) -> None:
    fields, expected = NOT_SIMULATED[wish]
    model = "" if fields.startswith("model=") else "model='Qwen/Qwen3-0.6B', "
    case = UNKNOWN_DATA.format(runner="sim-2", fields=f"{model}{fields}")
    host.cases(f"from pytest_ascend_e2e import FSDP, PPO, Megatron, Sglang\n{case}")
    key = "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size"
    more = ("--e2e-set", f"{key}=2") if wish == "changed" else ()

    result = host.run("--e2e-plan", "--runner", "sim-2", *more)

    text = result.stdout.str()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert expected in text
    assert "needs use_remove_padding=True" not in text


@PLAIN_AND_XDIST
def test_a_plan_of_cases_without_a_recipe_says_what_they_take(host: Host, workers: tuple[str, ...]) -> None:
    host.cases("@npu_nightly(runner='toy-2')\ndef test_devices(npus): assert False, 'was run'\n")

    result = host.run("--e2e-plan", "--runner", "toy-2", *workers)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "test_cases.py::test_devices: takes 2 devices, and has no recipe to judge",
            "1 planned, 0 cannot work; no device was taken, nothing was trained",
        ]
    )
