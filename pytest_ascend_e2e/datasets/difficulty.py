"""How hard generated problems are.

Must not know: what a problem is made of.
"""

from __future__ import annotations

import enum


class Difficulty(enum.Enum):
    """How long, how varied and how exact generated problems are."""

    SIMPLE = "simple"  # small whole numbers, mostly told in the text too, one or two steps: within reach of some 100k parameters
    FULL = "full"  # any whole degrees, roots and pi in answers, up to four steps
