"""The use case: recipe, preflight, lease, launch, metrics, checks, record. Must not know: pytest, terminals."""

from __future__ import annotations

from .baselines import FILE_NAME, read_baselines, write_baselines
from .bench import Bench
from .case import DURATIONS, Case, Tier, case_from_arguments
from .changes import changes_of
from .compositions import Compositions
from .confirming import confirmation, with_another_seed
from .deadlines import run_limit, wait_limit
from .durations import expected_duration_s
from .evidence import Configuration, Evidence, read_configuration, read_evidence, telling_lines
from .existing import ExistingRun, read_record, read_run
from .jobs import CiJob, plan_jobs
from .judging import GROUPS, Demands, demands_of, judge_again
from .listing import ListedCase, listed, listed_cases, listed_text
from .published import PublishedCase, published_baselines, published_cases
from .quarantine import Quarantine, quarantine_from_arguments
from .recording import FALSE_ALARMS, METRICS, Change, changes, record_baseline
from .repeating import Repetition
from .run import Run
from .schedule import Job, largest_first, lower_bound_s, starts
from .settings import Settings

__all__ = [
    "DURATIONS",
    "FALSE_ALARMS",
    "FILE_NAME",
    "GROUPS",
    "METRICS",
    "Bench",
    "Case",
    "Change",
    "CiJob",
    "Compositions",
    "Configuration",
    "Demands",
    "Evidence",
    "ExistingRun",
    "Job",
    "ListedCase",
    "PublishedCase",
    "Quarantine",
    "Repetition",
    "Run",
    "Settings",
    "Tier",
    "case_from_arguments",
    "changes",
    "changes_of",
    "confirmation",
    "demands_of",
    "expected_duration_s",
    "judge_again",
    "largest_first",
    "listed",
    "listed_cases",
    "listed_text",
    "lower_bound_s",
    "plan_jobs",
    "published_baselines",
    "published_cases",
    "quarantine_from_arguments",
    "read_baselines",
    "read_configuration",
    "read_evidence",
    "read_record",
    "read_run",
    "record_baseline",
    "run_limit",
    "starts",
    "telling_lines",
    "wait_limit",
    "with_another_seed",
    "write_baselines",
]
