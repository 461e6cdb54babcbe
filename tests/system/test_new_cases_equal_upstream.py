"""A case written from the command of each of verl's own Ascend jobs: it composes to the configuration of the command.

The values that differ on purpose are those that were reviewed for our own cases; keys that a case is allowed not to say stand there
too.
"""

from __future__ import annotations

import importlib.util

import pytest

from pytest_ascend_e2e.preflight import judge
from pytest_ascend_e2e.recipe import SFT
from pytest_ascend_e2e.runners import load_catalogue
from tests.fakes.reviewed import ABSENT, explained
from tests.fakes.upstream import draft_compositions, drafts, leaves, recipe_of, references

TESTS = sorted(references())

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("verl", "hydra")), reason="needs verl and hydra-core to compose with"
)


@pytest.mark.parametrize("test", TESTS)
def test_the_case_composes_to_the_configuration_of_the_command(test: str) -> None:
    draft, composition = drafts()[test], draft_compositions()[test]
    theirs, ours = dict(leaves(draft.wanted.config)), dict(leaves(composition.config or {}))

    differing = {key for key in {*theirs, *ours} if theirs.get(key, ABSENT) != ours.get(key, ABSENT)}
    unexplained = {
        key: f"theirs {theirs.get(key, ABSENT)!r}, ours {ours.get(key, ABSENT)!r}"
        for key in sorted(differing)
        if not explained("configuration", test, key, ours.get(key, ABSENT), configs=(theirs, ours))
    }

    assert composition.problems == ()
    assert unexplained == {}


@pytest.mark.parametrize("test", TESTS)
def test_the_case_has_the_parts_of_our_own_case(test: str) -> None:
    written, own = drafts()[test].recipe, recipe_of(test)

    assert written.config_name == own.config_name
    assert type(written.engine) is type(own.engine)
    assert (written.dataset, written.algorithm_name, written.rollout_name) == (own.dataset, own.algorithm_name, own.rollout_name)
    assert written.steps == int(references()[test].values["trainer.total_training_steps"])


@pytest.mark.parametrize("test", TESTS)
def test_the_case_is_sound_on_the_devices_of_the_command(test: str) -> None:
    draft = drafts()[test]
    runner = load_catalogue(None).get(draft.runner)
    devices = runner.devices if isinstance(draft.recipe, SFT) else draft.inputs.n_gpus_per_node

    plan = judge(draft.recipe, devices, draft.nodes, inputs=draft.inputs)

    assert plan.problems == ()
    assert runner.devices >= draft.inputs.n_gpus_per_node


def test_most_of_what_the_commands_say_is_in_typed_fields() -> None:
    said = sum(len(draft.wanted.said) for draft in drafts().values())
    left = sum(len(list(leaves(dict(draft.recipe.overrides)))) for draft in drafts().values())

    assert said > 2000
    assert left < said / 8
