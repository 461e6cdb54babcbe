"""Nested settings laid over one another.

Must not know: what a key means.
"""

from __future__ import annotations

from collections.abc import Mapping


def merged(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """Return both as one; where both have a value for a key, that of `above` counts."""
    result = dict(below)
    for key, value in above.items():
        lower = result.get(key)
        result[key] = merged(lower, value) if isinstance(lower, Mapping) and isinstance(value, Mapping) else value
    return result
