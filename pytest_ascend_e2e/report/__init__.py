"""Records in, text out: what a terminal, a JUnit file and a log show.

Must not know: pytest, or how a record was made.
"""

from __future__ import annotations

from .annotations import annotation
from .existing import found_records, junit_files, reported_cases
from .failure import beside_text, checks_table, failed_lines, failure_text, headline, retried_line
from .history import history_text
from .job_page import append_page
from .junit import COLLECTION, PREFIX, UNFINISHED, Property, properties
from .markdown import plan_markdown, summary_markdown
from .merging import Merged, merge_junit
from .plan import PlanRow, device_hours, plan_table, plan_text
from .progress import progress_line, waiting_lines
from .reported import (
    Outcome,
    ReportedCase,
    address_of,
    differences,
    expected_failure,
    from_record,
    junit_root,
    latest,
    matches,
    own_properties,
    read_junit,
)
from .suite import Suite
from .tables import number, table

__all__ = [
    "COLLECTION",
    "PREFIX",
    "UNFINISHED",
    "Merged",
    "Outcome",
    "PlanRow",
    "Property",
    "ReportedCase",
    "Suite",
    "address_of",
    "annotation",
    "append_page",
    "beside_text",
    "checks_table",
    "device_hours",
    "differences",
    "expected_failure",
    "failed_lines",
    "failure_text",
    "found_records",
    "from_record",
    "headline",
    "history_text",
    "junit_files",
    "junit_root",
    "latest",
    "matches",
    "merge_junit",
    "number",
    "own_properties",
    "plan_markdown",
    "plan_table",
    "plan_text",
    "progress_line",
    "properties",
    "read_junit",
    "reported_cases",
    "retried_line",
    "summary_markdown",
    "table",
    "waiting_lines",
]
