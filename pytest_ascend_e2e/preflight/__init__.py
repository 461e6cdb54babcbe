"""Preflight: what can be proven about a case without a device, so that a mistake costs seconds instead of a night."""

from __future__ import annotations

from .composition import Composition, Request, compose_cases
from .host import Host, HostFinding, cann_version, host_findings, nearest_there, version_in
from .model_facts import ModelFacts, known_models
from .model_rules import model_problems
from .plan import Plan, judge, leaves
from .rules import all_rules, rules_table
from .sizes import batch_problems

__all__ = [
    "Composition",
    "Host",
    "HostFinding",
    "ModelFacts",
    "Plan",
    "Request",
    "all_rules",
    "batch_problems",
    "cann_version",
    "compose_cases",
    "host_findings",
    "judge",
    "known_models",
    "leaves",
    "model_problems",
    "nearest_there",
    "rules_table",
    "version_in",
]
