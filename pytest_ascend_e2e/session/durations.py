"""How long a case is expected to hold its devices: as long as its last runs did, else as its marker says, else a guess.

Must not know: what the figure is for.
"""

from __future__ import annotations

import statistics

from ..errors import HistoryError
from ..history import History

DEFAULT_S = 1800.0

# Of so many runs the median is taken, so that one run on a slow day moves nothing; of older ones the code was another.
_LATEST = 5


def expected_duration_s(name: str, estimate_s: float | None, *, runner: str, history: History | None) -> float:
    """Return the seconds that the case of this name and estimate is expected to take on this runner.

    A history that cannot be read counts as none: the order of the cases is no reason to run none of them.
    """
    measured = [] if history is None else _measured(name, runner, history)
    if measured:
        return statistics.median(measured)
    return DEFAULT_S if estimate_s is None else estimate_s


def _measured(name: str, runner: str, history: History) -> list[float]:
    """Return the durations of the latest runs that ended by themselves."""
    if not history.path.is_file():
        return []
    try:
        records = history.latest(name, runner=runner, count=_LATEST)
    except HistoryError:
        return []
    return [record.duration_s for record in records if record.is_completed]
