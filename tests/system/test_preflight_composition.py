"""Composition in a real child process: with the installed verl, and with children that misbehave."""

from __future__ import annotations

import functools
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.errors import PreflightError
from pytest_ascend_e2e.preflight import Composition, Request, compose_cases, judge
from pytest_ascend_e2e.preflight.compose import compose_all
from pytest_ascend_e2e.recipe import DAPO, FSDP, FSDP2, GRPO, GSPO, PPO, Megatron, Recipe, Sglang
from pytest_ascend_e2e.recipe.overrides import is_free
from tests.fakes.bad_configurations import BAD_CONFIGURATIONS
from tests.fakes.recipes import recipe_with

needs_verl = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("verl", "hydra")), reason="needs verl and hydra-core to compose with"
)


def deadline(limit_s: float = 300) -> Deadline:
    return Deadline.after(limit_s, name="composition")


EVERY_KIND: Mapping[str, Recipe] = {
    "grpo-fsdp": recipe_with(algorithm=GRPO(use_kl_loss=True), engine=FSDP(offload=True, optimizer={"foreach": False}), seed=1),
    "ppo-fsdp2": recipe_with(algorithm=PPO(use_kl_in_reward=True), engine=FSDP2(sp=2), reference=FSDP2(param_offload=True), seed=1),
    "ppo-megatron": recipe_with(
        algorithm=PPO(use_kl_loss=True),
        engine=Megatron(tp=2, pp=2, vpp=2, transformer={"x": [1, {"y": "z w"}]}, ddp={"d": 1}, optimizer={"o": 1}),
        seed=1,
    ),
    "gspo-own-reference": recipe_with(
        algorithm=GSPO(use_kl_loss=True), engine=Megatron(transformer={"a": 1}), reference=Megatron(transformer={"b": 2})
    ),
    "dapo-sglang": recipe_with(
        algorithm=DAPO(overlong_buffer_len=16),
        rollout=Sglang(n=2, max_model_len=128),
        use_dynamic_bsz=True,
        ppo_max_token_len_per_gpu=256,
    ),
}
ROLLOUT = "actor_rollout_ref.rollout"
NEAREST = "the nearest it has: actor_rollout_ref"
# The overrides, the origin that is told, and what is said of it.
WRONG: Mapping[str, tuple[dict[str, object], str, str]] = {
    "unknown": (
        {"actor_rollout_ref.actor.clip_ratio_lo": 1},
        "overrides['actor_rollout_ref.actor.clip_ratio_lo']",
        f"has no key actor_rollout_ref.actor.clip_ratio_lo; {NEAREST}.actor.clip_ratio_low or ",
    ),
    "elsewhere": (
        {"actor.freeze_vision_tower": True},
        "overrides['actor.freeze_vision_tower']",
        f"has no key actor.freeze_vision_tower; {NEAREST}.actor.freeze_vision_tower",
    ),
    "appendable": (
        {"actor_rollout_ref": {"rollout": {"enable_sleep_mode": False}}},
        "overrides['actor_rollout_ref']['rollout']['enable_sleep_mode']",
        f"has {ROLLOUT}.enable_sleep_mode as a field that its YAML lacks; append it: '{ROLLOUT}.+enable_sleep_mode'",
    ),
    "exists": (
        {"trainer.+val_only": True},
        "overrides['trainer.+val_only']",
        "has the key trainer.val_only already; leave out the +",
    ),
    "no-field": (
        {f"{ROLLOUT}.+enable_sleep_moode": False},
        f"overrides['{ROLLOUT}.+enable_sleep_moode']",
        f"builds a dataclass there, which has no field for +{ROLLOUT}.enable_sleep_moode; {NEAREST}.rollout.enable_sleep_mode",
    ),
    "interpolation": (
        {"trainer.val_only": "${no.such.key}"},
        "overrides",
        "cannot compose this: Interpolation key 'no.such.key' not found",
    ),
}

# Values that verl's own dataclasses refuse, mostly in sections that its driver leaves to the workers; the part, and the words.
REFUSED: Mapping[str, tuple[Recipe, str, str]] = {
    "rollout": (
        recipe_with(overrides={f"{ROLLOUT}.trace.max_samples_per_step_per_worker": -1}),
        ROLLOUT,
        "ValueError: `max_samples_per_step_per_worker` must be a non-negative integer or null.",
    ),
    "reference": (
        recipe_with(
            algorithm=GRPO(use_kl_loss=True),
            engine=Megatron(),
            overrides={"actor_rollout_ref.ref.megatron.router_replay.mode": "R4"},
        ),
        "actor_rollout_ref.ref",
        "ValueError: Invalid router_replay mode: R4.",
    ),
    "actor": (
        recipe_with(engine=FSDP(), overrides={"actor_rollout_ref.actor.optim.lr_scheduler_type": "linear"}),
        "validate_config",
        "AssertionError",
    ),
}


