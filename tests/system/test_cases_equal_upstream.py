"""Our cases against verl's own Ascend jobs: both composed by the installed verl, and compared key by key.

What differs on purpose stands with its reason in tests/data/upstream_differences.yaml.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator

import pytest

from pytest_ascend_e2e.recipe import SFT, to_environment
from pytest_ascend_e2e.session.entry import entry_of
from tests.fakes.reviewed import ABSENT, Config, explained, short
from tests.fakes.upstream import (
    cases,
    compositions,
    differences,
    leaves,
    plans,
    quarantine_of,
    recipe_of,
    references,
)

MOST_REASONS = 25
SECTIONS = ("dropped", "configuration", "environment")
TESTS = sorted(references())

needs_verl = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("verl", "hydra")), reason="needs verl and hydra-core to compose with"
)


@functools.cache
def flat(test: str) -> tuple[Config, Config]:
    """Return their configuration and ours, flat."""
    ours, theirs = compositions()
    return dict(leaves(theirs[test].config or {})), dict(leaves(ours[test].config or {}))


def differing(test: str) -> Iterator[tuple[str, object, object]]:
    """Yield the keys of the two configurations whose values differ, with theirs and ours."""
    theirs, ours = flat(test)
    for key in sorted({*theirs, *ours}):
        one, other = theirs.get(key, ABSENT), ours.get(key, ABSENT)
        if one != other:
            yield key, one, other


def differing_environment(test: str) -> Iterator[tuple[str, object, object]]:
    theirs, ours = references()[test].environment, to_environment(recipe_of(test))
    for key in sorted({*theirs, *ours}):
        one, other = theirs.get(key, ABSENT), ours.get(key, ABSENT)
        if one != other:
            yield key, one, other


def dropped(test: str) -> list[str]:
    """Return the keys of their arguments that verl did not take."""
    _, theirs = compositions()
    return [problem.partition(": ")[0].partition("=")[0] for problem in theirs[test].problems]


def test_there_is_a_case_for_each_of_their_jobs_and_none_beside() -> None:
    assert sorted(cases()) == TESTS


@needs_verl
@pytest.mark.parametrize("test", TESTS)
def test_verl_takes_our_case(test: str) -> None:
    ours, _ = compositions()

    assert ours[test].problems == ()


@needs_verl
@pytest.mark.parametrize("test", TESTS)
def test_verl_takes_all_of_theirs_but_what_is_reviewed(test: str) -> None:
    _, theirs = compositions()

    unexplained = [key for key in dropped(test) if not explained("dropped", test, key, ABSENT)]

    assert theirs[test].config is not None
    assert unexplained == []


@needs_verl
@pytest.mark.parametrize("test", TESTS)
def test_the_configurations_are_equal_but_for_reviewed_differences(test: str) -> None:
    unexplained = {
        key: f"theirs {theirs!r}, ours {ours!r}"
        for key, theirs, ours in differing(test)
        if not explained("configuration", test, key, ours, configs=flat(test))
    }

    assert unexplained == {}


@pytest.mark.parametrize("test", TESTS)
def test_the_environments_are_equal_but_for_reviewed_differences(test: str) -> None:
    unexplained = {
        key: f"theirs {theirs!r}, ours {ours!r}"
        for key, theirs, ours in differing_environment(test)
        if ours != ABSENT or not explained("environment", test, key, ours)
    }

    assert unexplained == {}


@needs_verl
def test_every_reviewed_difference_is_one() -> None:
    used: dict[str, set[tuple[int, str]]] = {section: set() for section in SECTIONS}
    for test in TESTS:
        for key in dropped(test):
            used["dropped"] |= set(explained("dropped", test, key, ABSENT))
        for key, _, ours in differing(test):
            used["configuration"] |= set(explained("configuration", test, key, ours, configs=flat(test)))
        for key, _, ours in differing_environment(test):
            used["environment"] |= set(explained("environment", test, key, ours))

    unused = {
        section: [
            (entry["reason"], pattern)
            for number, entry in enumerate(differences()[section])
            for pattern in entry["keys"]
            if (number, pattern) not in used[section]
        ]
        for section in SECTIONS
    }

    assert unused == {section: [] for section in SECTIONS}


def test_the_reasons_are_few() -> None:
    lists = [entry["reason"] for section in SECTIONS for entry in differences()[section]]
    maps = [
        entry["reason"] for part in ("configurations", "modules", "runners", "models") for entry in differences()[part].values()
    ]

    reasons = {*lists, *maps}

    assert all(reason.strip() for reason in reasons)
    assert len(reasons) <= MOST_REASONS


@pytest.mark.parametrize("test", TESTS)
def test_tier_runner_nodes_and_time_limit_are_theirs(test: str) -> None:
    case, reference = cases()[test], references()[test]

    runner = differences()["runners"].get(short(test), {}).get("ours", reference.runner)

    assert case.tier.value == reference.tier
    assert case.runners == (runner,)
    assert case.nodes == reference.nodes
    assert case.timeout_s == reference.timeout_minutes * 60
    assert case.estimate_s is not None
    assert case.estimate_s < case.timeout_s


@pytest.mark.parametrize("test", TESTS)
def test_the_program_is_theirs(test: str) -> None:
    reference = references()[test]
    module = differences()["modules"].get(reference.module, {}).get("instead", reference.module)

    entry = entry_of(recipe_of(test), reference.devices_per_node)

    assert entry[-2:] == ("-m", module)
    processes = [part.partition("=")[2] for part in entry if part.startswith("--nproc_per_node=")]
    assert processes == ([] if reference.processes_per_node is None else [str(reference.processes_per_node)])


@pytest.mark.parametrize("test", TESTS)
def test_model_and_dataset_are_theirs(test: str) -> None:
    recipe, values = recipe_of(test), references()[test].values
    path = values.get("model.path") or values["actor_rollout_ref.model.path"]
    model = differences()["models"].get(short(test), {}).get("ours", path.partition("/models/")[2])
    file = values["data.train_files"].strip("[]").strip("'")
    dataset = file.removesuffix(".parquet").removesuffix("/train").rpartition("/")[2].replace("geo3k", "geometry3k")

    assert (recipe.model, recipe.dataset) == (model, dataset)


@pytest.mark.parametrize("test", TESTS)
def test_a_job_that_they_have_off_is_in_quarantine(test: str) -> None:
    assert (quarantine_of(test) is None) == references()[test].is_enabled


@pytest.mark.parametrize("test", TESTS)
def test_the_case_is_sound_on_its_runner(test: str) -> None:
    plan = plans()[test]

    assert plan.problems == ()
    assert plan.layout is not None


@pytest.mark.parametrize("test", TESTS)
def test_the_name_of_the_test_says_what_its_recipe_is(test: str) -> None:
    recipe = recipe_of(test)
    model = recipe.model.rpartition("/")[2].lower().replace("-", "_").replace(".", "_")

    words = short(test).removeprefix("test_").split("_")

    assert words[0] == recipe.algorithm_name
    assert recipe.engine.name in short(test)
    assert isinstance(recipe, SFT) or recipe.rollout_name in words
    assert next(part for part in model.split("_") if part[0].isdigit()) in words
    assert model.split("_")[0] in short(test)


@needs_verl
def test_the_reference_model_has_the_actors_transformer_configuration() -> None:
    ours, _ = compositions()
    config = ours["tests/e2e_npu/test_nightly.py::test_grpo_qwen3_5_35b_megatron_vllm"].config or {}

    actor, reference = (config["actor_rollout_ref"][role]["megatron"]["override_transformer_config"] for role in ("actor", "ref"))

    assert reference == actor
    assert reference["recompute_method"] == "uniform"
