"""Annotations of a CI: a line of output that the CI shows beside the line of code that it is about.

The form is that of GitHub's workflow commands. Must not know: whether there is a CI.
"""

from __future__ import annotations


def annotation(level: str, message: str, *, path: str, line: int, title: str) -> str:
    """Return the line for an `error` or a `warning` at a line of a file, whose path is from the root of the repository."""
    places = f"file={_property(path)},line={line},title={_property(title)}"
    return f"::{level} {places}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
