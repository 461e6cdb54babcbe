"""The fixtures of a case: the finished training, the factory behind it, and the parts for people who want those.

Must not know: how any of it is done; `session/` does it.
"""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..datasets import PreparedDataset
from ..errors import E2EError
from ..recipe import SFT, Layout, Recipe, plan_layout
from ..runners import Lease, Runner
from ..session import Bench, Case, Run
from .guard import PLAN_PROPERTY
from .markers import CASE_KEY
from .planning import plan_case
from .progress import Progress, tell_waiting
from .state import State, environment, relative, state_of

RUNS_KEY = pytest.StashKey[list[Run]]()
TRAINER_KEY = pytest.StashKey["Trainer"]()


class Trainer:
    """Trains recipes for one test, as often as the test asks; every run is judged at the end of the test."""

    def __init__(self, *, bench: Bench, item: pytest.Item, state: State, case: Case) -> None:
        self._bench = bench
        self._item = item
        self._state = state
        self._case = case
        self.lease: Lease | None = None

    def __call__(self, recipe: Recipe | SFT) -> Run:
        """Train `recipe` and return the finished run; in plan mode judge it and stop the test here.

        A training that the machine ended is repeated as often as `--e2e-retries` says; every attempt keeps its record.
        """
        if self._state.is_plan:
            plan_case(self._item, self._case, recipe, self._state)
        self._item.stash[TRAINER_KEY] = self
        run = self._attempt(recipe)
        for _ in range(self._state.settings.retries):
            if not run.record.is_infra_failure:
                break
            failed, run = run, self._attempt(recipe)
            failed.replace_by(run)
        return run

    def _attempt(self, recipe: Recipe | SFT) -> Run:
        runs = self._item.stash.setdefault(RUNS_KEY, [])
        runs.append(self.repeat(recipe, unfinished=runs.append))
        return runs[-1]

    def repeat(self, recipe: Recipe | SFT, *, unfinished: Callable[[Run], None]) -> Run:
        """Train `recipe` and return the finished run, which is none of the test's own; `unfinished` gets an interrupted one."""
        steps = self._bench.changed(recipe).steps
        with Progress(self._item, name=self._case.name, steps=steps) as progress:
            return self._bench.train(self._case, recipe, lease=self.lease, observe=progress.saw, unfinished=unfinished)


def case_of_item(request: pytest.FixtureRequest) -> Case:
    """Return the case of the test that asks for a fixture."""
    case: Case | None = request.node.stash.get(CASE_KEY, None)
    if case is None:
        raise E2EError(
            f"fixture {request.fixturename!r} needs a case: "
            f"mark {request.node.name} with @npu_nightly(runner=...) or @npu_e2e(runner=...)"
        )
    return case


def runner_of(case: Case, state: State) -> Runner:
    """Return the runner that the case runs on in this session, with as many devices as the case takes."""
    return case.share_of(host_of(case, state))


def host_of(case: Case, state: State) -> Runner:
    """Return the whole runner that the case runs on in this session."""
    return state.catalogue.get(case.runners[0]) if state.runner is None else state.runner


@pytest.fixture
def _bench(request: pytest.FixtureRequest) -> Bench:
    state = state_of(request.config)
    case = case_of_item(request)
    return Bench(
        settings=state.settings,
        runner=runner_of(case, state),
        host_devices=host_of(case, state).devices,
        environ=environment(),
        test_file=request.path,
        rerun=rerun_command(request.config, request.node.nodeid),
        compositions=state.compositions,
        waiting=functools.partial(tell_waiting, request.config, case.name),
    )


def rerun_command(config: pytest.Config, nodeid: str) -> str:
    """Return the shell command that repeats one case, typed in the root directory: its id, its runner, and every flag given."""
    state = state_of(config)
    parts = ["pytest", nodeid]
    given = {
        name: setting
        for name, setting in state.found.items()
        if setting.source == setting.option.flag and setting.option.is_of_case
    }
    if "runner" not in given and state.runner is not None:
        parts += ["--runner", state.runner.name]
    for setting in given.values():
        for text in (relative(setting.value, config),) if isinstance(setting.value, Path) else setting.texts:
            # A path after a space is a place of tests to pytest, and what begins with a hyphen an option.
            parts += [f"{setting.option.flag}={text}"] if os.sep in text or text.startswith("-") else [setting.option.flag, text]
    if state.is_elsewhere:
        parts.append("--e2e-elsewhere")
    return shlex.join(parts)


@pytest.fixture
def train(request: pytest.FixtureRequest, _bench: Bench) -> Trainer:
    """The factory behind `run`: call it with any recipe, as often as a test needs (resume, two layouts, A against B)."""
    return Trainer(bench=_bench, item=request.node, state=state_of(request.config), case=case_of_item(request))


@pytest.fixture
def run(request: pytest.FixtureRequest, train: Trainer) -> Run:
    """The finished training of the case's recipe."""
    case = case_of_item(request)
    if case.recipe is None:
        raise E2EError(f"fixture 'run' needs a recipe: give one to the marker of {request.node.name}, or use the fixture 'train'")
    return train(case.recipe)


@pytest.fixture
def npus(request: pytest.FixtureRequest, train: Trainer, _bench: Bench) -> Iterator[Lease]:
    """The devices of the case, held for the whole test; trainings of the test use them."""
    state, case = state_of(request.config), case_of_item(request)
    if state.is_plan:
        taken = f"takes {runner_of(case, state).devices} devices"
        request.node.user_properties.append((PLAN_PROPERTY, f"{case.name}: {taken}, and has no recipe to judge"))
        pytest.skip(f"planned, not run: {taken}")
    with _bench.lease(case) as lease:
        train.lease = lease
        yield lease
        train.lease = None


@pytest.fixture
def layout(request: pytest.FixtureRequest) -> Layout:
    """How the recipe's parallel sizes fill the runner's devices."""
    case = case_of_item(request)
    if case.recipe is None:
        raise E2EError(
            f"fixture 'layout' needs a recipe in the marker of {request.node.name}; or call plan_layout(recipe, devices)"
        )
    return plan_layout(case.recipe, runner_of(case, state_of(request.config)).devices, case.nodes)


@pytest.fixture
def model_path(request: pytest.FixtureRequest, _bench: Bench) -> str:
    """The weights of the recipe: a directory on an NPU runner, a tiny model of the same architecture on a simulated one."""
    case = case_of_item(request)
    if case.recipe is None:
        raise E2EError(f"fixture 'model_path' needs a recipe in the marker of {request.node.name}")
    return str(_bench.model(case.recipe))


@pytest.fixture
def geometry3k(_bench: Bench) -> PreparedDataset:
    """geometry3k as verl reads it: raw data of the runner, generated on simulated NPUs."""
    return _bench.dataset("geometry3k")


@pytest.fixture
def gsm8k(_bench: Bench) -> PreparedDataset:
    """gsm8k as verl reads it: raw data of the runner, generated on simulated NPUs."""
    return _bench.dataset("gsm8k")
