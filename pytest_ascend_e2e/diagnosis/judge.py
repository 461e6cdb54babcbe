"""From the lines of a log and the end of its process to the root cause: the first cause, not the loudest.

Must not know: where the log is kept; which rules there are (see `rules_*.py`, `exceptions.py`).
Memory is bounded: of each stretch of the log only its best finding is kept, whatever the size of the log.
"""

from __future__ import annotations

import dataclasses
import re
import signal as signals
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..records import Diagnosis, Ending, Kind
from .progress import Progress
from .reader import Reader
from .rule import ADVICE, INFRA, Finding, Rank
from .text import clean, shorten, split_lines

_SOUND_END = "The training reached its end; the log shows no failure of it."
_OURS = frozenset({Ending.DEADLINE, Ending.FATAL_LINE, Ending.INTERRUPTED})
_SHELL_SIGNAL = 128
_WARNING = re.compile(r"warning\b", re.IGNORECASE)
_CRASHES = frozenset({"SIGSEGV", "SIGABRT", "SIGILL", "SIGFPE"})


# Who waits in vain tells of somebody else's end; where that end is in the log before, it is the cause.
_WAITS = frozenset({Kind.HCCL, Kind.HANG})
_DEATHS = frozenset({Kind.WORKER_CRASH, Kind.ROLLOUT_ENGINE, Kind.HOST_OOM})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    finding: Finding
    line: str
    place: int = 0  # the how-manieth finding of its stretch


@dataclass(slots=True)
class _Stretch:
    """The best finding between two step lines: the deepest, of these the first; what may be shutdown noise apart."""

    best: _Found | None = None
    noise: _Found | None = None
    count: int = 0
    has_death: bool = False

    def add(self, finding: Finding, text: str) -> None:
        self.count += 1
        if finding.kind in _WAITS and self.has_death:
            finding = dataclasses.replace(finding, rank=Rank.ECHO)
        self.has_death = self.has_death or (finding.kind in _DEATHS and finding.rank >= Rank.DEATH)
        is_noise = finding.is_shutdown_noise or finding.kind in _WAITS
        held = self.noise if is_noise else self.best
        if held is not None and finding.rank <= held.finding.rank:
            return
        found = _Found(finding=finding, line=shorten(text), place=self.count)
        if is_noise:
            self.noise = found
        else:
            self.best = found

    def choose(self, *, at_least: Rank, with_noise: bool) -> _Found | None:
        found = [item for item in (self.best, self.noise if with_noise else None) if item and item.finding.rank >= at_least]
        return max(found, key=lambda item: (item.finding.rank, -item.place), default=None)


@dataclass(slots=True)
class _Log:
    """What a log tells: the stretch after the last step line, the two before it, the progress."""

    progress: Progress = field(default_factory=Progress)
    now: _Stretch = field(default_factory=_Stretch)
    before: tuple[_Stretch, _Stretch] = field(default_factory=lambda: (_Stretch(), _Stretch()))
    last_complaint: str = ""
    last_line: str = ""

    def read(self, lines: Iterable[bytes]) -> _Log:
        reader = Reader()
        for raw in split_lines(lines):
            line = clean(raw)
            if not line.text or line.text.isspace():
                continue
            self.last_line = line.text
            if self.progress.feed(line.text):
                self.before, self.now = (self.now, self.before[0]), _Stretch()
                continue
            finding = reader.read(line)
            if finding is not None:
                self.now.add(finding, line.text)
            elif not line.is_quiet and line.text[0] not in " \t" and _is_complaint(line.text):
                self.last_complaint = line.text
        return self


def diagnose(
    lines: Iterable[bytes],
    *,
    exit_status: int | None = None,
    signal: str | None = None,
    ending: Ending | None = None,
    end_reason: str = "",
) -> Diagnosis:
    """Return why a run failed, from its console log and the way its process ended.

    `exit_status` may be negative or above 128 for a signal, as subprocess and shells report it; `signal` is a name (SIGKILL).
    The line is the root cause without colours and prefixes, empty where the log shows none; `end_reason` is quoted in the advice.
    """
    log = _Log().read(lines)
    name = None if ending in _OURS else signal or _signal_of(exit_status)
    found = _from_log(log, exit_status=exit_status)
    if found is None or found.finding.rank < Rank.ERROR:
        found = _from_signal(name, log, found) or found
    if found is None and ending not in _OURS and name is None:
        found = _from_numbers(log, all_doubts=True)
    if found is None:
        return _without_cause(log, ending=ending, end_reason=end_reason)
    kind = found.finding.kind
    return Diagnosis(kind=kind, line=found.line, infra=kind in INFRA, advice=found.finding.advice or ADVICE[kind])


