"""One training: its run directory, its supervised process, and the run that is left when it has ended.

Must not know: how dataset, weights and plan came about; `bench.py` brings them.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import secrets
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import final

from ..diagnosis import FatalWatch, diagnose
from ..errors import HistoryError
from ..history import History
from ..launch import (
    UNFINISHED,
    Book,
    Command,
    Exit,
    Leftovers,
    RunDirectory,
    Supervisor,
    build_environment,
    home_variables,
    make_ray_home,
    name_ray_home,
    new_run_id,
    own_modules,
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
from .deadlines import limits_of
from .figures import figures
from .run import Run
from .settings import Settings
from .versions import image_of, versions

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
        self._swept = Leftovers()

    def __enter__(self) -> Training:
        # Before a device is asked for: what a session left that was killed together with its keeper may still hold one.
        self._swept = sweep_dead_sessions()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        shutil.rmtree(self._ray_home, ignore_errors=True)  # gone already if the training ran

    @property
    def overrides(self) -> dict[str, object]:
        """The overrides that keep this run apart from every other on the host."""
        # The configuration of a supervised fine-tuning has no place for Ray's.
        return {} if isinstance(self._recipe, SFT) else ray_overrides(self._ray_home)

    def run(  # noqa: PLR0913  # each comes from another preparation
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
        unfinished: Callable[[Run], None],
    ) -> Run:
        """Train, and return the finished run, whichever way it ended.

        The run of a training that is interrupted is handed to `unfinished`, before the interruption goes on.
        """
        path = self._settings.run_root / self._run_id
        private = home_variables(self._ray_home)
        if self._runner.simulated:
            # All that is in it is what each model's class can, which vLLM imports itself once more to find out.
            private["VLLM_CACHE_ROOT"] = str(self._settings.cache_root / "vllm")
        own = {**private, **environment, **RunDirectory(path).variables}
        if not isinstance(self._recipe, SFT) and self._settings.python == sys.executable:
            # verl of another interpreter would not find the module that this names.
            own |= own_modules(environment, environ)
        if not self._runner.simulated:
            own["ASCEND_RT_VISIBLE_DEVICES"] = ",".join(map(str, lease.device_ids))
        command = Command(argv=tuple(argv), env=build_environment(environ, extra=own), cwd=path)
        draft = self._draft(plan, path, lease, environ)
        # From here on, if this process is killed, whoever is left tidies up and completes the record: keeper or next session.
        make_ray_home(self._ray_home, book=Book(run_id=self._run_id, run_dir=str(path.absolute())))
        directory = RunDirectory.create(path, env=command.env)
        directory.write_record(draft.to_json())
        self._keep(draft)
        directory.write_command(command, ray_home=self._ray_home)
        directory.write_config(config)
        if not self._runner.simulated:
            directory.make_device_logs()
        supervisor = self._supervisor(command, directory, lease, observe)

        def finished(ended: Exit) -> Run:
            metrics = metrics_of(directory)
            record = completed_record(draft, directory, metrics, ended)
            directory.write_record(record.to_json())
            return Run(recipe=self._recipe, record=record, metrics=metrics, directory=directory, baselines=baselines)

        try:
            return finished(supervisor.run())
        except BaseException as error:
            if supervisor.exit is None:
                record = dataclasses.replace(draft, end_reason=f"could not be started: {error}")
                directory.write_record(record.to_json())
                self._keep(record)
            else:
                unfinished(finished(supervisor.exit))
            raise

    def _keep(self, record: RunRecord) -> None:
        """Have a run in the history from its start: one whose session is killed stays there as what it is."""
        if self._settings.history is not None and not record.changed:
            with suppress(HistoryError):  # told when the run is concluded
                History(self._settings.history).add([record])

    def _supervisor(self, command: Command, directory: RunDirectory, lease: Lease, observe: Observer | None) -> Supervisor:
        steps = self._recipe.steps
        watch = FatalWatch(steps)
        return Supervisor(
            command,
            directory,
            run_id=self._run_id,
            limits=limits_of(self._case, self._settings),
            is_fatal=watch.feed,
            progress=progress_of(steps, observe),
            has_begun=lambda: watch.has_begun,
            fds=lease.fds,
            ray_home=self._ray_home,
        )

    def _draft(self, plan: Plan, path: Path, lease: Lease, environ: Mapping[str, str]) -> RunRecord:
        """Return the record of a run that is about to start, which says that it has not ended."""
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
            started_at=_now().isoformat(timespec="seconds"),
            duration_s=0.0,
            ending=Ending.INTERRUPTED,
            exit_status=None,
            signal=None,
            end_reason=UNFINISHED,
            run_dir=str(path.absolute()),
            rerun_command=self._rerun,
            versions=versions(self._settings.python, environ),
            image=self._settings.image or image_of(environ),
            problems=[
                *(f"of a session that is gone, ended before this run: {name}" for name in self._swept.ended),
                *(f"of a session that is gone, closed before this run: {name}" for name in self._swept.closed),
            ],
            commit=self._commit.name,
            is_dirty=self._commit.is_dirty,
            device=runner.chip,
            changed=self._changed(),
        )

    def _changed(self) -> tuple[str, ...]:
        """Return what makes this training another than the case's: another runner, and what the session lays over its recipe."""
        name = self._runner.name
        return (*(() if name in self._case.runners else (f"runner={name}",)), *self._settings.told_changes)


def metrics_of(directory: RunDirectory) -> Metrics:
    """Return the metrics that a training wrote; none where it ended before its first step."""
    return read_jsonl(directory.metrics.read_bytes().splitlines(keepends=True) if directory.metrics.exists() else ())


def completed_record(draft: RunRecord, directory: RunDirectory, metrics: Metrics, ended: Exit) -> RunRecord:
    """Return the record of a run that has ended, from the one that was written before it began."""
    return dataclasses.replace(
        draft,
        duration_s=ended.duration_s,
        ending=ended.ending,
        exit_status=ended.exit_status,
        signal=ended.signal,
        end_reason=ended.end_reason or "exit status 0",
        last_step=max(metrics.steps, default=None),
        summary=figures(metrics),
        host=ended.host,
        diagnosis=_diagnosis(directory.log, ended),
        problems=[*draft.problems, *_remains(ended)],
    )


def _remains(ended: Exit) -> list[str]:
    """Return what is to be said of processes that the training left, which decides no verdict."""
    gone = [name for name in ended.leftovers if name not in ended.stuck]
    texts = []
    if gone:
        texts.append(
            f"still there after the training's end, and ended by the session: {', '.join(gone)}; this alone makes no run red"
        )
    if ended.stuck:
        texts.append(
            f"still there after the training's end, and SIGKILL did not end them: {', '.join(ended.stuck)}; look at the host"
        )
    return texts


def progress_of(steps: int, observe: Observer | None) -> Callable[[Sequence[bytes]], str | None]:
    """Return what reads new lines of metrics, tells `observe` of each step, and says how far the training is."""

    def progress(lines: Sequence[bytes]) -> str | None:
        last = None
        for line in lines:
            entry = _entry(line)
            if entry is not None:
                last, data = entry
                if observe is not None:
                    observe(last, data)
        return None if last is None else f"step {last} of {steps}"

    return progress


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
