"""The part of a log that a reader wants to see: the lines around the root cause, the last ones where none is known, the last steps.

Must not know: files, or how a root cause is found.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from .progress import STEP
from .text import clean, shorten, split_lines

# A step line of verl has 4 to 10 kB: what is beyond this is in the log.
LONGEST_SHOWN = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class ExcerptLine:
    """One line without colours and prefixes: its number in the log from 1, the process that printed it (empty: the driver)."""

    number: int
    source: str
    text: str
    is_cause: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Excerpt:
    """Neighbouring lines of a log of `total` lines, blank ones left out; or, of `is_of_steps`, its last step lines."""

    lines: tuple[ExcerptLine, ...]
    total: int
    is_of_steps: bool = False

    @property
    def has_cause(self) -> bool:
        """Tell whether the root cause is among the lines."""
        return any(line.is_cause for line in self.lines)


def excerpt(lines: Iterable[bytes], cause: str, *, before: int = 15, after: int = 25) -> Excerpt:
    """Return the lines around `cause`, the line of a `Diagnosis`; where it is empty or not in the log, the last ones.

    Of several lines like it, the first one after the last step line that has one after it is marked, as the diagnosis chose it.
    """
    is_cause = _matcher(cause)
    recent: deque[ExcerptLine] = deque(maxlen=before + after + 1)
    found: list[ExcerptLine] = []
    wanted, total, is_new_stretch = 0, 0, True
    for line in _shown(lines, is_cause):
        total = line.number
        is_first = line.is_cause and is_new_stretch  # what comes after it is its echo
        if is_first:
            found = list(recent)[-before:] if before else []
            wanted, is_new_stretch = after + 1, False
        if wanted:
            found.append(line if is_first else _plain(line))
            wanted -= 1
        is_new_stretch = is_new_stretch or bool(STEP.search(line.text))
        recent.append(_plain(line))
    return Excerpt(lines=tuple(found or recent), total=total)


def last_steps(lines: Iterable[bytes], *, most: int = 8) -> Excerpt:
    """Return the last step lines of a training that ended well: after them the log has only the noise of processes that stop.

    Where there is none, the last lines.
    """
    steps: deque[ExcerptLine] = deque(maxlen=most)
    recent: deque[ExcerptLine] = deque(maxlen=most)
    for line in _shown(lines, lambda _: False):
        recent.append(line)
        if STEP.search(line.text):
            steps.append(line)
    return Excerpt(lines=tuple(steps or recent), total=recent[-1].number if recent else 0, is_of_steps=bool(steps))


def _shown(lines: Iterable[bytes], is_cause: Callable[[str], bool]) -> Iterator[ExcerptLine]:
    for number, raw in enumerate(lines, start=1):
        for part in split_lines([raw]):
            line = clean(part)
            if line.text.strip():
                shown = line.text if len(line.text) <= LONGEST_SHOWN else f"{line.text[:LONGEST_SHOWN]}…"
                yield ExcerptLine(number=number, source=line.source, text=shown, is_cause=is_cause(line.text))


def _plain(line: ExcerptLine) -> ExcerptLine:
    return dataclasses.replace(line, is_cause=False) if line.is_cause else line


def _matcher(cause: str) -> Callable[[str], bool]:
    """Return the test of a line; an ellipsis of the cause stands for any text, as a diagnosis shortens lines."""
    if not cause:
        return lambda _: False
    first, *others = cause.split("…")
    if not others:
        return lambda text: shorten(text) == cause
    rest = [part.strip().removesuffix(" -") for part in others]

    def fits(text: str) -> bool:
        at = text.find(first.strip())
        for part in rest:
            at = text.find(part, at) if at >= 0 else -1
        return at >= 0

    return fits
