"""A case of a suite as programs that are no pytest see it: what it needs of a machine, and for how long.

Must not know: how cases are collected, or what is made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..history import History
from .case import Case
from .durations import expected_duration_s

DEFAULT_ROLLOUT = "vllm"


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteCase:
    """A collected case; `model` and `dataset` are empty where the test builds its recipes itself.

    `rollout` is the engine by which its image is chosen: that of verl's default where the case does not say. `timeout_s` and
    `estimate_s` are those of the marker, None where it has none; `expected_s` is how long it is expected to hold its devices on
    each of its runners, all in seconds. `off` says why the case is off, empty where it runs.
    """

    case: str
    tier: str
    runners: tuple[str, ...]
    nodes: int
    model: str
    dataset: str
    rollout: str
    timeout_s: float | None
    expected_s: Mapping[str, float]
    estimate_s: float | None = None
    off: str = ""

    @classmethod
    def of(cls, case: Case, *, off: str, history: History | None) -> SuiteCase:
        """Return a case with the durations that a history knows of, else its own estimate."""
        return cls(
            case=case.name,
            tier=case.tier.value,
            runners=case.runners,
            nodes=case.nodes,
            model="" if case.recipe is None else case.recipe.model,
            dataset="" if case.recipe is None else case.recipe.dataset,
            rollout=getattr(getattr(case.recipe, "rollout", None), "name", DEFAULT_ROLLOUT),
            timeout_s=case.timeout_s,
            expected_s={
                runner: expected_duration_s(case.name, case.estimate_s, runner=runner, history=history) for runner in case.runners
            },
            estimate_s=case.estimate_s,
            off=off,
        )
