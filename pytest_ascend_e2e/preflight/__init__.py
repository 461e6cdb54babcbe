"""Preflight: what can be proven about a case without a device, so that a mistake costs seconds instead of a night."""

from __future__ import annotations

from .composition import Composition, Request, compose_cases
from .host import Host, HostFinding, cann_version, host_findings, version_in
from .model_rules import ModelFacts, model_problems
from .plan import Plan, judge
from .sizes import batch_problems

__all__ = [
    "Composition",
    "Host",
    "HostFinding",
    "ModelFacts",
    "Plan",
    "Request",
    "batch_problems",
    "cann_version",
    "compose_cases",
    "host_findings",
    "judge",
    "model_problems",
    "version_in",
]
