"""Starting the child that composes, and turning what it found into sentences that name the recipe's field.

Must not know: Hydra (only the child has it), or whether a problem ends a run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..deadline import Deadline
from ..errors import PreflightError
from ..recipe import Override

_MODULE = "pytest_ascend_e2e.preflight.compose"
_TAIL_LINES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What to compose: the name of one of verl's configurations, and overrides of it in Hydra's grammar.

    `origins` tells of an argument which field or override of a recipe asked for it.
    """

    config_name: str
    arguments: tuple[str, ...]
    origins: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, config_name: str, overrides: Sequence[Override]) -> Request:
        """Return the request for the overrides of a recipe."""
        origins = {override.argument: override.origin for override in overrides}
        return cls(config_name=config_name, arguments=tuple(origins), origins=origins)


@dataclass(frozen=True, kw_only=True, slots=True)
class Composition:
    """What verl's own composition made of one list of overrides.

    `is_checked` is False where verl is not installed, and `reason` says so; `config` is the resolved configuration, None where it
    could not be composed; with problems, it is the configuration without the overrides that have them. `unbuilt` says why verl's
    dataclasses could not be asked, empty where they were.
    """

    is_checked: bool
    reason: str = ""
    verl: str = ""
    config: Mapping[str, Any] | None = None
    problems: tuple[str, ...] = ()
    unbuilt: str = ""


def compose_cases(
    cases: Sequence[Request],
    *,
    deadline: Deadline,
    python: str = sys.executable,
    environment: Mapping[str, str] | None = None,
) -> tuple[Composition, ...]:
    """Compose all cases in one child process of `python`, and return one result for each.

    Raises:
        PreflightError: the child crashed, said something else than expected, or was not done by the deadline.
    """
    if not cases:
        return ()
    request = json.dumps([{"config": case.config_name, "overrides": case.arguments} for case in cases])
    answer = _ask(request, deadline, python, environment)
    if "missing" in answer:
        reason = f"composition was not checked: {answer['missing']} is not there for {answer['python']}"
        return tuple(Composition(is_checked=False, reason=reason) for _ in cases)
    entries = answer["entries"]
    if len(entries) != len(cases):
        raise PreflightError(f"{python} -m {_MODULE}: {len(entries)} answers to {len(cases)} cases")
    verl, reason = str(answer["verl"]), str(answer.get("unbuilt", ""))
    return tuple(_composition(entry, case, verl, reason) for entry, case in zip(entries, cases, strict=True))


def _ask(request: str, deadline: Deadline, python: str, environment: Mapping[str, str] | None) -> dict[str, Any]:
    command = [python, "-m", _MODULE]
    shown = " ".join(command)
    try:
        status, stdout, stderr = _run(command, request.encode(), max(deadline.remaining_s(), 0.001), environment)
    except subprocess.TimeoutExpired as error:
        raise PreflightError(f"{shown}: not done after {deadline.limit_s:g} s ({deadline.name}); it was ended") from error
    except OSError as error:
        raise PreflightError(f"{shown}: could not be started: {error}") from error
    if status != 0:
        tail = stderr.decode(errors="replace").strip().splitlines()[-_TAIL_LINES:]
        raise PreflightError(f"{shown}: ended with status {status}: {' | '.join(tail) or 'it said nothing'}")
    try:
        answer = json.loads(stdout.decode(errors="replace").strip().rpartition("\n")[2])
    except ValueError as error:
        raise PreflightError(f"{shown}: answered no JSON: {stdout[:200]!r}") from error
    if not isinstance(answer, dict) or not ({"missing", "entries"} & answer.keys()):
        raise PreflightError(f"{shown}: answered {answer!r:.200}; expected what is missing, or an entry for each case")
    return answer


def _run(command: Sequence[str], given: bytes, limit_s: float, environment: Mapping[str, str] | None) -> tuple[int, bytes, bytes]:
    """Run the child in a session of its own, so that the processes it forked end with it, and return status and output.

    Raises:
        subprocess.TimeoutExpired: it was not done in time, and was ended.
        OSError: it could not be started.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=None if environment is None else dict(environment),
        start_new_session=True,
    ) as child:
        try:
            stdout, stderr = child.communicate(given, timeout=limit_s)
        except BaseException:
            # The group is there as long as its first process was not waited for.
            os.killpg(child.pid, signal.SIGKILL)
            raise
    return child.returncode, stdout, stderr


def _composition(entry: Mapping[str, Any], case: Request, verl: str, reason: str) -> Composition:
    problems = tuple(_sentence(problem, case.origins.get(problem["argument"], ""), verl) for problem in entry["problems"])
    return Composition(is_checked=True, verl=verl, config=entry["config"], problems=problems, unbuilt=_unbuilt(entry, verl, reason))


def _unbuilt(entry: Mapping[str, Any], verl: str, reason: str) -> str:
    unasked = [reason] if reason else entry.get("unasked", ())
    text = " ".join("; ".join(unasked).split())
    return f"verl {verl} could not be asked about all of this configuration: {text}" if text else ""


def _sentence(problem: Mapping[str, Any], asked_by: str, verl: str) -> str:
    origin = asked_by or problem["argument"] or "overrides"
    key, kind = problem["key"], problem["kind"]
    nearest = " or ".join(problem["nearest"])
    if kind == "unknown":
        advice = f"the nearest it has: {nearest}" if nearest else "leave it out, or append it with a + before its last name"
        return f"{origin}: verl {verl} has no key {key}; {advice} [K7]"
    if kind == "appendable":
        head, _, leaf = key.rpartition(".")
        return f"{origin}: verl {verl} has {key} as a field that its YAML lacks; append it: '{head}.+{leaf}' [K7]"
    if kind == "exists":
        return f"{origin}: verl {verl} has the key {key} already; leave out the + [K7]"
    if kind == "no-field":
        advice = f"the nearest it has: {nearest}" if nearest else "leave it out"
        return f"{origin}: verl {verl} builds a dataclass there, which has no field for +{key}; {advice} [K8]"
    text = " ".join(str(problem.get("text", "")).split())
    if kind == "refused":
        return f"{key}: verl {verl} refuses this configuration: {text} [K24]"
    return f"{origin}: verl {verl} cannot compose this: {text}"
