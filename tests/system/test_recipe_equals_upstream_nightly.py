"""Our nightly cases, composed by the installed verl, against the values of verl's own nightly."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.preflight import Composition, compose_cases, judge
from pytest_ascend_e2e.recipe import Recipe
from tests.e2e_npu import test_nightly

DATA = Path(__file__).parent.parent / "data"
REFERENCE: Mapping[str, Any] = yaml.safe_load((DATA / "nightly_reference.yaml").read_text(encoding="utf-8"))
DIFFERENCES: Mapping[str, Any] = yaml.safe_load((DATA / "nightly_differences.yaml").read_text(encoding="utf-8"))
DEVICES = 16
ABSENT = "absent"

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("verl", "hydra")), reason="needs verl and hydra-core to compose with"
)


def recipe_of(test: str) -> Recipe:
    marks = getattr(test_nightly, test).pytestmark
    (recipe,) = (mark.kwargs["recipe"] for mark in marks if "recipe" in mark.kwargs)
    assert isinstance(recipe, Recipe)
    return recipe


@functools.cache
def compositions() -> Mapping[str, Composition]:
    plans = [judge(recipe_of(test), DEVICES) for test in REFERENCE]
    deadline = Deadline.after(300, name="composing the nightly cases")
    return dict(
        zip(REFERENCE, compose_cases([plan.overrides for plan in plans], deadline=deadline, python=sys.executable), strict=True)
    )


def leaves(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def expected_of(test: str, part: str) -> dict[str, Any]:
    """Return the reference's values with the reviewed differences applied."""
    expected = dict(leaves(REFERENCE[test][part]))
    for key, difference in DIFFERENCES[test][part].items():
        expected[key] = ABSENT if difference.get(ABSENT) else difference["ours"]
    return expected


@pytest.mark.parametrize("test", REFERENCE)
def test_verl_composes_the_case(test: str) -> None:
    assert compositions()[test].problems == ()


@pytest.mark.parametrize("test", REFERENCE)
def test_every_value_of_the_reference_is_in_the_composed_configuration(test: str) -> None:
    composed = dict(leaves(compositions()[test].config))

    expected = expected_of(test, "configuration")

    assert {key: composed.get(key, ABSENT) for key in expected} == expected


@pytest.mark.parametrize("test", REFERENCE)
def test_the_environment_is_the_references_but_for_reviewed_differences(test: str) -> None:
    env = recipe_of(test).env

    expected = expected_of(test, "environment")

    assert {key: env.get(key, ABSENT) for key in {*expected, *env}} == expected


@pytest.mark.parametrize("part", ["configuration", "environment"])
@pytest.mark.parametrize("test", REFERENCE)
def test_every_reviewed_difference_is_one_and_has_a_reason(test: str, part: str) -> None:
    reference = dict(leaves(REFERENCE[test][part]))

    for key, difference in DIFFERENCES[test][part].items():
        assert difference["reason"]
        assert key in reference
        assert difference.get(ABSENT) or difference["ours"] != reference[key]


@pytest.mark.parametrize("test", REFERENCE)
def test_model_and_dataset_are_the_references(test: str) -> None:
    recipe = recipe_of(test)

    assert (recipe.model, recipe.dataset) == (REFERENCE[test]["model"], REFERENCE[test]["dataset"])


@pytest.mark.parametrize("test", REFERENCE)
def test_the_case_is_sound_on_its_runner(test: str) -> None:
    plan = judge(recipe_of(test), DEVICES)

    assert plan.problems == ()
    assert plan.layout is not None


def test_the_reference_model_has_the_actors_transformer_configuration() -> None:
    config = compositions()["test_grpo_qwen3_5_35b_megatron_vllm"].config["actor_rollout_ref"]

    actor, reference = (config[role]["megatron"]["override_transformer_config"] for role in ("actor", "ref"))
    assert reference == actor
    assert reference["recompute_method"] == "uniform"
