"""The watch over a running training: what its log and its metrics say, and which deadline it has missed.

Must not know: processes. What a line means is asked; deadlines are counted on the clock it is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import final

from ..deadline import Clock, Deadline, format_duration
from ..records import Ending
from .run_directory import RunDirectory
from .tail import Tail

FatalLine = Callable[[str], "str | None"]
Progress = Callable[[Sequence[bytes]], "str | None"]
Begun = Callable[[], bool]

_READS_A_LOOK = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How long things may take, in seconds; None where there is no limit.

    `total_s` for the whole run; `silence_s` without a new byte in log or metrics; `start_s` until the first step begins,
    `first_step_s` until its line of metrics is there, both from the start of the run, `step_s` from each such line to the next.
    After a fatal line the training has `fatal_s` to end by itself, which gives the better traceback. A stop is TERM, `grace_s`
    (`fatal_grace_s` after a fatal line), KILL. Before it, keeping the scene takes `scene_s` at most (0: it is not kept). After a
    training's own end its helpers have `leave_s` to go.

    `origins` says where a limit comes from, by the name of its field; a missed deadline quotes it.
    """

    total_s: float
    silence_s: float | None = None
    start_s: float | None = None
    first_step_s: float | None = None
    step_s: float | None = None
    fatal_s: float = 3.0
    scene_s: float = 3.0
    grace_s: float = 10.0
    fatal_grace_s: float = 2.0
    leave_s: float = 5.0
    origins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """Why a training must be ended."""

    ending: Ending
    reason: str


@final
class Watch:
    """Reads what one training writes, and tells when it must be ended."""

    def __init__(
        self,
        directory: RunDirectory,
        limits: Limits,
        *,
        is_fatal: FatalLine,
        progress: Progress,
        has_begun: Begun = lambda: True,
        clock: Clock = time.monotonic,
    ) -> None:
        self._limits = limits
        self._is_fatal = is_fatal
        self._progress = progress
        self._has_begun = has_begun
        self._clock = clock
        self._log = Tail(directory.log)
        self._metrics = Tail(directory.metrics)
        self._began_at = clock()
        self._heard_at = clock()
        self._total = Deadline.after(limits.total_s, name="run", clock=clock)
        self._silence = self._optional(limits.silence_s, "silence")
        self._start = self._optional(limits.start_s, "start")
        self._step = self._optional(limits.first_step_s, "first step")
        self._fatal: Deadline | None = None
        self._said = ""
        self._line_count = 0
        self.fatal_reason = ""
        self.has_more = False

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._log.close()
        self._metrics.close()

    def look(self) -> Stop | None:
        """Read what is new (`has_more` tells that not all could be read at once); return why the training must be ended, if so."""
        before = self._log.size + self._metrics.size
        self._read_log()
        self._read_metrics()
        if self._log.size + self._metrics.size > before:
            self._heard_at = self._clock()
            self._silence = self._silence and self._silence.restarted()
        if self._start is not None and (self._line_count or self._has_begun()):
            self._start = None
        return self._judge()

    def finish(self) -> None:
        """Read the rest of the metrics: nobody writes to them any more."""
        while self._read_metrics():
            pass
        self._take_metrics(self._metrics.rest())

    def progress_text(self) -> str:
        """Return how far the training came, as one clause."""
        said = self._said or (f"{self._line_count} lines of metrics" if self._line_count else "no step")
        return f"last progress: {said}; last output {format_duration(self._clock() - self._heard_at)} ago"

    def _read_log(self) -> None:
        before = -1
        reads = 0
        while self._log.size != before and reads < _READS_A_LOOK:
            before = self._log.size
            for line in self._log.read():
                self._take_line(line)
            reads += 1
        self.has_more = self._log.size != before

    def _take_line(self, line: bytes) -> None:
        if self._fatal is None and (why := self._is_fatal(line.decode(errors="replace"))):
            self.fatal_reason = why
            self._fatal = Deadline.after(self._limits.fatal_s, name="fatal line", clock=self._clock)

    def _read_metrics(self) -> bool:
        before = self._metrics.size
        self._take_metrics(self._metrics.read())
        return self._metrics.size > before

    def _take_metrics(self, lines: Sequence[bytes]) -> None:
        if lines:
            self._line_count += len(lines)
            self._said = self._progress(lines) or self._said
            self._step = self._optional(self._limits.step_s, "step")

    def _judge(self) -> Stop | None:
        if self._fatal is not None and self._fatal.is_over():
            after = format_duration(self._limits.fatal_s)
            return Stop(
                ending=Ending.FATAL_LINE,
                reason=f"the log says that it cannot go on ({self.fatal_reason}), and {after} later it lived",
            )
        for field_name, deadline in (
            ("total_s", self._total),
            ("silence_s", self._silence),
            ("start_s", self._start),
            ("step_s" if self._line_count else "first_step_s", self._step),
        ):
            if deadline is not None and deadline.is_over():
                origin = self._limits.origins.get(field_name)
                return Stop(ending=Ending.DEADLINE, reason=_missed(deadline) + (f" (limit: {origin})" if origin else ""))
        return None

    def _optional(self, limit_s: float | None, name: str) -> Deadline | None:
        return None if limit_s is None else Deadline.after(limit_s, name=name, clock=self._clock)


def _missed(deadline: Deadline) -> str:
    limit = format_duration(deadline.limit_s)
    match deadline.name:
        case "run":
            return f"run deadline: not at its end after {limit}"
        case "silence":
            return f"silence deadline: nothing new in log or metrics for {limit}"
        case "start":
            return f"start deadline: no step begun {limit} after the start"
        case "first step":
            return f"first step deadline: no metrics {limit} after the start"
        case _:
            return f"step deadline: no metrics for {limit} after the last step's"
