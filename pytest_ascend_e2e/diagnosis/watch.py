"""Lines after which verl cannot go on, though it may hang for minutes without another word.

Must not know: how a run is ended, and after what grace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .progress import Progress
from .text import clean

# (pattern, why). Seen with verl 0.9: after the death of a vLLM worker the trainer waited more than eight minutes for an answer.
_FATAL = (
    (re.compile(r"(?i)engine ?core.{0,60}(?:died|exited) unexpectedly"), "a process of the rollout engine died"),
    (re.compile(r"EngineCore (?:encountered|failed to start)|EngineDeadError"), "the rollout engine died"),
    (re.compile(r"Engine core initialization failed"), "the rollout engine did not start"),
    (
        re.compile(
            r"Worker(?:Proc| proc) .{0,80}died unexpectedly|WorkerProc (?:hit an exception|failed to start|initialization failed)"
        ),
        "a rollout worker died",
    ),
    (
        re.compile(r"Scheduler hit an exception|scheduler is dead|Received sigquit from a child process"),
        "the rollout engine's scheduler died",
    ),
    (
        re.compile(r"killed due to (?:memory pressure|the node running low on memory)"),
        "Ray killed a worker: the host is out of memory",
    ),
    (re.compile(r"A worker died or was killed while executing a task"), "a Ray worker died"),
    (
        re.compile(r"The actor (?:died|is dead) (?:unexpectedly|because)|ActorDiedError|RayActorError|WorkerCrashedError"),
        "a Ray actor died",
    ),
    (re.compile(r"NodeDiedError|LocalRayletDiedError|has been marked dead because|GCS server died"), "Ray lost a node"),
    (re.compile(r"^Fatal Python error: |\*\*\* SIG(?:SEGV|BUS|ILL|FPE|ABRT) received|^Segmentation fault"), "a process crashed"),
    (re.compile(r"HCCL watchdog thread terminated with exception"), "the HCCL watchdog of a rank gave up"),
)


def is_fatal(line: str) -> str | None:
    """Return why verl cannot go on after this line, None where it can; says nothing of a run that is over already.

    Such lines also follow a run that went well: `FatalWatch` knows the difference.
    """
    text = clean(line).text
    return next((why for pattern, why in _FATAL if pattern.search(text)), None)


@dataclass(slots=True)
class FatalWatch:
    """Watches the lines of one run; `steps` is the number of steps that it was asked for, None to believe the log."""

    steps: int | None = None
    _progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        self._progress = Progress(steps=self.steps)

    @property
    def is_finished(self) -> bool:
        """Tell whether the last step was reached: what dies from now on is being torn down."""
        return self._progress.is_finished

    @property
    def has_begun(self) -> bool:
        """Tell whether the first step has begun: the engines are up, weights and data are loaded."""
        return self._progress.has_begun

    def feed(self, line: bytes | str) -> str | None:
        """Take the next line; return why the run cannot go on, None where it can or where it is finished."""
        self._progress.feed(clean(line).text)
        if self._progress.is_finished:
            return None
        return is_fatal(line if isinstance(line, str) else line.decode("utf-8", "replace"))
