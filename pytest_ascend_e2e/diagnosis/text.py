"""Raw lines of a console log to plain text: no ANSI, no progress bar, no prefix of Ray, torchrun, vLLM or a log collector.

Must not know: what a line means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_LINE = 1 << 16
"""Bytes of one line that are looked at; the rest of a longer one is dropped."""

_ANSI = re.compile(r"\x1b\[[0-9;?]{0,20}[@-~]")
_LOST_ESCAPE = re.compile(r"\[\d{1,3}(?:;\d{1,3}){0,4}m")  # ESC eaten by a log collector
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BAR = re.compile(r"^[^|]{0,200}?\d%\|[^|]{0,400}\|[^\]]{0,160}\]")
_REPEATED = re.compile(r"\s*\[repeated \d+x across cluster\].*$")
# Each alternative is one prefix; they are taken off from the left as long as one fits, with one blank, so that indentation stays.
_PREFIX = re.compile(
    r"(?:"
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)(?: (?:stdout|stderr) [FP])?"  # GitHub Actions, Kubernetes
    r"|[a-z][\w.-]{1,60} {1,20}\|(?= )"  # docker compose
    r"|\((?P<source>[^()]{0,120}\bpid=[^()]{1,80}|(?:raylet|autoscaler|gcs_server)[^()]{0,60})\)"  # Ray, vLLM
    r"|\[(?P<rank>(?:rank|default)\d{1,5})\]:"  # torch.distributed, torchrun
    r"|(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]{1,120}\]"  # vLLM
    r"|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [A-Z]{2}\d{1,3}){1,4}\]"  # SGLang
    r"|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: - [\w.]{1,80})?(?: - |\s|: ?| \| )"  # logging, loguru, Ray
    r"(?P<logged>DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)(?: - |: ?| +\| [\w.:<>-]{1,120} - | [\w.]{1,60}:\d+ --)"
    r")[ \t]?"
)
_PREFIX_STARTS = frozenset("([0123456789DIWECabcdefghijklmnopqrstuvwxyz")
_GROUP = re.compile(r"^ {2,8}\| (?=\S)")  # a line of an ExceptionGroup's traceback
_PYTEST = re.compile(r"^E {3}(?=\S)")
_LEVEL = re.compile(
    r"^\[?(?:(?P<word>DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b"
    r"|(?P<letter>[DIWEF])(?:\d{3,4} | [\w.]{1,60}:\d+\])"  # torch's and glog's "[W socket.cpp:1]", "[E508 03:20:31 ..."
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ (?P<ray>[DIWEC]) \d+)"  # Ray's C++ side
)
_PYTHON_WARNING = re.compile(r"[^:]{1,200}:\d+: \w*(Warning): ")
_QUIET = frozenset({"DEBUG", "INFO", "WARN", "WARNING", "Warning", "D", "I", "W"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line as a reader sees it: `source` is the process that printed it (empty: the driver), `text` keeps its indentation.

    `is_quiet`: logged below the level of an error.
    """

    source: str
    text: str
    is_quiet: bool


def clean(raw: bytes | str) -> Line:
    """Return one line of a log without its decoration."""
    text = raw[:MAX_LINE].decode("utf-8", "replace") if isinstance(raw, bytes) else raw[:MAX_LINE]
    text = text.rstrip()
    if "[" in text:
        text = _LOST_ESCAPE.sub("", _ANSI.sub("", text))
        text = _REPEATED.sub("", text) if "[repeated" in text else text
    if "%|" in text:
        text = _BAR.sub("", text) or text
    source, level = "", ""
    while text[:1] in _PREFIX_STARTS and (match := _PREFIX.match(text)):
        source = match["source"] or match["rank"] or source
        level = match["level"] or match["logged"] or level
        text = text[match.end() :]
    if text.startswith(("  ", "E   ")):
        text = _PYTEST.sub("", _GROUP.sub("", text))
    if not level and (found := _LEVEL.match(text) or ("Warning: " in text and _PYTHON_WARNING.match(text))):
        level = next(group for group in found.groups() if group)
    if not text.isprintable():
        text = _CONTROL.sub("", text)
    return Line(source=source, text=text.rstrip(), is_quiet=level in _QUIET)


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Return the lines, those apart that a progress bar joins with a carriage return."""
    for chunk in chunks:
        if b"\r" in chunk:
            yield from (part for part in chunk.split(b"\r") if part.strip())
        else:
            yield chunk


def shorten(text: str, limit: int = 1000) -> str:
    """Return the text without its indentation, with an ellipsis where it is longer than `limit` characters."""
    bare = text.strip()
    return bare if len(bare) <= limit else bare[: limit - 1] + "…"
