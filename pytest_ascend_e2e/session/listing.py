"""The cases of a suite as a list that another program reads: what each needs of a CI.

Must not know: how cases are collected, or what a CI makes of them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import RecordError
from .case import Case
from .quarantine import Quarantine

SCHEMA = 1
DEFAULT_ROLLOUT = "vllm"


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedCase:
    """One case: its node id, tier and runners, and what it needs.

    `rollout` is the engine by which its image is chosen: that of verl's default where the case does not say. Durations are in
    seconds, None where the case leaves them to the session. `off` says why the case is off, empty where it runs.
    """

    name: str
    tier: str
    runners: tuple[str, ...]
    nodes: int
    rollout: str
    timeout_s: float | None
    estimate_s: float | None
    off: str = ""


def listed(case: Case, quarantine: Quarantine | None, *, is_off: bool) -> ListedCase:
    """Return a case as it is listed; `is_off` tells whether its quarantine still holds."""
    rollout = getattr(getattr(case.recipe, "rollout", None), "name", DEFAULT_ROLLOUT)
    return ListedCase(
        name=case.name,
        tier=case.tier.value,
        runners=case.runners,
        nodes=case.nodes,
        rollout=rollout,
        timeout_s=case.timeout_s,
        estimate_s=case.estimate_s,
        off=str(quarantine) if quarantine is not None and is_off else "",
    )


def listed_text(cases: Iterable[ListedCase]) -> str:
    """Return the list as JSON with its schema."""
    return json.dumps({"schema": SCHEMA, "cases": [dataclasses.asdict(case) for case in cases]}, indent=1) + "\n"


def listed_cases(text: str, *, origin: str) -> list[ListedCase]:
    """Return the list that `listed_text` wrote.

    Raises:
        RecordError: it is not JSON, of another schema, or not whole.
    """
    try:
        data = json.loads(text)
        found = data.get("schema")
        if found != SCHEMA:
            raise RecordError(f"{origin}: list of cases of schema {found!r}; this version reads schema {SCHEMA}")
        return [ListedCase(**{**case, "runners": tuple(case["runners"])}) for case in data["cases"]]
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise RecordError(f"{origin}: not a list of cases ({error!r}); `ascend-e2e matrix --cases FILE` writes one") from error
