"""Pettitt's test: where the change is, how rarely it sees one in noise, and a slow drift."""

from __future__ import annotations

import math

import pytest

from pytest_ascend_e2e.errors import CheckError
from pytest_ascend_e2e.verdict import change_point, runs_needed
from tests.fakes.logged_run import seeded


def test_a_step_is_found_where_it_is() -> None:
    noise = seeded(1)
    values = [100 + noise.gauss(0, 1) for _ in range(18)] + [95 + noise.gauss(0, 1) for _ in range(12)]

    found = change_point(values)

    assert found.index == 18
    assert found.doubt < 0.001
    assert (round(found.before), round(found.after)) == (100, 95)


def test_noise_alone_shows_a_change_in_less_than_one_case_of_a_hundred() -> None:
    noise = seeded(2)

    alarms = sum(change_point([noise.gauss(100, 3) for _ in range(40)]).doubt <= 0.01 for _ in range(1000))

    assert alarms <= 10 + 2 * math.sqrt(10)


def test_a_drift_too_slow_for_a_moving_baseline_is_found() -> None:
    """0.3 % a run with a noise of 1 %: no run stands out against its neighbours, thirty of them do."""
    noise = seeded(3)

    seen = sum(change_point([100 - 0.3 * run + noise.gauss(0, 1) for run in range(30)]).doubt <= 0.01 for _ in range(200))

    assert seen >= 198


def test_the_score_is_that_of_all_pairs() -> None:
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0]
    scores = [
        abs(sum((later > earlier) - (later < earlier) for earlier in values[:split] for later in values[split:]))
        for split in range(1, 7)
    ]

    found = change_point(values)

    assert scores[found.index - 1] == max(scores)


def test_values_that_never_change_have_no_change() -> None:
    assert change_point([2.0] * 20).doubt == 1.0


def test_the_runs_needed_show_a_change_in_their_middle() -> None:
    needed = runs_needed(0.01)

    assert change_point([0.0] * (needed // 2) + [1.0] * (needed - needed // 2)).doubt <= 0.01
    assert change_point([0.0] * ((needed - 1) // 2) + [1.0] * (needed // 2)).doubt > 0.01


@pytest.mark.parametrize("values", [[], [1.0], [1.0, math.nan]])
def test_what_can_show_no_change_is_refused(values: list[float]) -> None:
    with pytest.raises(CheckError, match="two or more finite values"):
        change_point(values)
