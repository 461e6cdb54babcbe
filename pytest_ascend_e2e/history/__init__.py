"""The history of all runs: one SQLite database, into which every concluded record goes.

Must not know: what a record's figures mean, or who shows them.
"""

from __future__ import annotations

from .flakes import FlakeRate, flake_rate
from .lines import from_lines, to_line
from .store import History

__all__ = ["FlakeRate", "History", "flake_rate", "from_lines", "to_line"]
