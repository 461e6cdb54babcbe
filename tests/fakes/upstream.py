"""What verl's own Ascend jobs run, and our cases beside it, composed together by the installed verl."""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pytest_ascend_e2e.authoring import Draft, Invocation, draft_of, invocation_of, requests_of
from pytest_ascend_e2e.deadline import Deadline
from pytest_ascend_e2e.preflight import Composition, Plan, Request, compose_cases, judge
from pytest_ascend_e2e.recipe import SFT, Inputs, Recipe
from pytest_ascend_e2e.runners import load_catalogue
from pytest_ascend_e2e.session import Case, Quarantine, Tier, case_from_arguments, quarantine_from_arguments

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "data"
# Home directory of the reference, so that what both resolve on the runner is the same here.
HOME = "/home"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """One of verl's own jobs: what it runs, where, with which arguments and environment."""

    test: str
    name: str
    source: str
    tier: str
    is_enabled: bool
    runner: str
    devices_per_node: int
    nodes: int
    timeout_minutes: int
    module: str
    processes_per_node: int | None
    config_name: str
    environment: Mapping[str, str]
    arguments: tuple[str, ...]

    @property
    def values(self) -> dict[str, str]:
        """Return the arguments as texts by key; of a doubled key the last, as Hydra takes it."""
        return dict(argument.lstrip("+").split("=", 1) for argument in self.arguments)


@functools.cache
def references() -> Mapping[str, Reference]:
    """Return verl's own jobs by the id of our test for each."""
    document = json.loads((DATA / "upstream_cases.json").read_text(encoding="utf-8"))
    found = [Reference(**{**entry, "arguments": tuple(entry["arguments"])}) for entry in document["cases"]]
    return {reference.test: reference for reference in found}


@functools.cache
def differences() -> Mapping[str, Any]:
    """Return the reviewed file of intended differences."""
    loaded: Mapping[str, Any] = yaml.safe_load((DATA / "upstream_differences.yaml").read_text(encoding="utf-8"))
    return loaded


@functools.cache
def cases() -> Mapping[str, Case]:
    """Return all our cases for NPUs by the id of their test, those of simulated runners left out."""
    found = {}
    catalogue = load_catalogue(None)
    for path in sorted((ROOT / "tests" / "e2e_npu").glob("test_*.py")):
        module = importlib.import_module(f"tests.e2e_npu.{path.stem}")
        for name, test in vars(module).items():
            for mark in getattr(test, "pytestmark", ()) if name.startswith("test_") else ():
                if mark.name not in {tier.value for tier in Tier}:
                    continue
                case = case_from_arguments(f"tests/e2e_npu/{path.name}::{name}", Tier(mark.name), mark.args, mark.kwargs)
                if not catalogue.get(case.runners[0]).simulated:
                    found[case.name] = case
    return found


def quarantine_of(test: str) -> Quarantine | None:
    """Return the quarantine of one of our cases, None where it is on."""
    path, _, name = test.partition("::")
    marks = getattr(importlib.import_module(f"tests.e2e_npu.{Path(path).stem}"), name).pytestmark
    found = [mark for mark in marks if mark.name == "quarantine"]
    return quarantine_from_arguments(test, found[0].args, found[0].kwargs) if found else None


def recipe_of(test: str) -> Recipe | SFT:
    """Return the recipe of one of our cases."""
    recipe = cases()[test].recipe
    assert recipe is not None, f"{test} has no recipe in its marker"
    return recipe


@functools.cache
def plans() -> Mapping[str, Plan]:
    """Return the plan of each of our cases, with the paths of the reference, so that only what is meant can differ."""
    found = {}
    for test, case in cases().items():
        values = references()[test].values
        model = values.get("actor_rollout_ref.model.path") or values["model.path"]
        runner = load_catalogue(None).get(case.runners[0])
        inputs = Inputs(
            model_path=model,
            train_files=_first(values["data.train_files"]),
            val_files=_first(values["data.val_files"]),
            n_gpus_per_node=runner.devices,
            nnodes=case.nodes,
        )
        found[test] = judge(recipe_of(test), runner.devices, case.nodes, inputs=inputs)
    return found


@functools.cache
def invocations() -> Mapping[str, Invocation]:
    """Return their jobs as the commands that start them."""
    found = {}
    for test, reference in references().items():
        processes = reference.processes_per_node
        launcher = ("python3",) if processes is None else ("torchrun", f"--nproc_per_node={processes}")
        words = (*launcher, "-m", reference.module, f"--config-name={reference.config_name}", *reference.arguments)
        found[test] = invocation_of(words, reference.environment)
    return found


@functools.cache
def drafts() -> Mapping[str, Draft]:
    """Return the case that is written from each of their commands, by itself."""
    composed, catalogue = _composed(), load_catalogue(None)
    found = {}
    for test, invocation in invocations().items():
        command, base = requests_of(invocation)
        found[test] = draft_of(invocation, composed[_name(command)], composed[_name(base)], catalogue)
    return found


@functools.cache
def draft_compositions() -> Mapping[str, Composition]:
    """Return what verl composes of the cases that were written by themselves."""
    return dict(zip(drafts(), _compose([draft.request for draft in drafts().values()]), strict=True))


@functools.cache
def compositions() -> tuple[Mapping[str, Composition], Mapping[str, Composition]]:
    """Return what verl composes of our cases and of its own."""
    composed = _composed()
    return (
        {test: composed[_name(plan.request)] for test, plan in plans().items()},
        {test: composed[_name(request)] for test, request in _their_requests().items()},
    )


@functools.cache
def _their_requests() -> Mapping[str, Request]:
    configs = differences()["configurations"]
    return {
        test: Request(
            config_name=configs.get(reference.config_name, {}).get("instead", reference.config_name),
            arguments=reference.arguments,
        )
        for test, reference in references().items()
    }


@functools.cache
def _composed() -> Mapping[tuple[str, tuple[str, ...]], Composition]:
    """Return all that is composed before a case is written, each once, all in one child."""
    ours = [plan.request for plan in plans().values()]
    written_from = [request for invocation in invocations().values() for request in requests_of(invocation)]
    requests = {_name(request): request for request in (*ours, *_their_requests().values(), *written_from)}
    return dict(zip(requests, _compose(list(requests.values())), strict=True))


def _name(request: Request) -> tuple[str, tuple[str, ...]]:
    return request.config_name, request.arguments


def _compose(requests: Sequence[Request]) -> tuple[Composition, ...]:
    return compose_cases(
        requests,
        deadline=Deadline.after(1200, name="composing all cases"),
        python=sys.executable,
        environment={**os.environ, "HOME": HOME},
    )


def leaves(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of a configuration, dotted."""
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _first(value: str) -> str:
    """Return the file of a value that is one, or a list of one."""
    return value.strip("[]").strip("'")
