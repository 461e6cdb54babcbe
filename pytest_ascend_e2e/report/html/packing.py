"""The numbers behind a run's charts, packed for the page: JSON, compressed, as text that can stand in HTML.

A gap is null, a value that is not finite its name as text. Must not know: what is drawn.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...metrics import MetricSeries


def packed(data: Mapping[str, Any]) -> str:
    """Return the data as base64 of gzipped JSON; the same data give the same text."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), compresslevel=9, mtime=0)).decode("ascii")


def column(series: MetricSeries, steps: Sequence[int], *, digits: int) -> list[float | str | None]:
    """Return a value for each of `steps`: None where the series has none, NaN and infinities as text."""
    values = dict(series.items())
    return [plain(values.get(step), digits=digits) for step in steps]


def plain(value: float | None, *, digits: int) -> float | str | None:
    """Return a number as JSON can hold it, with so many significant digits."""
    if value is None:
        return None
    if not math.isfinite(value):
        return str(value)
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 10**digits else short
