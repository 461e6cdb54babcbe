"""Reads the lines of a log one by one and tells what each means; keeps one small state for each process that prints.

Must not know: which of the findings is the root cause.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field

from ..records import Kind
from . import rules_ascend, rules_host, rules_training
from .exceptions import find_exception, is_wrapper, read_exception
from .rule import Finding, Rank, Rule, by_rank
from .text import Line

RULES = by_rank((*rules_host.RULES, *rules_ascend.RULES, *rules_training.RULES))
# Flat, since every line of a log is held against every word: (word, pattern to confirm it or None, rule).
_WORDS = tuple((word, pattern, rule) for rule in RULES for word, pattern in rule.words)

MAX_SOURCES = 4096
"""Processes whose state is kept; beyond that the one is forgotten that began first."""

# What follows is a guess that the printing program offers with every such error, not an observation.
_GUESS_WORDS = ("potential root causes", "possible cause", "solution", "reserved memory", "hydra_full_error", "with overrides")
_GUESS = re.compile(
    r"There are some potential root causes|Possible [Cc]auses?:|Solutions?:|If reserved memory is >>"
    r"|Set the environment variable HYDRA_FULL_ERROR|Error executing job with overrides"
)
_FRAME = re.compile(r'^\s+File "[^"]{1,400}", line \d')
# Exceptions below these lines stopped nothing: destructors, logging itself, exit handlers.
_HARMLESS = ("exception ignored in", "--- logging error ---", "error in atexit._run_exitfuncs", "error in sys.excepthook")
# How vLLM and SGLang announce the exception that ends an engine.
_ENGINE_ENDS = ("enginecore encountered a fatal error", "workerproc hit an exception", "scheduler hit an exception")
_ENGINE_ADVICE = "The rollout engine died of this exception: read the traceback above the line."
_SAMPLE = re.compile(r"^\[(?:prompt|response)\]|^<\|im_start\|>")
_SAMPLE_END = re.compile(r"^\[(?:ground_truth|score)\]|<\|im_end\|>|^step:\d")
_MAX_SAMPLE = 400


@dataclass(slots=True)
class _Source:
    """What one process is printing: a traceback, perhaps a harmless one, or `sample` more lines of a prompt and its answer.

    `is_engine_ending` tells that its next exception is the end of a rollout engine.
    """

    is_engine_ending: bool = False
    is_in_traceback: bool = False
    is_harmless: bool = False
    sample: int = 0


@dataclass(slots=True)
class Reader:
    """Tells what each line means."""

    _sources: dict[str, _Source] = field(default_factory=dict)

    def read(self, line: Line) -> Finding | None:
        """Return what the line tells, None for a line that tells nothing about a failure."""
        if not line.text:
            return None
        lowered = line.text.lower()
        state = self._sources.get(line.source) or self._remember(line.source)
        if self._is_sample(state, line.text):
            return None
        if any(word in lowered for word in _HARMLESS):
            state.is_harmless = True
            return None
        if any(words in lowered for words in _ENGINE_ENDS):
            state.is_engine_ending = True
        if "Traceback (most recent call last)" in line.text or _FRAME.match(line.text) or is_wrapper(line.text):
            state.is_in_traceback = True
            return None
        return self._judge(state, line, lowered)

    @staticmethod
    def _judge(state: _Source, line: Line, lowered: str) -> Finding | None:
        if state.is_in_traceback and line.text[0] in " \t":
            return None  # source code, which may quote any message
        raised = read_exception(line.text, in_traceback=state.is_in_traceback)
        is_harmless, state.is_in_traceback, state.is_harmless = state.is_harmless, False, False
        if raised is None:
            return _find(line, lowered)
        if is_harmless or line.is_quiet:
            return None
        found, meaning = _find(line, lowered), find_exception(raised)
        finding = meaning if found is None or (meaning.rank is Rank.CAUSE and found.rank < Rank.ERROR) else found
        is_engine_ending, state.is_engine_ending = state.is_engine_ending, False
        if is_engine_ending and finding.kind is Kind.CODE_ERROR:
            return dataclasses.replace(finding, kind=Kind.ROLLOUT_ENGINE, advice=_ENGINE_ADVICE)
        return finding

    def _remember(self, source: str) -> _Source:
        if len(self._sources) >= MAX_SOURCES:
            self._sources.pop(next(iter(self._sources)))
        return self._sources.setdefault(source, _Source())

    @staticmethod
    def _is_sample(state: _Source, text: str) -> bool:
        """Tell whether the line is a prompt or an answer that verl prints: a model may write any error message."""
        if _SAMPLE.match(text):
            state.sample = _MAX_SAMPLE
        if state.sample == 0:
            return False
        state.sample = 0 if _SAMPLE_END.search(text) else state.sample - 1
        return not text.startswith("step:")


def _find(line: Line, lowered: str) -> Finding | None:
    text = line.text
    if any(word in lowered for word in _GUESS_WORDS) and (guess := _GUESS.search(text)):
        text = text[: guess.start()]
        lowered = text.lower()
        if not text.strip():
            return None
    if not line.is_quiet and (found := rules_ascend.find_oom(text, lowered)):
        return found
    rule = _ask(text, lowered, is_quiet=line.is_quiet)
    code = None if rule and rule.rank is Rank.CAUSE else rules_ascend.find_code(text, lowered)
    if rule and (code is None or rule.rank >= code.rank):
        return rule.finding
    return None if line.is_quiet and code and code.rank < Rank.ERROR and "NPU warning" not in text else code


def _ask(text: str, lowered: str, *, is_quiet: bool) -> Rule | None:
    """Return the first rule, in the order of the table, that speaks of the line."""
    for _, pattern, rule in [entry for entry in _WORDS if entry[0] in lowered]:
        if (rule.at_warning or not is_quiet) and (pattern is None or pattern.search(text)):
            return rule
    return None
