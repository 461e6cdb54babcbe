"""The grammar of verl's console line: `step:N - key:value - key:value`.

Owns what counts as the start of such a line, as a key and as a number. Must not know the lines around it. Every pattern runs in
time proportional to its text: no two neighbouring repetitions share a character.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

SEPARATOR = " - "

# Colours and other terminal commands; also colours whose escape character was lost when the log was copied.
_TERMINAL = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|\x1b[()][0-9A-B]|\x1b[=>78M]"
    r"|(?:\^\[|\u241b)?\[\d{1,3}(?:;\d{1,3}){0,8}m"
)
_RAY_PREFIX = re.compile(r"\s{0,8}\([^\s()]{1,200}(?:\([^()]{0,200}\))? pid=\d{1,12}[^()]{0,200}\) ?")

# Not "global_step:9", "timing/step:1.25", "sub-step:3": the word stands alone, or is glued to what ended before it.
_START = re.compile(r"(?<![A-Za-z_/.@\-])step:(\d{1,12}) -(?: |$)")
_CUT_START = re.compile(r"(?<![A-Za-z_/.@\-])step:\d{0,12}(?: -?)?$")

_NUMBER = r"[+-]?(?:(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,6})?|[nN][aA][nN]|[iI]nf(?:inity)?)"
_VALUE = (
    rf"(?:(?P<plain>{_NUMBER})"
    rf"|(?:(?:np|numpy)\.[a-z]{{1,12}}\d{{0,3}}|Decimal)\(['\"]?(?P<wrapped>{_NUMBER})['\"]?\)"
    r"|(?:np\.|numpy\.)?(?:bool_?\()?(?P<truth>True|False)_?\)?)"
)
# What may follow a value when text of another writer was glued to it; "1.2.3" or "12abc" is a broken number instead.
_GLUE = r"(?=\s|[(\[{<|'\"]|[,;]\s|[A-Z][A-Za-z]|step:\d|[^\x00-\x7f])"
_WHOLE = re.compile(_VALUE)
_GLUED = re.compile(_VALUE + _GLUE)

_STAMP = re.compile(r"\[?\d[\d:.,/T+-]{3,40}Z?\]?")
_LEVELS = r"(?:DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL)"
_LEVEL = re.compile(rf"\[?{_LEVELS}\]?(?::[\w.]{{0,100}}){{0,3}}:?")
_LEVEL_END = re.compile(rf"{_LEVELS}:(?:\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d[,.\d]{{0,8}}|[\w.]{{1,100}}):$")
_RANK = re.compile(r"\[?[A-Za-z_-]{0,40}\d{1,6}\]?:|[\w.-]{1,100} {0,40}\|")
_BRACKET_END = re.compile(r"\[[^\[\]]{0,120}[\d?/][^\[\]]{0,120}\]:?$")
_RAY_END = re.compile(r"\([^\s()]{1,200}(?:\([^()]{0,200}\))? pid=\d{1,12}[^()]{0,200}\)$")
# How much of the text before a step line decides whether it is one.
_LOOK_BACK = 1000
_BLOCKS = ("\u2580", "\u259f")


@dataclass(kw_only=True, slots=True)
class Record:
    """What one step line holds: the pairs in their order, tokens that are no pair, and the end that may have been cut.

    `tail` is the text after the last separator, where the next line may go on; `is_cut` tells that it is no whole pair. `lost`
    counts pairs that stand behind the text of another writer.
    """

    step: int
    pairs: list[tuple[str, float]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    tail: str = ""
    is_cut: bool = False
    lost: int = 0


def plain_text(text: str) -> str:
    """Return the text without terminal commands."""
    return _TERMINAL.sub("", text)


def without_prefix(text: str) -> str:
    """Return the text without the `(Name pid=N)` that Ray puts before the lines of its workers."""
    found = _RAY_PREFIX.match(text)
    return text[found.end() :] if found else text


def parse_pair(token: str) -> tuple[str, float] | None:
    """Return key and number of a token that is one whole `key:value`, else None."""
    key, colon, text = token.rstrip().rpartition(":")
    value = _WHOLE.fullmatch(text)
    if not colon or not key or key != key.strip() or value is None:
        return None
    return key, _number(value)


def parse_glued_pair(token: str) -> tuple[str, float] | None:
    """Return key and number of a token to whose value other text is glued, else None."""
    position = token.find(":")
    while position != -1:
        value = _GLUED.match(token, position + 1)
        if value is not None:
            key = token[:position]
            return (key, _number(value)) if key and key == key.strip() else None
        position = token.find(":", position + 1)
    return None


def find_starts(text: str, *, is_inside: bool) -> list[re.Match[str]]:
    """Return the matches of `step:N - ` that begin a step line; `is_inside`: the text may go on with an unfinished line."""
    starts: list[re.Match[str]] = []
    for found in _START.finditer(text):
        begin = max(starts[-1].end() if starts else 0, found.start() - _LOOK_BACK)
        before = text[begin : found.start()]
        # Inside a line, "step" right after a separator is a metric of that name.
        is_first = not starts or bool(before.strip())
        if (is_first and may_precede(before)) or ((starts or is_inside) and _ends_a_pair(before)):
            starts.append(found)
    return starts


def is_cut_start(text: str) -> bool:
    """Tell whether the text ends in the first characters of a step line."""
    found = _CUT_START.search(text[-40:])
    return found is not None and may_precede(text[-440:-40] + text[-40:][: found.start()])


def may_precede(before: str) -> bool:
    """Tell whether a step line may begin after this text: a prefix of Ray, a progress bar, a time, a level; never prose."""
    text = before.rstrip()
    while text and not _ends_what_precedes(text, is_glued=text == before):
        # "2026-01-31 - INFO - step:1": the dash of a log format, if what stands before it fits too.
        if text == before or not text.endswith(" -"):
            return False
        text = text[:-2].rstrip()
        before = f"{text} "
    return True


def _ends_what_precedes(text: str, *, is_glued: bool) -> bool:
    end = text[-500:]
    if _BLOCKS[0] <= text[-1] <= _BLOCKS[1] or any(form.search(end) for form in (_RAY_END, _BRACKET_END, _LEVEL_END)):
        return True
    if is_glued:
        return False
    last = end.rsplit(None, 1)[-1]
    is_stamp = _STAMP.fullmatch(last) is not None and (":" in last or last.endswith("Z"))
    return is_stamp or _LEVEL.fullmatch(last) is not None or _RANK.fullmatch(text.lstrip()) is not None


def parse_body(step: int, body: str) -> Record | None:
    """Return the record of the text after `step:N - `; None where it is no step line because no number follows."""
    record = Record(step=step)
    tokens = split_tokens(body)
    for index, token in enumerate(tokens):
        # First, as what is glued to a value may end in a colon and a number of its own.
        glued = parse_glued_pair(token.rstrip())
        if glued is not None and (index == 0 or record.pairs):
            record.pairs.append(glued)
            record.lost = sum(_is_metric(parse_pair(later)) for later in tokens[index + 1 :])
            return record if _is_key(record.pairs[0][0]) else None
        pair = parse_pair(token)
        if pair is not None:
            record.pairs.append(pair)
        elif index < len(tokens) - 1:
            record.broken.append(token.strip())
        else:
            record.is_cut = True
    record.tail = tokens[-1]
    return record if _is_step_line(record, tokens[0]) else None


def split_tokens(body: str) -> list[str]:
    """Return the texts between the separators; a separator at the end that lost its blank still counts."""
    stripped = body.rstrip()
    if stripped == "-" or stripped.endswith(" -"):
        body = f"{stripped} "
    return body.split(SEPARATOR)


def is_broken_number(token: str) -> bool:
    """Tell whether a token is a key with a value that was meant to be a number."""
    key, colon, text = token.rpartition(":")
    return bool(colon) and _is_key(key) and text[:1] in set("0123456789+-.n")


def _is_step_line(record: Record, first: str) -> bool:
    if record.pairs:
        return _is_key(record.pairs[0][0])
    first = first.strip()
    is_cut_key = record.is_cut and not record.broken and (not first or (_is_key(first) and "/" in first))
    return is_cut_key or is_broken_number(first)


def _is_key(key: str) -> bool:
    return bool(key) and not any(map(str.isspace, key))


def _is_metric(pair: tuple[str, float] | None) -> bool:
    return pair is not None and "/" in pair[0]


def _ends_a_pair(before: str) -> bool:
    text = before.rstrip()
    prefix = _RAY_END.search(text[-500:])
    if prefix:
        text = text[: len(text) - (prefix.end() - prefix.start())].rstrip()
    return parse_pair(text.rsplit(SEPARATOR, 1)[-1]) is not None


def _number(found: re.Match[str]) -> float:
    truth = found["truth"]
    if truth is not None:
        return float(truth == "True")
    value = float(found["plain"] if found["plain"] is not None else found["wrapped"])
    return math.nan if math.isnan(value) else value
