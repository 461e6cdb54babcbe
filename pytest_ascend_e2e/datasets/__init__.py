"""geometry3k and gsm8k, prepared for verl: raw data of a runner, or generated problems, through one preprocessing, in a cache.

Must not know: recipes, runners, models. What is generated and what is raw goes the same way from the raw schema on.
"""

from __future__ import annotations

from .difficulty import Difficulty
from .geometry_problems import geometry_rows
from .preparation import NAMES, PreparedDataset, name_problem, nearest, prepare, raw_problems
from .word_problems import word_rows

__all__ = [
    "NAMES",
    "Difficulty",
    "PreparedDataset",
    "geometry_rows",
    "name_problem",
    "nearest",
    "prepare",
    "raw_problems",
    "word_rows",
]
