"""The use case: a recipe becomes a finished run.

Dataset and weights first, then the preflight, and only then devices: what can be known without one is known before one is held.
Must not know: pytest, or how anything is shown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from ..datasets import Difficulty, PreparedDataset, prepare
from ..deadline import Deadline
from ..errors import PreflightError
from ..launch import Command, simulation_env, simulation_overrides
from ..models import find_model, make_tiny
from ..preflight import Plan, compose_cases, judge
from ..recipe import Inputs, Recipe, to_environment
from ..runners import DevicePool, Lease, LockDirectory, Runner, Slot, find_devices, simulated_slots
from .baselines import find_baselines
from .case import Case
from .commit import commit_of
from .merging import merged
from .run import Run
from .settings import Settings
from .training import Observer, Training

MAIN = ("-m", "verl.trainer.main_ppo")
COMPOSITION_LIMIT_S = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """Where the cases of one test are planned and trained: a runner, the settings of the session, the caller's environment.

    `test_file` is the file of the test, beside which baselines stand; `rerun` the shell command that repeats the test.
    """

    settings: Settings
    runner: Runner
    environ: Mapping[str, str] = field(repr=False)
    test_file: Path
    rerun: str

    def dataset(self, name: str) -> PreparedDataset:
        """Return a prepared dataset, from the cache where it is there already.

        Raises:
            DatasetError: the raw data is missing, unreadable or not of the expected shape.
        """
        return prepare(
            name,
            raw_root=self.settings.datasets_root,
            cache_root=self.settings.cache_root / "datasets",
            generate=Difficulty.SIMPLE if self.runner.simulated else None,
        )

    def model(self, recipe: Recipe) -> Path:
        """Return the weights of a recipe: the runner's own, or on a simulated runner a tiny model of the same architecture.

        Raises:
            ModelError: there are none, or no tiny model of this architecture can be made.
        """
        if not self.runner.simulated:
            return find_model(recipe.model, self.settings.models_root)
        return make_tiny(
            recipe.model,
            cache_root=self.settings.cache_root / "models",
            train_files=self.dataset(recipe.dataset).train_files,
            python=self.settings.python,
            deadline=Deadline.after(self.settings.run_timeout_s, name="making the tiny model"),
        )

    def plan(self, case: Case, recipe: Recipe) -> tuple[Plan, Command]:
        """Judge a recipe without a device; the command names weights and data in angle brackets, as none is looked for."""
        inputs = self._inputs(
            case, model=f"<weights of {recipe.model}>", train=f"<{recipe.dataset} train>", val=f"<{recipe.dataset} test>"
        )
        plan, _ = self._judge(case, recipe, inputs, {}, None)
        return plan, Command(argv=self._argv(plan), env=self._environment(recipe), cwd=Path.cwd())

    def lease(self, case: Case) -> Lease:
        """Return all devices of this runner, as soon as they are free.

        Raises:
            LeaseError: they were not free in time; the message names who holds them.
        """
        pool = DevicePool(slots=self._slots(), locks=LockDirectory(self.settings.lock_dir))
        deadline = Deadline.after(self.settings.lease_timeout_s, name="waiting for devices")
        return pool.lease(self.runner.devices, deadline=deadline, owner=case.name)

    def train(self, case: Case, recipe: Recipe, *, lease: Lease | None = None, observe: Observer | None = None) -> Run:
        """Train a recipe and return the finished run, whichever way it ended.

        `lease` holds the devices if the caller has them already; `observe` is told each step when it ends.

        Raises:
            E2EError: the training could not be started: dataset, weights, preflight, devices or launch.
        """
        data = self.dataset(recipe.dataset)
        model = self.model(recipe)
        inputs = self._inputs(case, model=str(model), train=str(data.train_files), val=str(data.val_files))
        commit = commit_of(self.test_file.parent)
        with Training(
            case=case, recipe=recipe, runner=self.runner, settings=self.settings, rerun=self.rerun, commit=commit
        ) as training:
            plan, config = self._judge(case, recipe, inputs, training.overrides, model)
            if plan.problems:
                raise PreflightError(*(f"{case.name} cannot work on {self.runner.name}: {problem}" for problem in plan.problems))
            baselines = find_baselines(self.test_file, case.name, self.runner.name)
            with nullcontext(lease) if lease is not None else self.lease(case) as held:
                return training.run(
                    plan=plan,
                    config=config,
                    argv=self._argv(plan),
                    environment=self._environment(recipe),
                    environ=self.environ,
                    lease=held,
                    baselines=baselines,
                    observe=observe,
                )

    def _inputs(self, case: Case, *, model: str, train: str, val: str) -> Inputs:
        return Inputs(model_path=model, train_files=train, val_files=val, n_gpus_per_node=self.runner.devices, nnodes=case.nodes)

    def _judge(
        self, case: Case, recipe: Recipe, inputs: Inputs, overrides: Mapping[str, object], model: Path | None
    ) -> tuple[Plan, str]:
        """Return the plan, and the configuration that verl composes from it as YAML, empty where it could not be composed.

        `model` is the directory of the weights, whose configuration tells heads, layers and experts; None where it is not at hand.
        """
        facts = None if model is None else json.loads((model / "config.json").read_text(encoding="utf-8"))
        simulation = simulation_overrides(self.runner.devices) if self.runner.simulated else {}
        plan = judge(
            recipe, self.runner.devices, case.nodes, inputs=inputs, extra=merged(simulation, overrides), model_config=facts
        )
        deadline = Deadline.after(COMPOSITION_LIMIT_S, name="composing the configuration")
        (composition,) = compose_cases([plan.overrides], deadline=deadline, python=self.settings.python)
        return plan.with_composition(composition), composition.text or ""

    def _argv(self, plan: Plan) -> tuple[str, ...]:
        return (self.settings.python, *MAIN, *plan.arguments)

    def _environment(self, recipe: Recipe) -> dict[str, str]:
        """Return what this run adds to the caller's environment; of all that asks for a place on PYTHONPATH, nothing is lost."""
        simulation = simulation_env() if self.runner.simulated else {}
        own = to_environment(recipe)
        places = [layer["PYTHONPATH"] for layer in (simulation, own, self.environ) if layer.get("PYTHONPATH")]
        return {**simulation, **own, **({"PYTHONPATH": os.pathsep.join(places)} if places else {})}

    def _slots(self) -> tuple[Slot, ...]:
        return simulated_slots(self.runner.devices) if self.runner.simulated else find_devices(self.environ).slots