@functools.cache
def compositions() -> Mapping[str, Composition]:
    """Compose everything this module asks about, in one child."""
    plans = {name: judge(recipe, 8).request for name, recipe in EVERY_KIND.items()}
    plans |= {name: judge(recipe_with(overrides=overrides), 8).request for name, (overrides, _, _) in WRONG.items()}
    plans |= {f"refused {name}": judge(recipe, 8).request for name, (recipe, _, _) in REFUSED.items()}
    plans |= {one.name: judge(one.recipe(), one.devices).request for one in BAD_CONFIGURATIONS if one.is_composed}
    plans["megatron alone"] = Request(config_name="ppo_trainer", arguments=("model_engine=megatron",))
    plans["two mistakes"] = judge(recipe_with(overrides={"data.a": 1, "trainer.b": 2}), 8).request
    return dict(zip(plans, compose_cases(list(plans.values()), deadline=deadline()), strict=True))


def config_of(name: str) -> Mapping[str, Any]:
    config = compositions()[name].config
    assert config is not None
    return config


@needs_verl
@pytest.mark.parametrize("name", EVERY_KIND)
def test_verl_takes_the_overrides_of_every_kind_of_recipe(name: str) -> None:
    assert compositions()[name].problems == ()


@needs_verl
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_override_is_told_with_what_to_do(name: str) -> None:
    composition = compositions()[name]

    (problem,) = composition.problems

    _, origin, said = WRONG[name]
    assert problem.startswith(f"{origin}: verl {composition.verl} {said}")


@needs_verl
@pytest.mark.parametrize(
    ("name", "named", "rule"), [(one.name, one.named, one.rule) for one in BAD_CONFIGURATIONS if one.is_composed]
)
def test_a_bad_configuration_that_verl_alone_can_tell_is_found(name: str, named: str, rule: str) -> None:
    (problem,) = compositions()[name].problems

    assert problem.startswith(f"{named}: ")
    assert problem.endswith({"K7": "[K7]", "K8": "[K8]"}[rule])


@needs_verl
@pytest.mark.parametrize("part", REFUSED)
def test_what_verls_own_dataclasses_refuse_is_told_with_the_part_and_verls_words(part: str) -> None:
    composition = compositions()[f"refused {part}"]

    _, named, words = REFUSED[part]
    (problem,) = composition.problems
    assert problem.startswith(f"{named}: verl {composition.verl} refuses this configuration: {words}")
    assert problem.endswith("[K24]")


@needs_verl
def test_every_configuration_of_this_verl_could_be_built() -> None:
    assert {composition.unbuilt for composition in compositions().values()} == {""}


@needs_verl
def test_all_wrong_overrides_are_told_together() -> None:
    problems = compositions()["two mistakes"].problems

    assert [problem.split(":")[0] for problem in problems] == ["overrides['data.a']", "overrides['trainer.b']"]


@needs_verl
def test_the_reference_composes_to_the_actors_transformer_configuration() -> None:
    roles = config_of("ppo-megatron")["actor_rollout_ref"]

    reference = roles["ref"]["megatron"]["override_transformer_config"]

    assert reference == roles["actor"]["megatron"]["override_transformer_config"]
    assert reference["x"] == [1, {"y": "z w"}]


@needs_verl
def test_a_reference_of_its_own_composes_to_its_own_transformer_configuration() -> None:
    roles = config_of("gspo-own-reference")["actor_rollout_ref"]

    assert roles["ref"]["megatron"]["override_transformer_config"]["b"] == 2
    assert "a" not in roles["ref"]["megatron"]["override_transformer_config"]


@needs_verl
def test_the_critic_composes_to_the_actors_engine() -> None:
    config = config_of("ppo-megatron")

    actor, critic = config["actor_rollout_ref"]["actor"]["megatron"], config["critic"]["megatron"]
    assert {key for key in actor if actor[key] != critic.get(key)} == set()


@needs_verl
def test_every_empty_dictionary_of_verl_is_known_as_free() -> None:
    configs = [config_of(name) for name in ("megatron alone", "grpo-fsdp")]

    empty = {key for config in configs for key in empty_dictionaries(config)}

    assert empty
    assert {key for key in empty if not is_free(f"{key}.anything")} == set()


