"""verl's console log, or the log file of one Ray worker: the step lines among everything else.

Owns lines that are glued together, split in two, or cut. Must not know where the log is. Memory is bounded by the steps and keys
found, time by the length of the log.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import grammar
from .collector import Collector
from .grammar import Record
from .lines import LONGEST_LINE
from .table import Metrics

_SHOWN = 60


def read_console(lines: Iterable[bytes]) -> Metrics:
    """Return the metrics of a console log, read as verl's `concat_dict_to_str` writes them.

    A step line may follow a prefix of Ray, terminal colours, a progress bar or a time, and may be glued to other text or split
    over two lines. Numbers that are broken, lines that are cut, repeated or go back, and a log without a step, are named in
    `problems`.
    """
    reader = _Reader()
    for line in lines:
        reader.read(line)
    return reader.metrics()


class _Reader:
    """Reads line by line; holds the last step line open, as the next line may go on with it."""

    def __init__(self) -> None:
        self._collector = Collector()
        self._open: Record | None = None
        self._open_line = 0
        self._line = 0
        self._last = ""
        self._saw_line_end = False
        self._last_line = b""

    def read(self, line: bytes) -> None:
        self._line += 1
        self._last_line = line
        if not self._saw_line_end:
            self._saw_line_end = line.endswith(b"\n")
        # Nearly all lines of a log go this way, a million of them in a long run.
        if self._open is None and len(line) <= LONGEST_LINE and b"step:" not in line:
            self._last = ""
            return
        if len(line) > LONGEST_LINE:
            self._collector.problem(f"line {self._line} is longer than {LONGEST_LINE} bytes: only its start was read")
            line = line[:LONGEST_LINE]
        # A progress bar is drawn over and over after carriage returns.
        for part in line.decode("utf-8", errors="replace").rstrip("\r\n").split("\r"):
            text = grammar.plain_text(part).lstrip("\ufeff\x00")
            if text.strip():
                self._read_text(text)
                self._last = text

    def metrics(self) -> Metrics:
        is_unfinished = self._saw_line_end and not self._last_line.endswith(b"\n")
        was_cut = self._open is not None and self._open.is_cut
        ended_in_step = self._open is not None and self._open_line == self._line
        self._close()
        if is_unfinished and not was_cut and (ended_in_step or grammar.is_cut_start(self._last)):
            self._collector.problem(f"line {self._line}, the last one, has no line end: the log was cut, {self._last[-_SHOWN:]!r}")
        if not self._line:
            self._collector.problem("the log is empty: the training printed nothing, or its output went elsewhere")
        elif not self._collector.has_steps:
            self._collector.problem(f"no step in {self._line} lines: expected lines such as 'step:1 - critic/rewards/mean:0.5'")
        return self._collector.metrics()

    def _read_text(self, text: str) -> None:
        starts = grammar.find_starts(text, is_inside=self._open is not None)
        before = text[: starts[0].start()] if starts else text
        if self._open is not None and before.strip() and not self._goes_on(self._open, grammar.without_prefix(before)):
            self._close()
        ends = [*(start.start() for start in starts[1:]), len(text)]
        for start, end in zip(starts, ends, strict=False):
            self._close()
            self._open = grammar.parse_body(int(start[1]), text[start.end() : end])
            self._open_line = self._line

    def _goes_on(self, record: Record, text: str) -> bool:
        """Add the text to the open record if it is the rest of its line; a rest holds nothing but metrics."""
        if not record.tail and not record.is_cut:
            return False
        rest = text.lstrip()
        if rest.startswith("- "):
            rest = f" {rest}"
        elif record.tail:
            rest = text
        tokens = grammar.split_tokens(record.tail + rest)
        whole = tokens if grammar.parse_pair(tokens[-1]) else tokens[:-1]
        pairs = [grammar.parse_pair(token) for token in whole]
        found = [pair for pair in pairs if pair is not None and "/" in pair[0]]
        gained = len(found) - (0 if record.is_cut else 1)
        if len(found) < len(pairs) or gained < 1:
            return False
        # After a whole pair, the line was split inside its number, or at the separator: its key stays what it was.
        if not record.is_cut and found[0][0] != record.pairs[-1][0]:
            return False
        if not record.is_cut:
            record.pairs.pop()
        record.pairs.extend(found)
        record.tail, record.is_cut = tokens[-1], len(whole) < len(tokens)
        self._open_line = self._line
        return True

    def _close(self) -> None:
        record, self._open = self._open, None
        if record is None:
            return
        where = f"line {self._open_line}"
        for token in record.broken:
            self._collector.problem(f"{where}: {_short(token)} of step {record.step} is no number; it is left out")
        if record.is_cut and grammar.is_broken_number(record.tail.strip()):
            self._collector.problem(
                f"{where}: {_short(record.tail)} of step {record.step} is no number, or was cut; it is left out"
            )
        elif record.is_cut:
            self._collector.problem(f"{where}: the line of step {record.step} was cut after {_short(record.tail)}")
        if record.lost:
            lost = f"{record.lost} values after it are left out"
            self._collector.problem(f"{where}: another text stands in the line of step {record.step}; {lost}")
        if record.pairs:
            self._collector.add(record.step, record.pairs, where=where)


def _short(text: str) -> str:
    text = text.strip()
    if not text:
        return "its last separator"
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
