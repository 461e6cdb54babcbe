"""One case: what a test asked for by its marker.

Must not know: pytest's marker objects; `plugin/` hands over plain arguments.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..deadline import parse_duration
from ..errors import E2EError, did_you_mean
from ..recipe import SFT, Recipe
from ..runners import Runner


class Tier(enum.Enum):
    """The tier of a case, named as its marker."""

    NIGHTLY = "npu_nightly"
    PULL_REQUEST = "npu_e2e"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A test that trains.

    `runners` holds the names of which any will do. `recipe` is None where the test builds its recipes itself. Durations are in
    seconds; None means the session's setting: `wait_s` for free devices, then of one training `timeout_s` in all, `start_s` until
    its first step begins, `first_step_s` until that step ends, `step_s` for each later step, `silence_s` without a sign of life.
    `estimate_s` is how long the case is expected to hold its devices; `devices` is how many of the runner's it takes on each node,
    None for all of them.
    """

    name: str
    tier: Tier
    runners: tuple[str, ...]
    recipe: Recipe | SFT | None = None
    nodes: int = 1
    devices: int | None = None
    timeout_s: float | None = None
    silence_s: float | None = None
    wait_s: float | None = None
    start_s: float | None = None
    first_step_s: float | None = None
    step_s: float | None = None
    estimate_s: float | None = None

    def share_of(self, runner: Runner) -> Runner:
        """Return the runner as this case sees it: with as many devices as the case takes."""
        return runner if self.devices is None else replace(runner, devices=self.devices)


DURATIONS = ("timeout", "silence", "wait", "start", "first_step", "step", "estimate")
ARGUMENTS = ("runner", "recipe", "nodes", "devices", *DURATIONS)


def case_from_arguments(name: str, tier: Tier, args: Sequence[object], kwargs: Mapping[str, object]) -> Case:
    """Return the case that the arguments of a marker describe.

    Raises:
        E2EError: with one text for each wrong argument.
    """
    problems: list[str] = []
    if args:
        problems.append(f"takes no positional argument, got {args[0]!r}; write runner={args[0]!r}")
    for key in kwargs:
        if key not in ARGUMENTS:
            near = difflib.get_close_matches(key, ARGUMENTS, n=1)
            hint = did_you_mean(near, otherwise=f"accepted are {', '.join(ARGUMENTS)}")
            problems.append(f"has no argument {key!r}; {hint}")
    runners = _runners(kwargs, problems)
    recipe = kwargs.get("recipe")
    if recipe is not None and not isinstance(recipe, (Recipe, SFT)):
        problems.append(f"recipe={recipe!r} is a {type(recipe).__name__}; expected a Recipe(...) or an SFT(...)")
    nodes = _count("nodes", kwargs.get("nodes", 1), problems)
    devices = None if kwargs.get("devices") is None else _count("devices", kwargs["devices"], problems)
    durations = {f"{key}_s": _duration(key, kwargs.get(key), problems) for key in DURATIONS}
    if problems or not (recipe is None or isinstance(recipe, (Recipe, SFT))):
        raise E2EError(*(f"@{tier.value} of {name} {problem}" for problem in problems))
    return Case(
        name=name,
        tier=tier,
        runners=runners,
        recipe=recipe,
        nodes=nodes,
        devices=devices,
        **durations,
    )


def _runners(kwargs: Mapping[str, object], problems: list[str]) -> tuple[str, ...]:
    given = kwargs.get("runner")
    names = (given,) if isinstance(given, str) else given
    if isinstance(names, (tuple, list)) and names and all(isinstance(name, str) and name for name in names):
        return tuple(names)
    if given is None:
        problems.append('needs a runner, e.g. runner="a3-16", or a tuple of which any will do')
    else:
        problems.append(f'runner={given!r}: expected the name of a runner such as "a3-16", or a tuple of names')
    return ()


def _count(key: str, given: object, problems: list[str]) -> int:
    if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
        return given
    problems.append(f"{key}={given!r}: expected a whole number of 1 or more")
    return 1


def _duration(key: str, given: object, problems: list[str]) -> float | None:
    if given is None:
        return None
    if isinstance(given, (int, float)) and not isinstance(given, bool) and given > 0:
        return float(given)
    try:
        return parse_duration(given) if isinstance(given, str) else _refuse(given)
    except ValueError as error:
        problems.append(f"{key}={error}")
        return None


def _refuse(given: object) -> float:
    raise ValueError(f"{given!r} cannot be used: expected a positive duration such as 90, 15m or 2h")
