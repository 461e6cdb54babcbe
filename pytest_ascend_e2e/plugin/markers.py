"""The two markers of a case, as decorators with typed arguments, and how an item's marker becomes a Case.

A wrong argument is no exception here: it is kept with the mark and told at collection as one line, whichever way it was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from ..errors import E2EError
from ..session import DURATIONS, Case, Quarantine, Tier, case_from_arguments, quarantine_from_arguments

if TYPE_CHECKING:
    from ..recipe import SFT, Recipe

CASE_KEY = pytest.StashKey[Case]()
QUARANTINE_KEY = pytest.StashKey[Quarantine]()

_NOT_GIVEN = object()


def npu_nightly(  # noqa: PLR0913  # each is one thing that a case may say
    *misplaced: object,
    runner: str | tuple[str, ...] | object = _NOT_GIVEN,
    recipe: Recipe | SFT | object = _NOT_GIVEN,
    nodes: int | object = _NOT_GIVEN,
    devices: int | object = _NOT_GIVEN,
    timeout: float | str | object = _NOT_GIVEN,
    silence: float | str | object = _NOT_GIVEN,
    wait: float | str | object = _NOT_GIVEN,
    start: float | str | object = _NOT_GIVEN,
    first_step: float | str | object = _NOT_GIVEN,
    step: float | str | object = _NOT_GIVEN,
    estimate: float | str | object = _NOT_GIVEN,
    **unknown: object,
) -> pytest.MarkDecorator:
    """Mark a test as a nightly case; it then has the marker `nightly` as well.

    Args:
        *misplaced: none are accepted; told at collection.
        runner: name of the kind of machine, or a tuple of which any will do.
        recipe: what to train; left out where the test builds its recipes itself and trains them with `train`.
        nodes: number of hosts.
        devices: how many of the runner's devices the case takes; left out, it takes all of them.
        timeout: longest time of one training: seconds, or a text such as "3h".
        silence: longest time without a sign of life.
        wait: longest wait for free devices.
        start: longest time from the start of a training until its first step begins.
        first_step: longest time from the start of a training until its first step has ended.
        step: longest time of each later step.
        estimate: how long the case is expected to hold its devices.
        **unknown: none are accepted; told at collection.
    """
    given = {
        "runner": runner,
        "recipe": recipe,
        "nodes": nodes,
        "devices": devices,
        "timeout": timeout,
        "silence": silence,
        "wait": wait,
        "start": start,
        "first_step": first_step,
        "step": step,
        "estimate": estimate,
        **unknown,
    }
    return _mark("npu_nightly", misplaced, given)


def npu_e2e(  # noqa: PLR0913  # as above
    *misplaced: object,
    runner: str | tuple[str, ...] | object = _NOT_GIVEN,
    recipe: Recipe | SFT | object = _NOT_GIVEN,
    nodes: int | object = _NOT_GIVEN,
    devices: int | object = _NOT_GIVEN,
    timeout: float | str | object = _NOT_GIVEN,
    silence: float | str | object = _NOT_GIVEN,
    wait: float | str | object = _NOT_GIVEN,
    start: float | str | object = _NOT_GIVEN,
    first_step: float | str | object = _NOT_GIVEN,
    step: float | str | object = _NOT_GIVEN,
    estimate: float | str | object = _NOT_GIVEN,
    **unknown: object,
) -> pytest.MarkDecorator:
    """Mark a test as a case of the pull-request tier; the arguments are those of `npu_nightly`."""
    given = {
        "runner": runner,
        "recipe": recipe,
        "nodes": nodes,
        "devices": devices,
        "timeout": timeout,
        "silence": silence,
        "wait": wait,
        "start": start,
        "first_step": first_step,
        "step": step,
        "estimate": estimate,
        **unknown,
    }
    return _mark("npu_e2e", misplaced, given)


def quarantine(
    *misplaced: object,
    reason: str | object = _NOT_GIVEN,
    owner: str | object = _NOT_GIVEN,
    issue: str | object = _NOT_GIVEN,
    until: str | object = _NOT_GIVEN,
    **unknown: object,
) -> pytest.MarkDecorator:
    """Switch a case off until a day; after it, the case is red until somebody decides.

    Args:
        *misplaced: none are accepted; told at collection.
        reason: why the case is off.
        owner: who sees to it.
        issue: where it is tracked.
        until: the last day on which it may be off, such as "2027-01-31".
        **unknown: none are accepted; told at collection.
    """
    given = {"reason": reason, "owner": owner, "issue": issue, "until": until, **unknown}
    return _mark("quarantine", misplaced, given)


def _mark(name: str, misplaced: tuple[object, ...], given: dict[str, object]) -> pytest.MarkDecorator:
    kwargs = {key: value for key, value in given.items() if value is not _NOT_GIVEN}
    mark: pytest.MarkDecorator = getattr(pytest.mark, name)
    if len(misplaced) == 1 and callable(misplaced[0]) and not kwargs:
        # `@npu_nightly` without brackets: the test must stay a test, so that its missing runner can be told.
        return cast("pytest.MarkDecorator", mark(misplaced[0]))
    return mark.with_args(*misplaced, **kwargs)


def declare_markers(config: pytest.Config) -> None:
    """Make the markers known, so that --strict-markers accepts them."""
    durations = ", ".join(f"{name}=None" for name in DURATIONS)
    arguments = f"runner, recipe=None, nodes=1, devices=None, {durations}"
    for line in (
        f"npu_nightly({arguments}): a nightly case; implies nightly",
        f"npu_e2e({arguments}): a case of the pull-request tier",
        "nightly: set by npu_nightly",
        "quarantine(reason, owner, issue, until): a case that is off, and the last day on which it may be",
    ):
        config.addinivalue_line("markers", line)


def case_of(node: pytest.Item | pytest.Function, name: str) -> Case | None:
    """Return the case that an item's own marker describes, None where it has none.

    Raises:
        E2EError: a wrong argument, or a marker of both tiers.
    """
    found = [(tier, mark) for tier in Tier for mark in node.iter_markers(tier.value)]
    if not found:
        return None
    if len({tier for tier, _ in found}) > 1:
        raise E2EError(f"{name} has both @npu_nightly and @npu_e2e; a case belongs to one tier: keep one of them")
    tier, closest = found[0]
    return case_from_arguments(name, tier, closest.args, closest.kwargs)


def quarantine_of(node: pytest.Item | pytest.Function, name: str) -> Quarantine | None:
    """Return the quarantine that an item's marker describes, None where it has none.

    Raises:
        E2EError: a wrong or a missing argument.
    """
    mark = node.get_closest_marker("quarantine")
    return None if mark is None else quarantine_from_arguments(name, mark.args, mark.kwargs)
