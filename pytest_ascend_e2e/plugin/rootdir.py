"""A trap of pytest: it looks for its ini file before it knows the options of plugins.

The value of such an option, where it stands apart from its flag and exists, is a place of tests to it then; a session could go on
without its ini file, and nobody would know.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest

from ..errors import SettingsError

# What makes such a file one of pytest's; the first two are, whatever they hold.
_INI_FILES = {
    "pytest.ini": "",
    ".pytest.ini": "",
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}


def check_ini_file(config: pytest.Config, flags: Iterable[str]) -> None:
    """Refuse a session that lost its ini file to the value of one of these flags.

    Raises:
        SettingsError: there is an ini file, pytest did not find it, and a value stands apart from its flag.
    """
    asked = config.invocation_params
    if config.inipath is not None:
        return
    known = frozenset(flags)
    apart = [(str(flag), str(value)) for flag, value in pairwise(asked.args) if flag in known and (asked.dir / str(value)).exists()]
    if not apart:
        return
    missed = next((path for folder in (asked.dir, *asked.dir.parents) if (path := _ini_file(folder))), None)
    if missed is not None:
        flag, value = apart[0]
        raise SettingsError(
            f"{flag} {value}: pytest takes a value that stands apart and exists for a place of tests, and so it did not find "
            f"{missed}; write {flag}={value}"
        )


def _ini_file(folder: Path) -> Path | None:
    for name, mark in _INI_FILES.items():
        path = folder / name
        if path.is_file() and mark in path.read_text(encoding="utf-8", errors="replace"):
            return path
    return None
