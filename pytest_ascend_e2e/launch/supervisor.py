"""The supervisor: one training from start to end, watched by its log, its metrics and the clock; nothing of it is left afterwards.

Must not know: what a line of the log or a metric means (it asks), or who holds which device (it passes the lease's descriptors on).
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import LaunchError
from ..records import Ending, HostUse
from .host import HostWatch
from .keeping import Charge, Keeping
from .memory_kills import count_memory_kills
from .processes import Signs, find, tag_of
from .ray_remains import put_away, remove_weight_sockets
from .run_directory import Command, RunDirectory
from .scene import keep_scene
from .sweeping import sweep
from .watch import Begun, FatalLine, Limits, Progress, Stop, Watch

_LOOK_S = 0.2
# What a keeper may need beyond grace and leave: looks at a long process table, and KILL on a device's driver.
_KEEPER_SLACK_S = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Exit:
    """How a training ended.

    `exit_status` is None if a signal ended it, whose name is in `signal` (`SIGKILL`). `end_reason` is one sentence, empty for a
    training that ended with status 0. `leftovers` names the processes (`raylet[4711]`) that were still there after its own end
    and had to be ended; `stuck` those that did not end even by KILL. `host` is what the host had meanwhile.
    """

    ending: Ending
    exit_status: int | None
    signal: str | None
    end_reason: str
    duration_s: float
    leftovers: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()
    host: HostUse = field(default_factory=HostUse)

    @property
    def is_clean(self) -> bool:
        """Tell whether the training ended by itself with exit status 0."""
        return self.ending is Ending.EXITED and self.exit_status == 0


class Supervisor:
    """Runs one training in a process tree of its own, and answers for that tree.

    `is_fatal` is asked about each complete line of the log (see `diagnosis.is_fatal`); `progress` gets each batch of new lines of
    `metrics.jsonl` and returns words for it (`step 3 of 15`); `has_begun` tells whether the log has shown the first step's begin.
    `fds` are inherited by the run. `ray_home` is removed afterwards,
    its logs kept if the run failed. `exit` is set when `run` has returned, or raised after the start.
    """

    def __init__(  # noqa: PLR0913  # each is one side of a run
        self,
        command: Command,
        directory: RunDirectory,
        *,
        run_id: str,
        limits: Limits,
        is_fatal: FatalLine = lambda _: None,
        progress: Progress = lambda _: None,
        has_begun: Begun = lambda: True,
        fds: Sequence[int] = (),
        ray_home: Path | None = None,
    ) -> None:
        self._charge = Charge(
            command=command,
            directory=directory,
            run_id=run_id,
            grace_s=limits.grace_s,
            fatal_grace_s=limits.fatal_grace_s,
            leave_s=limits.leave_s,
            fds=tuple(fds),
            ray_home=ray_home,
        )
        self._limits = limits
        self._is_fatal = is_fatal
        self._progress = progress
        self._has_begun = has_begun
        self._has_scene = False
        self._host = HostWatch(directory.path)
        self._keeping = Keeping(self._charge)
        self.exit: Exit | None = None

    def run(self) -> Exit:
        """Run the training to its end; whatever happens, also an exception of any kind, no process of it is left.

        Raises:
            LaunchError: it could not be started.
        """
        began_at = time.monotonic()
        kills_before = count_memory_kills()
        with Watch(
            self._charge.directory, self._limits, is_fatal=self._is_fatal, progress=self._progress, has_begun=self._has_begun
        ) as watch:
            try:
                self._keeping.start()
                stop = self._watch_over(watch)
            except LaunchError:
                self._clear(is_kept=False)
                raise
            except BaseException as error:
                stop = Stop(ending=Ending.INTERRUPTED, reason=f"interrupted by {_told(error)}")
                self.exit = self._finish(watch, stop, began_at=began_at, kills_before=kills_before)
                raise
            self.exit = self._finish(watch, stop, began_at=began_at, kills_before=kills_before)
        return self.exit

    def _watch_over(self, watch: Watch) -> Stop | None:
        while True:
            self._keeping.wait(0 if watch.has_more else _LOOK_S)
            self._host.look()
            stop = watch.look()
            if self._has_ended():
                return None
            if (stop is not None or watch.fatal_reason) and not self._has_scene:
                self._keep_scene()
                self._keeping.wait(0)
                if self._has_ended():  # while we looked
                    return None
            if stop is not None:
                return stop

    def _has_ended(self) -> bool:
        return self._keeping.is_ended or self._keeping.is_over

    def _keep_scene(self) -> None:
        """Keep what the processes are doing, once: at the fatal line or at the missed deadline, while they still do it."""
        self._has_scene = True
        if not self._limits.scene_s:
            return
        charge = self._charge
        keeper = frozenset(() if self._keeping.pid is None else (self._keeping.pid,))
        signs = Signs(tags=frozenset({tag_of(charge.run_id)}), places=charge.places, roots=tuple(keeper), spared=keeper)
        with contextlib.suppress(OSError, RuntimeError):  # no file or thread to be had: the run must end all the same
            keep_scene(charge.directory, find(signs), command=charge.command, limit_s=self._limits.scene_s)

    def _finish(self, watch: Watch, stop: Stop | None, *, began_at: float, kills_before: int | None) -> Exit:
        duration_s = time.monotonic() - began_at
        far = watch.progress_text()
        keeping = self._keeping
        swept: list[str] = []
        is_clean = False
        try:
            most_s = self._limits.grace_s + _KEEPER_SLACK_S
            if stop is None:
                keeping.wait_over(self._limits.leave_s + most_s)
            else:
                keeping.end(most_s, is_hurried=stop.ending is Ending.FATAL_LINE)
            is_clean = stop is None and keeping.status == 0
        finally:
            keeper_status, swept = self._clear(is_kept=not is_clean)
        watch.finish()
        ending, reason = _judge(stop, keeping, keeper_status)
        kills = (count_memory_kills() or 0) - (kills_before or 0)
        clauses = [
            reason,
            f"fatal line before: {watch.fatal_reason}" if watch.fatal_reason and ending is not Ending.FATAL_LINE else "",
            f"the kernel ended {kills} process(es) of this container for lack of memory meanwhile" if kills > 0 else "",
            self._host.shortage(),
            far,
        ]
        return Exit(
            ending=ending,
            exit_status=keeping.status if keeping.status is not None and keeping.status >= 0 else None,
            signal=_signal_name(keeping.status),
            end_reason="; ".join(clause for clause in clauses if clause) if reason else "",
            duration_s=duration_s,
            leftovers=(*(keeping.leftovers if keeping.is_ended else ()), *swept),
            stuck=keeping.stuck,
            host=self._host.use,
        )

    def _clear(self, *, is_kept: bool) -> tuple[int, list[str]]:
        """Leave no process and no directory of Ray; return the keeper's exit status and what it had not ended itself."""
        charge = self._charge
        keeper_status = self._keeping.close()
        try:
            return keeper_status, sweep(charge.run_id, places=charge.places, grace_s=charge.grace_s)
        finally:
            remove_weight_sockets(charge.run_id)
            if charge.ray_home is not None:
                put_away(charge.ray_home, keep_in=charge.directory.ray_logs if is_kept else None)


def _judge(stop: Stop | None, keeping: Keeping, keeper_status: int) -> tuple[Ending, str]:
    if stop is not None:
        return stop.ending, stop.reason
    if not keeping.is_ended:
        how = _signal_name(keeper_status) or ("a signal from outside" if keeper_status == 0 else f"exit status {keeper_status}")
        return Ending.SIGNALLED, f"the keeper of the run was ended ({how}), and the training with it"
    name = _signal_name(keeping.status)
    if name is not None:
        return Ending.SIGNALLED, f"ended by {name}, which did not come from here"
    return Ending.EXITED, f"exit status {keeping.status}" if keeping.status else ""


def _told(error: BaseException) -> str:
    """Return the name of an exception, and what it says: `KeyboardInterrupt: signal SIGTERM`."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _signal_name(status: int | None) -> str | None:
    if status is None or status >= 0:
        return None
    try:
        return signal.Signals(-status).name
    except ValueError:  # a real-time signal has a number only
        return f"signal {-status}"
