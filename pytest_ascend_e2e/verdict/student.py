"""Quantiles of Student's t: how far one more value of a sample lies from its middle, with a wanted probability.

Must not know what the values are. Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964), 26.5 and 26.7.
"""

from __future__ import annotations

import functools
import math

from ..errors import CheckError

_TINY = 1e-300
_MOST_TERMS = 500


def upper_tail(value: float, freedom: int) -> float:
    """Return the probability of `value` or more under Student's t with `freedom` degrees of freedom."""
    if freedom < 1:
        raise CheckError(f"freedom {freedom!r} cannot be used: expected degrees of freedom, 1 or more")
    tail = 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + value * value))
    return tail if value >= 0 else 1 - tail


@functools.lru_cache(maxsize=256)
def upper_quantile(doubt: float, freedom: int) -> float:
    """Return the value that Student's t with `freedom` degrees of freedom exceeds with probability `doubt`, up to one half."""
    if not 1e-12 <= doubt <= 0.5:  # noqa: PLR2004  # below, the fraction loses its digits; above, the quantile is negative
        raise CheckError(f"probability {doubt!r} cannot be used: expected a number from 1e-12 to 0.5")
    high = 1.0
    while upper_tail(high, freedom) > doubt:
        high *= 2
    low = 0.0
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        if upper_tail(middle, freedom) > doubt:
            low = middle
        else:
            high = middle
    return high


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function."""
    if x in {0.0, 1.0}:
        return x
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function by the method of Lentz."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            result *= c * d
        if abs(c * d - 1) < 1e-15:  # noqa: PLR2004  # no digit changes any more
            break
    return result


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
