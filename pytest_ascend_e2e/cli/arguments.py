"""Types of arguments that several commands take, with messages of their own: argparse hides that of any other error.

Must not know: which commands.
"""

from __future__ import annotations

import argparse

from ..deadline import parse_duration


def duration(text: str) -> float:
    """Return the seconds of a duration.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
