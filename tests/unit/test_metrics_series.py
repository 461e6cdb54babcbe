"""One metric over the steps: statistics, windows, and the errors for what is not there."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ascend_e2e.errors import MetricError
from pytest_ascend_e2e.metrics import MetricSeries, shown_steps


def series_of(*values: float, first: int = 1) -> MetricSeries:
    return MetricSeries(name="critic/rewards/mean", steps=tuple(range(first, first + len(values))), values=values)


def test_last_gives_the_values_of_the_last_steps() -> None:
    last = series_of(0.1, 0.2, 0.3, 0.4).last(2)

    assert last.items() == ((3, 0.3), (4, 0.4))


def test_first_gives_the_values_of_the_first_steps() -> None:
    assert series_of(0.1, 0.2, 0.3).first(2).values == (0.1, 0.2)


def test_window_includes_both_ends() -> None:
    assert series_of(1, 2, 3, 4, 5).window(2, 4).values == (2, 3, 4)


def test_statistics_are_those_of_the_values() -> None:
    series = series_of(1.0, 2.0, 6.0)

    assert (series.mean(), series.median(), series.min(), series.max()) == (3.0, 2.0, 1.0, 6.0)
    assert series.std() == pytest.approx(math.sqrt(7))


def test_more_values_than_there_are_cannot_be_had() -> None:
    with pytest.raises(MetricError, match=r"last 5 values cannot be had: it has 3, at steps 1\.\.3"):
        series_of(0.1, 0.2, 0.3).last(5)


def test_a_step_without_a_value_names_the_steps_there_are() -> None:
    with pytest.raises(MetricError, match=r"no value at step 9; it has values at steps 1\.\.3"):
        series_of(0.1, 0.2, 0.3).at(9)


def test_a_window_without_a_value_is_an_error() -> None:
    with pytest.raises(MetricError, match=r"steps 7\.\.9"):
        series_of(0.1).window(7, 9)


def test_steps_that_do_not_rise_are_refused() -> None:
    with pytest.raises(MetricError, match="rising step numbers"):
        MetricSeries(name="a/b", steps=(1, 1), values=(0.0, 0.0))


def test_missing_names_the_steps_without_a_value() -> None:
    assert series_of(0.1, 0.2, first=2).missing(range(1, 5)) == (1, 4)


def test_non_finite_steps_are_those_of_nan_and_infinity() -> None:
    assert series_of(0.1, math.nan, math.inf, 0.2).non_finite_steps == (2, 3)


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=9), at=st.integers(0, 9))
def test_a_nan_makes_every_statistic_nan(values: list[float], at: int) -> None:
    values.insert(at % (len(values) + 1), math.nan)

    series = series_of(*values)

    assert all(math.isnan(figure) for figure in (series.mean(), series.median(), series.min(), series.max(), series.std()))


def test_repr_names_the_metric_the_steps_and_shortens_the_values() -> None:
    shown = repr(series_of(*(step / 8 for step in range(20))))

    assert shown == "<critic/rewards/mean at steps 1..20: 0, 0.125, 0.25, ..., 2.125, 2.25, 2.375>"


@pytest.mark.parametrize(
    ("steps", "text"),
    [((), "none"), ((3,), "3"), ((1, 2, 3, 5), "1..3, 5"), (range(1, 40, 2), "1, 3, 5, 7, 9, 11, and 14 more groups")],
)
def test_steps_are_shown_in_groups(steps: tuple[int, ...], text: str) -> None:
    assert shown_steps(steps) == text