def empty_dictionaries(node: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from empty_dictionaries(value, f"{prefix}{key}.")
        elif value == {}:
            yield f"{prefix}{key}"


def child_that(tmp_path: Path, does: str) -> str:
    """Return an interpreter that reads its stdin and then does something else than Python would."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\ncat > /dev/null\n{does}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


ONE = [Request(config_name="ppo_trainer", arguments=("trainer.nnodes=1",))]


@pytest.mark.parametrize(
    ("does", "text"),
    [
        ("echo first >&2; echo 'boom' >&2; exit 3", "ended with status 3: first | boom"),
        ("exit 1", "ended with status 1: it said nothing"),
        ("echo no json", "answered no JSON: b'no json"),
        ("echo '[1]'", "expected what is missing, or an entry for each case"),
        ("""echo '{"verl": "1", "entries": []}'""", "0 answers to 1 cases"),
    ],
)
def test_a_child_that_fails_is_one_clear_error(tmp_path: Path, does: str, text: str) -> None:
    with pytest.raises(PreflightError) as caught:
        compose_cases(ONE, deadline=deadline(), python=child_that(tmp_path, does))

    assert text in str(caught.value)
    assert len(caught.value.problems) == 1


def test_a_child_that_hangs_is_ended_at_the_deadline(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match=r"not done after 0.5 s \(composition\); it was ended"):
        compose_cases(ONE, deadline=deadline(0.5), python=child_that(tmp_path, "exec sleep 60"))


@pytest.mark.parametrize(
    ("reason", "unasked", "text"),
    [
        ("RuntimeError: no torch", [], "RuntimeError: no torch"),
        (
            "",
            ["validate_config: ImportError: no vllm", "distillation: NameError: x"],
            "validate_config: ImportError: no vllm; distillation: NameError: x",
        ),
    ],
)
def test_what_verl_could_not_be_asked_about_is_said(tmp_path: Path, reason: str, unasked: list[str], text: str) -> None:
    entry = {"config": {}, "problems": [], "unasked": unasked}
    answer = json.dumps({"verl": "1", "entries": [entry], "unbuilt": reason})

    (composition,) = compose_cases(ONE, deadline=deadline(), python=child_that(tmp_path, f"echo '{answer}'"))

    assert composition.unbuilt == f"verl 1 could not be asked about all of this configuration: {text}"
    assert composition.problems == ()


def test_what_a_child_forked_ends_with_it(tmp_path: Path) -> None:
    python = child_that(tmp_path, f"sleep 60 & echo $! > {tmp_path}/pid; wait")

    with pytest.raises(PreflightError, match="it was ended"):
        compose_cases(ONE, deadline=deadline(1), python=python)

    process = Path("/proc") / (tmp_path / "pid").read_text().strip()
    waiting = deadline(30)
    while process.exists() and "State:\tZ" not in (process / "status").read_text():
        assert waiting.remaining_s() > 0, f"{process} is still there"
        time.sleep(0.01)


def test_an_interpreter_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="could not be started"):
        compose_cases(ONE, deadline=deadline(), python=str(tmp_path / "none"))


def test_an_interpreter_without_verl_is_said_not_to_have_checked(tmp_path: Path) -> None:
    python = child_that(tmp_path, "echo '" + json.dumps({"missing": "verl", "python": "/usr/bin/python"}) + "'")

    (composition,) = compose_cases(ONE, deadline=deadline(), python=python)

    assert (composition.is_checked, composition.problems) == (False, ())
    assert composition.reason == "composition was not checked: verl is not there for /usr/bin/python"


def test_a_missing_library_is_named_by_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "verl" else object())

    assert compose_all([{"config": "ppo_trainer", "overrides": ["trainer.nnodes=1"]}]) == {
        "missing": "verl",
        "python": sys.executable,
    }


def test_no_cases_need_no_child(tmp_path: Path) -> None:
    assert compose_cases([], deadline=deadline(), python=str(tmp_path / "none")) == ()


AS_HYDRA = """
import json, sys
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from pytest_ascend_e2e.preflight.compose import Composer, _verl_root
from pytest_ascend_e2e.preflight.dataclass_fields import DataclassFields

with initialize_config_dir(version_base=None, config_dir=str(_verl_root() / "trainer" / "config")):
    composer = Composer(fields=DataclassFields(_verl_root()))
    for name, arguments in json.load(sys.stdin):
        # Twice: what a list leaves in the base would show the second time.
        ours = [composer.compose(name, arguments) for _ in range(2)]
        theirs = OmegaConf.to_container(compose(name, overrides=arguments), resolve=True)
        assert all(one == {"config": theirs, "problems": []} for one in ours), name
print("equal")
"""


@needs_verl
def test_a_list_is_composed_as_hydra_composes_it() -> None:
    lists = [
        (
            "ppo_trainer",
            [
                "data.train_files=[a b.parquet,c]",
                "trainer.logger=['console']",
                "trainer.experiment_name=${trainer.project_name}-x",
                "actor_rollout_ref.actor.fsdp_config={fsdp_size:4,param_offload:true}",
                "+actor_rollout_ref.rollout.engine_kwargs.vllm.a.b=1",
                "++data.apply_chat_template_kwargs={enable_thinking:false}",
                "trainer.total_training_steps=null",
                "~data.shuffle",
                "actor_rollout_ref.actor.optim.lr=1e-6",
            ],
        ),
        ("ppo_trainer", ["reward=reward", "trainer.nnodes=2"]),
    ]

    done = subprocess.run([sys.executable, "-c", AS_HYDRA], input=json.dumps(lists), capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "equal\n"), done.stderr
