"""Secrets: what looks like one is not written to any file of a run.

Known by the name of a variable or a setting, by the value of such a variable wherever it stands, by credentials inside a URL, and
by the shape that some tokens have. Must not know: which files there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

REDACTED = "<redacted>"

_SECRET_WORDS = frozenset(
    {
        "TOKEN",
        "TOKENS",
        "KEY",
        "KEYS",
        "APIKEY",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "CREDENTIALS",
    }
)
# In the settings of a training "key" names a column and "token" a piece of text: `data.image_key`, `data.return_raw_token`.
_SECRET_SETTING = re.compile(
    r"(?i)(?:^|.*[._-])(?:secrets?|password|passwd|passphrase|credentials?|(?:api|access|private|secret|account)[_-]?key"
    r"|(?:(?:auth|access|api|bearer|refresh|hf|hub|github|wandb|secret)[_-]?)token)$|^(?:.*\.)?token$"
)
_SETTING = re.compile(r"^(?P<head>[+~-]*(?P<name>[\w./@-]+)=)(?P<value>.+)$", re.DOTALL)
_FLAG = re.compile(r"^--?(?P<name>[\w.-]+)$")
_YAML_LINE = re.compile(r"(?m)^(?P<head>[ \t-]*(?P<name>[\w.-]+)[ \t]*:[ \t]+)(?P<value>\S.*)$")
_IN_URL = re.compile(r"(?P<head>\b[a-z][a-z0-9+.-]*://)(?P<secret>[^\s/@'\"]+)(?=@)", re.IGNORECASE)
_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{16}"
    r"|xox[abpr]-[A-Za-z0-9-]{10,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+)"
)
# A shorter value would be found all over a text by chance: "1", "true", "root".
_SHORTEST_BYTES = 6
_NO_SECRET = frozenset({"", "null", "none", "true", "false"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A part of an argument; `secret_of` names where a secret part comes from (a variable, a setting), and is empty otherwise."""

    text: str
    secret_of: str = ""


def is_secret_name(name: str) -> bool:
    """Tell whether a variable of this name holds a secret: one of the words between its underscores says so."""
    return any(word in _SECRET_WORDS for word in name.upper().split("_"))


class Redactor:
    """Finds the secrets of one run in texts; made from the environment of the run."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = {} if environment is None else environment
        self._variables = {
            value: name for name, value in environment.items() if is_secret_name(name) and len(value) >= _SHORTEST_BYTES
        }
        in_json = (json.dumps(value)[1:-1] for value in self._variables)  # a record is redacted as JSON
        longest_first = sorted({*self._variables, *in_json}, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def text(self, text: str) -> str:
        """Return the text without known values, credentials in URLs and token shapes; the syntax of JSON stays whole."""
        text = self._values.sub(REDACTED, text)
        text = _IN_URL.sub(lambda match: match["head"] + REDACTED, text)
        return _SHAPES.sub(REDACTED, text)

    def yaml(self, text: str) -> str:
        """Return a configuration without secrets: as `text`, and the values of settings whose name says it."""
        return self.text(_YAML_LINE.sub(_redact_setting, text))

    def variable(self, name: str, value: str) -> str:
        """Return the value of a variable as it may be written."""
        return REDACTED if is_secret_name(name) and value else self.text(value)

    def is_secret(self, name: str, value: str) -> bool:
        """Tell whether a variable cannot be written as it is."""
        return self.variable(name, value) != value

    def arguments(self, argv: tuple[str, ...]) -> list[list[Piece]]:
        """Return each argument in pieces, the secret ones marked."""
        flags = [None, *(_FLAG.match(argument) for argument in argv)]
        return [
            [Piece(text=argument, secret_of=flag["name"])]
            if flag and _SECRET_SETTING.match(flag["name"])
            else self._pieces(argument)
            for flag, argument in zip(flags, argv, strict=False)
        ]

    def _pieces(self, argument: str) -> list[Piece]:
        setting = _SETTING.match(argument)
        if setting and _SECRET_SETTING.match(setting["name"]) and setting["value"].lower() not in _NO_SECRET:
            value = setting["value"]
            return [Piece(text=setting["head"]), Piece(text=value, secret_of=self._variables.get(value, setting["name"]))]
        return list(self._cut(argument))

    def _cut(self, text: str) -> Iterator[Piece]:
        at = 0
        for start, stop in self._spots(text):
            if start > at:
                yield Piece(text=text[at:start])
            if stop > at:
                secret = text[max(start, at) : stop]
                yield Piece(text=secret, secret_of=self._variables.get(secret, "a secret in an argument"))
            at = max(at, stop)
        if at < len(text):
            yield Piece(text=text[at:])

    def _spots(self, text: str) -> list[tuple[int, int]]:
        in_urls = [match.span("secret") for match in _IN_URL.finditer(text)]
        others = [match.span() for pattern in (self._values, _SHAPES) for match in pattern.finditer(text)]
        return sorted(in_urls + others)


def _redact_setting(match: re.Match[str]) -> str:
    if _SECRET_SETTING.match(match["name"]) and match["value"].strip().lower() not in _NO_SECRET:
        return match["head"] + REDACTED
    return match[0]
