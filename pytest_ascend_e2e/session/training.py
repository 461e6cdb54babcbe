"""One training: its run directory, its supervised process, and the run that is left when it has ended.

Must not know: how dataset, weights and plan came about; `bench.py` brings them.
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import final

from ..diagnosis import FatalWatch, diagnose
from ..launch import (
    Command,
    Exit,
    Limits,
    RunDirectory,
    Supervisor,
    build_environment,
    make_ray_home,
    name_ray_home,
    new_run_id,
    ray_overrides,
    sweep_dead_sessions,
)
from ..metrics import Metrics, read_jsonl
from ..preflight import Plan
from ..recipe import SFT, Recipe
from ..records import Diagnosis, Ending, RunRecord
from ..runners import Lease, Runner
from ..verdict import Baseline
from .case import Case
from .commit import Commit
from .figures import figures
from .run import Run
from .settings import Settings
from .versions import versions

Observer = Callable[[int, Mapping[str, "float | None"]], None]


@final
class Training:
    """A training that is about to run: it has an id and a Ray directory of its own; a context manager that removes the latter."""

    def __init__(self, *, case: Case, recipe: Recipe | SFT, runner: Runner, settings: Settings, rerun: str, commit: Commit) -> None:
        self._case = case
        self._recipe = recipe
        self._runner = runner
        self._settings = settings
        self._rerun = rerun
        self._commit = commit
        self._run_id = new_run_id(case.name, now=_now(), token=secrets.token_hex(3))
        self._ray_home = name_ray_home(self._run_id)
        self._swept: Sequence[str] = ()

    def __enter__(self) -> Training:
        # Before a device is asked for: what a session left that was killed together with its keeper may still hold one.
        self._swept = sweep_dead_sessions().ended
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        shutil.rmtree(self._ray_home, ignore_errors=True)  # gone already if the training ran

    @property
    def overrides(self) -> dict[str, object]:
        """The overrides that keep this run apart from every other on the host."""
        # The configuration of a supervised fine-tuning has no place for Ray's.
        return {} if isinstance(self._recipe, SFT) else ray_overrides(self._ray_home)

    def run(
        self,
        *,
        plan: Plan,
        config: str,
        argv: Sequence[str],
        environment: Mapping[str, str],
        environ: Mapping[str, str],
        lease: Lease,
        baselines: Mapping[str, Baseline],
        observe: Observer | None,
    ) -> Run:
        """Train, and return the finished run, whichever way it ended.

        A training that is interrupted leaves its record too, before the interruption goes on.
        """
        path = self._settings.run_root / self._run_id
        own = {**environment, **RunDirectory(path).variables}
        if not self._runner.simulated:
            own["ASCEND_RT_VISIBLE_DEVICES"] = ",".join(map(str, lease.device_ids))
        command = Command(argv=tuple(argv), env=build_environment(environ, extra=own), cwd=path)
        directory = RunDirectory.create(path, env=command.env)
        directory.write_command(command, ray_home=self._ray_home)
        directory.write_config(config)
        supervisor = self._supervisor(command, directory, lease, observe)
        started = _now()
        # As late as can be: from the next line on a keeper removes it, whatever becomes of this process.
        make_ray_home(self._ray_home)

        def finished(ended: Exit) -> Run:
            metrics = read_jsonl(directory.metrics.read_bytes().splitlines(keepends=True) if directory.metrics.exists() else ())
            record = self._record(plan, directory, lease, metrics, ended, started, environ)
            directory.write_record(record.to_json())
            dtype = "float32" if self._runner.simulated else "bfloat16"
            return Run(recipe=self._recipe, record=record, metrics=metrics, directory=directory, baselines=baselines, dtype=dtype)

        try:
            return finished(supervisor.run())
        except BaseException:
            if supervisor.exit is not None:
                finished(supervisor.exit)
            raise

    def _supervisor(self, command: Command, directory: RunDirectory, lease: Lease, observe: Observer | None) -> Supervisor:
        steps = self._recipe.steps

        def progress(lines: Sequence[bytes]) -> str | None:
            last = None
            for line in lines:
                entry = _entry(line)
                if entry is not None:
                    last, data = entry
                    if observe is not None:
                        observe(last, data)
            return None if last is None else f"step {last} of {steps}"

        limits = Limits(
            total_s=self._case.timeout_s or self._settings.run_timeout_s,
            silence_s=self._case.silence_s or self._settings.silence_timeout_s,
        )
        return Supervisor(
            command,
            directory,
            run_id=self._run_id,
            limits=limits,
            is_fatal=FatalWatch(steps).feed,
            progress=progress,
            fds=lease.fds,
            ray_home=self._ray_home,
        )

    def _record(
        self,
        plan: Plan,
        directory: RunDirectory,
        lease: Lease,
        metrics: Metrics,
        ended: Exit,
        started: dt.datetime,
        environ: Mapping[str, str],
    ) -> RunRecord:
        recipe, runner = self._recipe, self._runner
        return RunRecord(
            run_id=self._run_id,
            case=self._case.name,
            runner=runner.name,
            devices=runner.devices * self._case.nodes,
            nodes=self._case.nodes,
            device_ids=lease.device_ids,
            model=recipe.model,
            dataset=recipe.dataset,
            algorithm=recipe.algorithm_name,
            engine=recipe.engine.name,
            rollout=recipe.rollout_name,
            layout=str(plan.layout),
            steps=recipe.steps,
            started_at=started.isoformat(timespec="seconds"),
            duration_s=ended.duration_s,
            ending=ended.ending,
            exit_status=ended.exit_status,
            signal=ended.signal,
            end_reason=ended.end_reason or "exit status 0",
            run_dir=str(directory.path),
            rerun_command=self._rerun,
            last_step=max(metrics.steps, default=None),
            summary=figures(metrics),
            versions=versions(self._settings.python, environ),
            diagnosis=_diagnosis(directory.log, ended),
            problems=[
                *(f"of a session that is gone, ended before this run: {name}" for name in self._swept),
                *(f"left behind and ended: {name}" for name in (*ended.leftovers, *ended.stuck)),
            ],
            commit=self._commit.name,
            is_dirty=self._commit.is_dirty,
            device=runner.chip,
            changed=self._settings.told_changes,
        )


def _diagnosis(log: Path, ended: Exit) -> Diagnosis | None:
    if ended.ending is Ending.EXITED and ended.exit_status == 0:
        return None
    with log.open("rb") as lines:
        return diagnose(lines, exit_status=ended.exit_status, signal=ended.signal, ending=ended.ending, end_reason=ended.end_reason)


def _entry(line: bytes) -> tuple[int, dict[str, float | None]] | None:
    """Return step and numbers of one line of metrics, None for a line that is not whole: the last reading tells of it."""
    try:
        entry = json.loads(line)
        return int(entry["step"]), dict(entry["data"])
    except (ValueError, KeyError, TypeError):
        return None


def _now() -> dt.datetime:
    return dt.datetime.now(dt.timezone.utc)
