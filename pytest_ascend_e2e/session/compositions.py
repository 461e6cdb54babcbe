"""What verl composed in this session: each configuration once, many of them in one child process.

Must not know: cases, or what a problem means for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from ..deadline import Deadline
from ..errors import PreflightError
from ..preflight import Composition, Request, compose_cases

# The start of a child takes some seconds and a case half of one; a host under load needs far more, and one late child fails all.
START_LIMIT_S = 180.0
CASE_LIMIT_S = 20.0


@final
class Compositions:
    """Composes with the interpreter `python`; what was composed, or why it could not be, is not asked again."""

    def __init__(self, python: str) -> None:
        self._python = python
        self._known: dict[tuple[str, ...], Composition | PreflightError] = {}

    def prepare(self, requests: Sequence[Request]) -> None:
        """Compose all requests that are not known yet, in one child."""
        wanted = {_key(request): request for request in requests if _key(request) not in self._known}
        if not wanted:
            return
        limit_s = START_LIMIT_S + CASE_LIMIT_S * len(wanted)
        deadline = Deadline.after(limit_s, name=f"composing {len(wanted)} configurations")
        try:
            found: Sequence[Composition | PreflightError] = compose_cases(
                tuple(wanted.values()), deadline=deadline, python=self._python
            )
        except PreflightError as error:
            found = [error] * len(wanted)
        self._known.update(zip(wanted, found, strict=True))

    def of(self, request: Request) -> Composition:
        """Return what verl made of a request.

        Raises:
            PreflightError: the child that composed it crashed, or was not done in time.
        """
        self.prepare([request])
        found = self._known[_key(request)]
        if isinstance(found, PreflightError):
            raise PreflightError(*found.problems)
        return found


def _key(request: Request) -> tuple[str, ...]:
    # The origin of an override is part of what is said of it.
    return (request.config_name, *(f"{request.origins.get(argument, '')} {argument}" for argument in request.arguments))
