"""A run repeated from its directory: the same arguments and environment, on leased devices, supervised, and judged as it was.

Nothing is composed anew, so that the case may have changed since. Must not know: pytest, or how anything is shown.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
import secrets
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from ..deadline import Deadline
from ..diagnosis import FatalWatch
from ..errors import PreflightError
from ..launch import (
    UNFINISHED,
    Book,
    Command,
    Exit,
    Limits,
    RunDirectory,
    Supervisor,
    make_ray_home,
    name_ray_home,
    new_run_id,
    read_command,
    sweep_dead_sessions,
    with_changes,
)
from ..records import Ending, RunRecord
from ..runners import Catalogue, Lease
from .existing import ExistingRun
from .judging import asked_again, judge_again
from .pool import device_pool
from .run_ports import RunPorts, leased_ports
from .training import Observer, completed_record, metrics_of, progress_of
from .versions import image_of, versions

STEPS_KEY = "trainer.total_training_steps"
# Arguments that name what a training reads: on another machine it lies elsewhere.
_INPUT = re.compile(
    r"\+*(?P<key>[\w.]*(?:model\.(?:path|tokenizer_path|partial_pretrain)|_files|reward_function\.path))=(?P<path>/.*)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Repetition:
    """What is repeated, with which changes (KEY=VALUE, in verl's own keys), and where. Durations are in seconds.

    `flags` are what the command that repeats it once more has besides its changes.
    """

    existing: ExistingRun
    catalogue: Catalogue
    environ: Mapping[str, str] = field(repr=False)
    run_root: Path
    lock_dir: Path
    timeout_s: float
    silence_s: float
    lease_timeout_s: float
    changes: Sequence[str] = ()
    steps: int | None = None
    python: str | None = None
    flags: Sequence[str] = ()

    def run(self, observe: Observer | None = None) -> ExistingRun:
        """Train, judge by the checks and limits of the recorded run, and return the run that came of it, its record written.

        Raises:
            E2EError: it cannot be started: something that it reads is not here, or the devices are not free.
        """
        record = self.existing.record
        run_id = new_run_id(record.case, now=_now(), token=secrets.token_hex(3))
        ray_home = name_ray_home(run_id)
        path = self.run_root / run_id
        command = self._command(path, ray_home)
        sweep_dead_sessions()
        with self._lease() as lease, self._ports() as ports:
            is_simulated = self.catalogue.get(record.runner).simulated
            if not is_simulated:
                own = {"ASCEND_RT_VISIBLE_DEVICES": ",".join(map(str, lease.device_ids)), **ports.variables}
                command = dataclasses.replace(command, env={**command.env, **own})
            draft = self._draft(run_id, path, lease, python=command.argv[0])
            make_ray_home(ray_home, book=Book(run_id=run_id, run_dir=str(path)))
            directory = RunDirectory.create(path, env=command.env)
            directory.write_record(draft.to_json())
            directory.write_command(command, ray_home=ray_home)
            shutil.copyfile(RunDirectory(self.existing.directory).config, directory.config)
            if not is_simulated:
                directory.make_device_logs()
            held = dataclasses.replace(lease, fds=(*lease.fds, *ports.fds))
            ended = self._supervise(command, directory, run_id, held, ray_home, observe)
        metrics = metrics_of(directory)
        made = completed_record(draft, directory, metrics, ended)
        directory.write_record(made.to_json())
        again = ExistingRun(directory=path, record=made, metrics=metrics)
        asked = asked_again(again, changes=self._changed_arguments())
        judged = dataclasses.replace(made, checks=judge_again(again, asked), asked=asked)
        directory.write_record(judged.to_json())
        return dataclasses.replace(again, record=judged)

    @property
    def told_changes(self) -> tuple[str, ...]:
        """What makes the repeat another training than the recorded one."""
        return (*(() if self.steps is None else (f"steps={self.steps}",)), *self.changes)

    def _changed_arguments(self) -> dict[str, dict[str, object]]:
        """Return the arguments of checks that follow from a recipe, as far as the changes make others of them."""
        changed: dict[str, dict[str, object]] = {}
        if self.steps is not None:
            changed["completed"] = {"steps": self.steps}
        # As for a session's own changes: what shapes the learning rate leaves none to be reached.
        if any(".optim." in text.partition("=")[0] for text in self.changes) and self._asks_for("health"):
            changed["health"] = {"lr": None}
        return changed

    def _asks_for(self, group: str) -> bool:
        return any(asked.group == group for asked in self.existing.record.asked)

    def _command(self, path: Path, ray_home: Path) -> Command:
        recorded = read_command(RunDirectory(self.existing.directory), run_dir=self.existing.record.run_dir)
        changes = [*self.changes, *([] if self.steps is None else [f"{STEPS_KEY}={self.steps}"])]
        recorded = dataclasses.replace(recorded, argv=with_changes(recorded.argv, changes))
        argv, variables = recorded.moved(run_dir=path, ray_home=ray_home, environ=self.environ)
        argv = (self.python or argv[0], *argv[1:])
        problems = [
            f"{match['key']}={match['path']}: is not here; give its place on this machine by --set {match['key']}=PATH"
            for match in map(_INPUT.fullmatch, argv)
            if match and not Path(match["path"]).exists()
        ]
        if not Path(argv[0]).exists():
            problems.append(f"{argv[0]}: the interpreter of the run is not here; give the training's own by --python")
        if problems:
            raise PreflightError(*problems)
        return Command(argv=argv, env=variables, cwd=path)

    def _lease(self) -> Lease:
        record, runner = self.existing.record, self.catalogue.get(self.existing.record.runner)
        deadline = Deadline.after(self.lease_timeout_s, name="waiting for devices")
        pool = device_pool(self.environ, self.lock_dir, simulated=runner.devices if runner.simulated else None)
        return pool.lease(record.devices // record.nodes, deadline=deadline, owner=record.case)

    def _ports(self) -> AbstractContextManager[RunPorts]:
        record = self.existing.record
        if self.catalogue.get(record.runner).simulated:
            return nullcontext(RunPorts(variables={}))
        return leased_ports(self.lock_dir, devices=record.devices // record.nodes, owner=record.case, wait_s=self.lease_timeout_s)

    def _supervise(
        self, command: Command, directory: RunDirectory, run_id: str, lease: Lease, ray_home: Path, observe: Observer | None
    ) -> Exit:
        steps = self.steps or self.existing.record.steps
        watch = FatalWatch(steps)
        supervisor = Supervisor(
            command,
            directory,
            run_id=run_id,
            limits=Limits(total_s=self.timeout_s, silence_s=self.silence_s),
            is_fatal=watch.feed,
            progress=progress_of(steps, observe),
            has_begun=lambda: watch.has_begun,
            fds=lease.fds,
            ray_home=ray_home,
        )
        try:
            return supervisor.run()
        finally:
            shutil.rmtree(ray_home, ignore_errors=True)  # gone already if the training ran

    def _draft(self, run_id: str, path: Path, lease: Lease, *, python: str) -> RunRecord:
        """Return the record of the repeat before it has ended."""
        record = self.existing.record
        words = [
            *(["--steps", str(self.steps)] if self.steps else []),
            *(word for text in self.changes for word in ("--set", text)),
            *self.flags,
        ]
        return dataclasses.replace(
            record,
            run_id=run_id,
            device_ids=lease.device_ids,
            steps=self.steps or record.steps,
            started_at=_now().isoformat(timespec="seconds"),
            duration_s=0.0,
            ending=Ending.INTERRUPTED,
            exit_status=None,
            signal=None,
            end_reason=UNFINISHED,
            run_dir=str(path),
            rerun_command=shlex.join(["ascend-e2e", "repeat", str(self.existing.directory), *words]),
            last_step=None,
            summary={},
            versions=versions(python, self.environ),
            image=image_of(self.environ),
            checks=(),
            diagnosis=None,
            problems=(),
            retried_as="",
            changed=(*record.changed, f"repeat of {record.run_id}", *self.told_changes),
        )


def _now() -> dt.datetime:
    return dt.datetime.now(dt.timezone.utc)
