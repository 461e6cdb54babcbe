"""The use case: recipe, preflight, lease, launch, metrics, checks, record. Must not know: pytest, terminals."""

from __future__ import annotations

from .bench import Bench
from .case import Case, Tier, case_from_arguments
from .compositions import Compositions
from .quarantine import Quarantine, quarantine_from_arguments
from .run import Run
from .settings import Settings

__all__ = [
    "Bench",
    "Case",
    "Compositions",
    "Quarantine",
    "Run",
    "Settings",
    "Tier",
    "case_from_arguments",
    "quarantine_from_arguments",
]
