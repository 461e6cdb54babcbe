"""How long a case is expected to hold its devices: as long as its last runs did, else as its marker says, else a guess.

Must not know: what the figure is for.
"""

from __future__ import annotations

from ..errors import HistoryError
from ..history import History

DEFAULT_S = 1800.0


def expected_duration_s(name: str, estimate_s: float | None, *, runner: str, history: History | None) -> float:
    """Return the seconds that the case of this name and estimate is expected to take on this runner.

    A history that cannot be read counts as none: the order of the cases is no reason to run none of them.
    """
    try:
        measured = None if history is None else history.typical_duration(name, runner)
    except HistoryError:
        measured = None
    return next((figure for figure in (measured, estimate_s) if figure is not None), DEFAULT_S)
