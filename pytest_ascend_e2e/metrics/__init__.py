"""Logs of verl in, metrics out: JSONL and console text become `Metrics`, a mapping from verl's key to its `MetricSeries`.

Owns steps, gaps, repeats, values that are not finite, and what makes verl print a key. Must not know files, processes or verdicts:
everything here takes lines and returns values.
"""

from __future__ import annotations

from .console import read_console
from .jsonl import read_jsonl
from .keys import fits, is_sparse, is_validation, option_for
from .lines import LONGEST_LINE, bounded_lines
from .series import MetricSeries, shown_steps
from .table import Metrics

__all__ = [
    "LONGEST_LINE",
    "MetricSeries",
    "Metrics",
    "bounded_lines",
    "fits",
    "is_sparse",
    "is_validation",
    "option_for",
    "read_console",
    "read_jsonl",
    "shown_steps",
]
