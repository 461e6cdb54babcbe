"""Writing cases: a bash script or a command of verl in, a test module with a recipe out."""

from __future__ import annotations

from .draft import Draft, distinct_names, draft_of, requests_of
from .invocation import Invocation, invocation_of, is_training
from .remainder import differences
from .script import Reading, Started, outputs_in, read_script
from .source import CaseText, module_text
from .trainings import trainings_of

__all__ = [
    "CaseText",
    "Draft",
    "Invocation",
    "Reading",
    "Started",
    "differences",
    "distinct_names",
    "draft_of",
    "invocation_of",
    "is_training",
    "module_text",
    "outputs_in",
    "read_script",
    "requests_of",
    "trainings_of",
]
