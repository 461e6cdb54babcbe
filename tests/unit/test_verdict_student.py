"""Student's t against printed tables and its closed forms."""

from __future__ import annotations

import math

import pytest

from pytest_ascend_e2e.errors import CheckError
from pytest_ascend_e2e.verdict.student import upper_quantile, upper_tail


@pytest.mark.parametrize(
    ("doubt", "freedom", "value"),
    [
        (0.01, 2, 6.965),
        (0.01, 4, 3.747),
        (0.01, 10, 2.764),
        (0.005, 4, 4.604),
        (0.001, 2, 22.327),
        (0.001, 30, 3.385),
        (0.05, 120, 1.658),
    ],
)
def test_quantiles_are_those_of_the_tables(doubt: float, freedom: int, value: float) -> None:
    assert upper_quantile(doubt, freedom) == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize("value", [-3.0, -0.2, 0.0, 0.5, 4.0, 1000.0])
def test_tails_of_one_and_two_degrees_have_a_closed_form(value: float) -> None:
    assert upper_tail(value, 1) == pytest.approx(0.5 - math.atan(value) / math.pi, rel=1e-9)
    assert upper_tail(value, 2) == pytest.approx(0.5 - value / (2 * math.sqrt(2 + value * value)), rel=1e-6)


def test_a_quantile_is_where_its_tail_begins() -> None:
    for doubt in (1e-9, 1e-4, 0.3, 0.5):
        assert upper_tail(upper_quantile(doubt, 7), 7) == pytest.approx(doubt, rel=1e-6)


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(CheckError, match="probability"):
        upper_quantile(0.7, 3)
    with pytest.raises(CheckError, match="freedom"):
        upper_tail(1.0, 0)
