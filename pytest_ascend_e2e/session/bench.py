"""The use case: a recipe becomes a finished run.

Dataset and weights first, then the preflight, and only then devices: what can be known without one is known before one is held.
Must not know: pytest, or how anything is shown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from ..datasets import Difficulty, PreparedDataset, name_problem, prepare
from ..deadline import Deadline
from ..errors import ModelError, PreflightError
from ..launch import Command, simulation_env, simulation_overrides
from ..models import architecture_of, find_model, make_tiny, tiny_sizes
from ..preflight import Plan, judge
from ..recipe import SFT, Inputs, Recipe, to_environment
from ..runners import Lease, Runner, Waiting
from .baselines import find_baselines
from .case import Case
from .changes import changes_of
from .commit import commit_of
from .compositions import Compositions
from .deadlines import wait_limit
from .entry import entry_of
from .host import doubtful_dataset, findings_here, input_findings
from .merging import merged
from .pool import device_pool
from .ready_data import ready_files
from .run import Run
from .run_ports import RunPorts, leased_ports
from .settings import Settings
from .simulated import refuse_unsimulated
from .training import Observer, Training


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """Where the cases of one test are planned and trained: a runner, the settings of the session, the caller's environment.

    `runner` has as many devices as the case takes; `host_devices` is how many a simulated host has in all, where that is more.
    `test_file` is the file of the test, beside which baselines stand; `rerun` the shell command that repeats the test;
    `compositions` what verl composed already in this session; `waiting` is told what a case waits for that has no devices yet.
    """

    settings: Settings
    runner: Runner
    environ: Mapping[str, str] = field(repr=False)
    test_file: Path
    rerun: str
    compositions: Compositions | None = None
    host_devices: int | None = None
    waiting: Callable[[Waiting], None] | None = field(default=None, repr=False)

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

    def model(self, recipe: Recipe | SFT) -> Path:
        """Return the weights of a recipe: the runner's own, or on a simulated runner a tiny model of the same architecture.

        Raises:
            ModelError: there are none, or no tiny model of this architecture can be made.
        """
        if not self.runner.simulated:
            return find_model(recipe.model, self.settings.models_root)
        return make_tiny(
            recipe.model,
            cache_root=self.settings.cache_root / "models",
            train_files=self._files(recipe)[0],
            python=self.settings.python,
            deadline=Deadline.after(self.settings.run_timeout_s, name="making the tiny model"),
        )

    def changed(self, recipe: Recipe | SFT) -> Recipe | SFT:
        """Return the recipe with the number of steps that the session asks for instead of its own."""
        return recipe if self.settings.steps is None else replace(recipe, steps=self.settings.steps)

    def draft(self, case: Case, recipe: Recipe | SFT) -> Plan:
        """Judge a recipe without a device and without verl; weights and data stand in angle brackets, as none is looked for."""
        recipe = self.changed(recipe)
        inputs = self._inputs(
            case, model=f"<weights of {recipe.model}>", train=f"<{recipe.dataset} train>", val=f"<{recipe.dataset} test>"
        )
        return self._judge(case, recipe, inputs, {}, None)

    def plan(self, case: Case, recipe: Recipe | SFT) -> tuple[Plan, Command]:
        """Judge a recipe without a device, with what verl's own composition says of it, and return what would be run."""
        draft = self.draft(case, recipe)
        plan = self._composed(draft)
        return plan, Command(argv=self._argv(plan), env=self._environment(recipe), cwd=Path.cwd())

    def check_host(self, recipe: Recipe | SFT | None = None) -> None:
        """Refuse a host that no training can work on, or not that of a recipe: asked before a lease, never after.

        Raises:
            PreflightError: with one text for each thing that is missing.
        """
        found = [str(finding) for finding in findings_here(self.runner, self.settings, self.environ) if finding.is_error]
        problems = [f"this host cannot train on {self.runner.name}: {text}" for text in found]
        problems += [] if recipe is None else self.input_problems(recipe)
        if problems:
            raise PreflightError(*problems)

    def input_problems(self, recipe: Recipe | SFT) -> list[str]:
        """Return what is wrong with the weights and data that a training here would read.

        A simulation makes its own, so that there a name must be one of those that can be made, whatever lies ready.
        """
        if self.runner.simulated:
            unknown = name_problem(recipe.dataset)
            return [] if unknown is None else [unknown]
        return [str(finding) for finding in input_findings(recipe.model, recipe.dataset, self.settings)]

    def input_doubts(self, recipe: Recipe | SFT) -> list[str]:
        """Return what looks wrong with data that another host may have, as `input_problems` is asked of this one only."""
        doubt = doubtful_dataset(recipe.dataset, self.settings)
        return [] if doubt is None else [doubt]

    def lease(self, case: Case) -> Lease:
        """Return as many devices as the case takes, as soon as they are free.

        Raises:
            PreflightError: no training can work on this host, or not that of the case.
            LeaseError: they were not free in time; the message names who holds them.
        """
        self.check_host(case.recipe)
        return self._lease(case)

    def _lease(self, case: Case) -> Lease:
        simulated = (self.host_devices or self.runner.devices) if self.runner.simulated else None
        pool = device_pool(self.environ, self.settings.lock_dir, simulated=simulated)
        deadline = Deadline.after(wait_limit(case, self.settings), name="waiting for devices")
        return pool.lease(self.runner.devices, deadline=deadline, owner=case.name, tell=self.waiting)

    def train(
        self,
        case: Case,
        recipe: Recipe | SFT,
        *,
        lease: Lease | None = None,
        observe: Observer | None = None,
        unfinished: Callable[[Run], None] = lambda _: None,
    ) -> Run:
        """Train a recipe and return the finished run, whichever way it ended.

        `lease` holds the devices if the caller has them already; `observe` is told each step when it ends; `unfinished` gets the
        run of a training that is interrupted, before the interruption goes on.

        Raises:
            E2EError: the training could not be started: dataset, weights, preflight, devices or launch.
        """
        recipe = self.changed(recipe)
        if lease is None:
            self.check_host(recipe)
        train, val = self._files(recipe)
        model = self.model(recipe)
        inputs = self._inputs(case, model=str(model), train=str(train), val=str(val))
        commit = commit_of(self.test_file.parent)
        with Training(
            case=case, recipe=recipe, runner=self.runner, settings=self.settings, rerun=self.rerun, commit=commit
        ) as training:
            plan = self._composed(self._judge(case, recipe, inputs, training.overrides, model))
            if plan.problems:
                raise PreflightError(*(f"cannot work on {self.runner.name}: {problem}" for problem in plan.problems))
            baselines = find_baselines(self.test_file, case.name, self.runner.name)
            with nullcontext(lease) if lease is not None else self._lease(case) as held, self._ports(case) as ports:
                return training.run(
                    plan=plan,
                    config="" if plan.config is None else yaml.safe_dump(dict(plan.config), sort_keys=False),
                    argv=self._argv(plan),
                    environment={**ports.variables, **self._environment(recipe)},
                    environ=self.environ,
                    # Whoever of the run outlives this process keeps its ports as it keeps its devices.
                    lease=replace(held, fds=(*held.fds, *ports.fds)),
                    baselines=baselines,
                    observe=observe,
                    unfinished=unfinished,
                )

    def _ports(self, case: Case) -> AbstractContextManager[RunPorts]:
        if self.runner.simulated:
            return nullcontext(RunPorts(variables={}))
        wait_s = wait_limit(case, self.settings)
        return leased_ports(self.settings.lock_dir, devices=self.runner.devices, owner=case.name, wait_s=wait_s)

    def _inputs(self, case: Case, *, model: str, train: str, val: str) -> Inputs:
        return Inputs(model_path=model, train_files=train, val_files=val, n_gpus_per_node=self.runner.devices, nnodes=case.nodes)

    def _files(self, recipe: Recipe | SFT) -> tuple[Path, Path]:
        """Return the files to train from and to validate with."""
        ready = None if self.runner.simulated else ready_files(recipe.dataset, self.settings.datasets_root)
        if ready is not None:
            return ready
        data = self.dataset(recipe.dataset)
        return data.train_files, data.val_files

    def _judge(self, case: Case, recipe: Recipe | SFT, inputs: Inputs, overrides: Mapping[str, object], model: Path | None) -> Plan:
        """Return the plan before verl composed it.

        `model` is the directory of the weights, whose configuration tells heads, layers and experts; None where it is not at hand.

        Raises:
            PreflightError: the runner is a simulated one, and there is no simulation of this trainer or of this model.
        """
        if self.runner.simulated:
            refuse_unsimulated(recipe, self.runner.name)
        facts: Mapping[str, object] | None = None
        if model is not None:
            facts = json.loads((model / "config.json").read_text(encoding="utf-8"))
        elif self.runner.simulated:
            # The tiny model is not made yet, but its sizes are known; what is published of the real one does not hold for it.
            try:
                facts = tiny_sizes(architecture_of(recipe.model))
            except ModelError as error:
                raise PreflightError(*error.problems) from error
        simulation = simulation_overrides(self.runner.devices) if self.runner.simulated else {}
        extra = merged(merged(simulation, overrides), changes_of(self.settings.changes))
        return judge(recipe, self.runner.devices, case.nodes, inputs=inputs, extra=extra, model_config=facts)

    def _composed(self, plan: Plan) -> Plan:
        compositions = self.compositions or Compositions(self.settings.python)
        return plan.with_composition(compositions.of(plan.request))

    def _argv(self, plan: Plan) -> tuple[str, ...]:
        return (self.settings.python, *entry_of(plan.recipe, self.runner.devices), *plan.arguments)

    def _environment(self, recipe: Recipe | SFT) -> dict[str, str]:
        """Return what this run adds to the caller's environment; of all that asks for a place on PYTHONPATH, nothing is lost."""
        simulation = simulation_env() if self.runner.simulated else {}
        own = to_environment(recipe)
        places = [layer["PYTHONPATH"] for layer in (simulation, own, self.environ) if layer.get("PYTHONPATH")]
        return {**simulation, **own, **({"PYTHONPATH": os.pathsep.join(places)} if places else {})}
