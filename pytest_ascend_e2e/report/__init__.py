"""Records in, text out: what a terminal, a JUnit file and a log show.

Must not know: pytest, or how a record was made.
"""

from __future__ import annotations

from .failure import checks_table, failure_text, headline, retried_line
from .history import history_text
from .junit import PREFIX, Property, properties
from .plan import PlanRow, device_hours, plan_table, plan_text
from .progress import progress_line, waiting_lines
from .suite import Suite, SuiteCase
from .tables import number, table

__all__ = [
    "PREFIX",
    "PlanRow",
    "Property",
    "Suite",
    "SuiteCase",
    "checks_table",
    "device_hours",
    "failure_text",
    "headline",
    "history_text",
    "number",
    "plan_table",
    "plan_text",
    "progress_line",
    "properties",
    "retried_line",
    "table",
    "waiting_lines",
]