def is_sound(diagnosis: Diagnosis) -> bool:
    """Tell whether it says that the training reached its end and the log shows no failure."""
    return diagnosis.kind is Kind.UNKNOWN and diagnosis.advice == _SOUND_END


def _from_log(log: _Log, *, exit_status: int | None) -> _Found | None:
    """Of a finished run only what is no shutdown noise counts; an error that the run outlived by three steps never does."""
    if log.progress.is_finished:
        if exit_status == 0:
            return None
        return log.now.choose(at_least=Rank.DEATH if exit_status else Rank.ERROR, with_noise=False)
    found = log.now.choose(at_least=Rank.ECHO, with_noise=True)
    if found is not None:
        return found
    earlier = (stretch.choose(at_least=Rank.DEATH, with_noise=True) for stretch in log.before)
    return next((item for item in earlier if item), None)


def _from_signal(name: str | None, log: _Log, found: _Found | None) -> _Found | None:
    """A signal that was not ours says more than an echo, and less than a death that the log tells."""
    if name is None or (found is not None and found.finding.rank >= Rank.DEATH):
        return None
    line = found.line if found else shorten(log.last_complaint)
    if name == "SIGBUS":
        return _Found(
            finding=Finding(
                kind=Kind.HOST_OOM, rank=Rank.DEATH, advice="SIGBUS: the shared memory of the container (/dev/shm) is full."
            ),
            line=line,
        )
    if name in _CRASHES:
        advice = f"The process crashed in native code ({name}): look for a core file."
    elif name == "SIGKILL":
        advice = "Somebody sent SIGKILL, most often the OOM killer: look at dmesg and at the memory limit of the container."
    else:
        advice = f"Somebody outside of this run sent {name}: look at the job's own limits."
    return _Found(finding=Finding(kind=Kind.WORKER_CRASH, rank=Rank.DEATH, advice=advice), line=line)


def _from_numbers(log: _Log, *, all_doubts: bool) -> _Found | None:
    doubt = log.progress.find_doubt() if all_doubts else log.progress.find_not_finite()
    if doubt is None:
        return None
    advice = f"{doubt.why[0].upper()}{doubt.why[1:]}. {ADVICE[Kind.NUMERIC]}"
    return _Found(finding=Finding(kind=Kind.NUMERIC, rank=Rank.ERROR, advice=advice), line=doubt.line)


def _without_cause(log: _Log, *, ending: Ending | None, end_reason: str) -> Diagnosis:
    last = shorten(log.last_line, 200)
    if ending is Ending.DEADLINE:
        seen = f"its last line was {last!r}" if last else "it printed nothing"
        return Diagnosis(
            kind=Kind.HANG,
            line="",
            infra=False,
            advice=f"{_sentence(end_reason or 'A deadline passed')}; {seen}. {ADVICE[Kind.HANG]}",
        )
    if ending is Ending.INTERRUPTED:
        advice = "It was stopped from outside: the log shows no failure of it."
        return Diagnosis(kind=Kind.UNKNOWN, line="", infra=False, advice=advice)
    if log.progress.is_finished:
        return Diagnosis(kind=Kind.UNKNOWN, line="", infra=False, advice=_SOUND_END)
    if not last:
        return Diagnosis(
            kind=Kind.UNKNOWN,
            line="",
            infra=False,
            advice="The log is empty: the process printed nothing, or its output went elsewhere.",
        )
    advice = f"{_sentence(end_reason)}. {ADVICE[Kind.UNKNOWN]}" if end_reason else ADVICE[Kind.UNKNOWN]
    return Diagnosis(kind=Kind.UNKNOWN, line=shorten(log.last_complaint), infra=False, advice=advice)


def _signal_of(exit_status: int | None) -> str | None:
    """Return the name of the signal behind an exit status: -9 as subprocess has it, 137 as a shell has it."""
    if exit_status is None:
        return None
    number = -exit_status if exit_status < 0 else exit_status - _SHELL_SIGNAL
    return signals.Signals(number).name if number in {item.value for item in signals.Signals} else None


def _is_complaint(text: str) -> bool:
    if text.startswith(("{", "(", "[", "'", '"')):
        return False  # a dump of settings or of samples
    if _WARNING.search(text):
        return False
    lowered = text.lower()
    return any(word in lowered for word in ("error", "fail", "fatal", "abort", "exception"))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".")
