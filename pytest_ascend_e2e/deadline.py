"""The one clock: durations as text, and deadlines as objects.

Must not know: what is being waited for. Sleeping is the caller's; a test passes its own clock.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Clock = Callable[[], float]

_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")


def parse_duration(text: str) -> float:
    """Return seconds for a text such as `90`, `90s`, `15m`, `2h` or `1h30m`.

    Raises:
        ValueError: the text is no positive duration; the message says what is accepted.
    """
    parts = _DURATION.findall(text)
    rest = _DURATION.sub("", text).strip()
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    if rest or not seconds > 0:
        raise ValueError(f"{text!r} cannot be used: expected a positive duration such as 90, 15m or 2h")
    return seconds


def format_duration(seconds: float) -> str:
    """Return a short text for a number of seconds: `0.4s`, `42s`, `3m05s`, `2h10m`."""
    if seconds < 10:  # noqa: PLR2004  # below ten seconds a tenth is worth showing
        return f"{seconds:.1f}s"
    whole = round(seconds)
    minutes, rest_s = divmod(whole, 60)
    hours, rest_m = divmod(minutes, 60)
    if hours:
        return f"{hours}h{rest_m:02d}m"
    return f"{minutes}m{rest_s:02d}s" if minutes else f"{whole}s"


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadline:
    """A moment by which something called `name` must have happened.

    `limit_s` is the length it was set with, in seconds; the clock is monotonic, so a step of the host's clock moves no deadline.
    """

    name: str
    limit_s: float
    ends_at: float
    clock: Clock = field(default=time.monotonic, repr=False, compare=False)

    @classmethod
    def after(cls, limit_s: float, *, name: str, clock: Clock = time.monotonic) -> Deadline:
        """Return the deadline that ends `limit_s` seconds from now."""
        return cls(name=name, limit_s=limit_s, ends_at=clock() + limit_s, clock=clock)

    def remaining_s(self) -> float:
        """Return the seconds left, zero when it is over."""
        return max(0.0, self.ends_at - self.clock())

    def is_over(self) -> bool:
        """Tell whether the moment has passed."""
        return self.clock() >= self.ends_at

    def restarted(self) -> Deadline:
        """Return the same deadline counted from now: what a silence deadline does at each new line."""
        return Deadline.after(self.limit_s, name=self.name, clock=self.clock)
