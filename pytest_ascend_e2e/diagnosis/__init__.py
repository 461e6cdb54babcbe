"""Why a run failed: from the lines of its log and the end of its process to a kind, a root-cause line and an advice.

Must not know: files, processes, clocks.
"""

from __future__ import annotations

from .excerpt import Excerpt, ExcerptLine, excerpt, last_steps
from .judge import diagnose, is_sound
from .watch import FatalWatch, is_fatal

__all__ = ["Excerpt", "ExcerptLine", "FatalWatch", "diagnose", "excerpt", "is_fatal", "is_sound", "last_steps"]
