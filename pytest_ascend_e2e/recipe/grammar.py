"""Hydra's grammar of overrides: how a key and a value are written so that Hydra reads back exactly what was meant.

Must not know: what the keys mean. The round trip is tested against Hydra's own parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath

_KEY_PART = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*|0|[1-9][0-9]*")
# What needs no quotes: a word, a path or a module name. Words that Hydra reads as something else are told apart below.
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_/.-]*")
_RESERVED = frozenset({"true", "false", "null", "inf", "nan"})
_DICT_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.{}*-]*")
_BACKSLASHES_BEFORE_QUOTE = re.compile(r"(\\*)'")
_LAST_BACKSLASHES = re.compile(r"(\\+)$")


def is_key_part(text: str) -> bool:
    """Tell whether Hydra takes a text as one step of a dotted key."""
    return _KEY_PART.fullmatch(text) is not None


def render_value(value: object) -> str:
    """Return a value in Hydra's grammar: None as null, texts quoted where a reader would take them for something else.

    Raises:
        TypeError: the value, or one within it, has no form in Hydra's grammar.
    """
    if value is None:
        return "null"
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (str, PurePath)):
        return _text(str(value))
    if isinstance(value, (list, tuple)):
        return f"[{','.join(render_value(item) for item in value)}]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_dict_key(key)}:{render_value(item)}" for key, item in value.items()) + "}"
    raise TypeError(f"{type(value).__name__} has no form in an override; use a number, a text, a bool, None, a list or a mapping")


def _text(value: str) -> str:
    if _PLAIN.fullmatch(value) and value.lower() not in _RESERVED:
        return value
    # Within quotes a backslash stands for itself, but before a quote and at the end.
    escaped = _BACKSLASHES_BEFORE_QUOTE.sub(lambda found: found[1] * 2 + r"\'", value)
    escaped = _LAST_BACKSLASHES.sub(lambda found: found[1] * 2, escaped)
    return f"'{escaped}'"


def _dict_key(key: object) -> str:
    if not isinstance(key, str) or not _DICT_KEY.fullmatch(key) or key.lower() in _RESERVED:
        raise TypeError(f"the key {key!r} within a value has no form in an override; use letters, digits, _, -, ., *, {{ and }}")
    return key.replace("{", r"\{").replace("}", r"\}")
