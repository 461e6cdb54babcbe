"""The use case: recipe, preflight, lease, launch, metrics, checks, record. Must not know: pytest, terminals."""

from __future__ import annotations

from .asking import GROUPS
from .baselines import FILE_NAME, read_baselines, write_baselines
from .bench import Bench
from .case import DURATIONS, Case, Tier, case_from_arguments
from .changes import changes_of
from .check_calls import call_problems
from .compositions import Compositions
from .confirming import confirmation, with_another_seed
from .deadlines import run_limit, wait_limit
from .durations import expected_duration_s
from .evidence import Configuration, Evidence, read_configuration, read_evidence, telling_lines
from .existing import ExistingRun, read_record, read_run
from .host import device_findings, findings_here, host_of, input_findings, runner_of_host
from .jobs import CiJob, plan_jobs, without_simulated
from .judging import asked_again, judge_again, not_made_again
from .published import PublishedCase, published_baselines, published_cases
from .quarantine import Quarantine, quarantine_from_arguments
from .recording import FALSE_ALARMS, METRICS, Change, changes, record_baseline
from .repeating import Repetition
from .run import Run
from .schedule import Job, lower_bound_s, starts
from .settings import Settings
from .suite_case import SuiteCase

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
    "Evidence",
    "ExistingRun",
    "Job",
    "PublishedCase",
    "Quarantine",
    "Repetition",
    "Run",
    "Settings",
    "SuiteCase",
    "Tier",
    "asked_again",
    "call_problems",
    "case_from_arguments",
    "changes",
    "changes_of",
    "confirmation",
    "device_findings",
    "expected_duration_s",
    "findings_here",
    "host_of",
    "input_findings",
    "judge_again",
    "lower_bound_s",
    "not_made_again",
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
    "runner_of_host",
    "starts",
    "telling_lines",
    "wait_limit",
    "with_another_seed",
    "without_simulated",
    "write_baselines",
]
