"""A trap of pytest: it looks for its root directory and its ini file before it knows the options of plugins.

The value of such an option, where it stands apart from its flag and exists, is a place of tests to it then; a session could go on
from another root and without its ini file, and nobody would know.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest

from ..errors import SettingsError


def refuse_lost_root(config: pytest.Config, flags: Iterable[str]) -> None:
    """Refuse a session whose root pytest may have taken from the value of one of these flags.

    Raises:
        SettingsError: pytest found no ini file, and a path elsewhere stands apart from its flag.
    """
    if config.inipath is not None:
        return
    asked = config.invocation_params
    here, known = asked.dir.resolve(), frozenset(flags)
    for flag, value in pairwise(str(argument) for argument in asked.args):
        path = (here / value).resolve()
        if flag in known and path.exists() and not path.is_relative_to(here):
            raise SettingsError(
                f"{flag} {value}: write {flag}={value}, as one word: pytest takes a path after a space for a place of tests, and "
                "looks for its ini file there"
            )
