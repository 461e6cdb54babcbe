"""What verl composed in this session: each configuration once, many of them in one child process.

Must not know: cases, or what a problem means for them.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias, final

from ..deadline import Deadline
from ..errors import PreflightError
from ..preflight import Composition, Request, compose_cases

# The start of a child takes some seconds and a case half of one; a host under load needs far more, and one late child fails all.
START_LIMIT_S = 180.0
CASE_LIMIT_S = 20.0


Found: TypeAlias = "Composition | PreflightError"


@final
class Compositions:
    """Composes with the interpreter `python`; what was composed, or why it could not be, is not asked again.

    `shared` is a directory through which processes of one session share that: one composes, the others wait for it and read.
    """

    def __init__(self, python: str, *, shared: Path | None = None) -> None:
        self._python = python
        self._shared = shared
        self._known: dict[str, Found] = {}

    def prepare(self, requests: Sequence[Request]) -> None:
        """Compose all requests that are not known yet, in one child."""
        if all(_key(request) in self._known for request in requests):
            return
        if self._shared is None:
            self._compose(requests)
            return
        file = self._shared / "compositions.json"
        with _locked(self._shared / "lock"):
            if file.exists():
                self._known.update({key: _read(entry) for key, entry in json.loads(file.read_bytes()).items()})
            if self._compose(requests):
                file.write_text(json.dumps({key: _written(found) for key, found in self._known.items()}), encoding="utf-8")

    def _compose(self, requests: Sequence[Request]) -> bool:
        """Compose what is not known, and tell whether there was anything."""
        wanted = {_key(request): request for request in requests if _key(request) not in self._known}
        if not wanted:
            return False
        limit_s = START_LIMIT_S + CASE_LIMIT_S * len(wanted)
        deadline = Deadline.after(limit_s, name=f"composing {len(wanted)} configurations")
        try:
            found: Sequence[Found] = compose_cases(tuple(wanted.values()), deadline=deadline, python=self._python)
        except PreflightError as error:
            found = [error] * len(wanted)
        self._known.update(zip(wanted, found, strict=True))
        return True

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


def _key(request: Request) -> str:
    # The origin of an override is part of what is said of it.
    words = (request.config_name, *(f"{request.origins.get(argument, '')} {argument}" for argument in request.arguments))
    return json.dumps(words)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock; whoever has it composes under a deadline, and its end frees it."""
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _written(found: Found) -> Mapping[str, Any]:
    return {"problems": found.problems} if isinstance(found, PreflightError) else {"composition": asdict(found)}


def _read(entry: Mapping[str, Any]) -> Found:
    if "problems" in entry:
        return PreflightError(*entry["problems"])
    fields = entry["composition"]
    return Composition(**{**fields, "problems": tuple(fields["problems"])})
