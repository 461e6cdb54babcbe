"""Which deadlines a case gets: its marker's, the session's, those of its estimate, or the defaults."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_ascend_e2e.errors import E2EError
from pytest_ascend_e2e.session import Case, Settings, Tier, case_from_arguments, run_limit, wait_limit
from pytest_ascend_e2e.session.deadlines import limits_of


def case(**kwargs: object) -> Case:
    return case_from_arguments("test_x", Tier.NIGHTLY, (), {"runner": "sim-2", **kwargs})


def settings(**given: object) -> Settings:
    plain = Settings(
        runner=None,
        runners_file=None,
        run_root=Path(),
        cache_root=Path(),
        models_root=Path(),
        datasets_root=Path(),
        lock_dir=Path(),
        python="python",
        run_timeout_s=10800.0,
        silence_timeout_s=1200.0,
        lease_timeout_s=7200.0,
    )
    return dataclasses.replace(plain, **given)  # type: ignore[arg-type]  # any field


def test_without_marker_option_and_estimate_the_defaults_hold() -> None:
    limits = limits_of(case(), settings())

    assert (limits.total_s, limits.silence_s) == (10800, 1200)
    assert (limits.start_s, limits.first_step_s, limits.step_s) == (None, None, None)
    assert limits.origins["total_s"] == "default of --e2e-run-timeout"


def test_an_estimate_gives_the_deadlines_that_nobody_gave() -> None:
    limits = limits_of(case(estimate="10m"), settings())

    assert (limits.total_s, limits.start_s, limits.first_step_s, limits.step_s) == (1800, 600, 900, 600)
    assert limits.silence_s == 1200
    assert limits.origins["total_s"] == "3 times the estimate of 10m00s"


def test_an_option_stands_above_the_estimate() -> None:
    given = settings(run_timeout_s=60.0, step_timeout_s=7.0, origins={"run-timeout": "--e2e-run-timeout", "step-timeout": "E2E"})

    limits = limits_of(case(estimate="10m"), given)

    assert (limits.total_s, limits.step_s, limits.first_step_s) == (60, 7, 900)
    assert (limits.origins["total_s"], limits.origins["step_s"]) == ("--e2e-run-timeout", "E2E")


def test_the_marker_stands_above_all() -> None:
    of_case = case(timeout="2h", silence=5, start=6, first_step=7, step="8s", wait="9m", estimate="10m")
    given = settings(origins={f"{name}-timeout": "a flag" for name in ("run", "silence", "start", "first-step", "step", "lease")})

    limits = limits_of(of_case, given)

    assert (limits.total_s, limits.silence_s, limits.start_s, limits.first_step_s, limits.step_s) == (7200, 5, 6, 7, 8)
    assert wait_limit(of_case, given) == 540
    assert (limits.origins["total_s"], limits.origins["first_step_s"]) == ("timeout= of the marker", "first_step= of the marker")


def test_an_estimate_says_nothing_of_another_number_of_steps() -> None:
    assert run_limit(case(estimate="10m"), settings(steps=1000)) == (10800, "default of --e2e-run-timeout")


@pytest.mark.parametrize("name", ["wait", "start", "first_step", "step"])
def test_a_duration_that_is_none_is_told_with_its_name(name: str) -> None:
    with pytest.raises(E2EError, match=f"{name}='soon' cannot be used: expected a positive duration"):
        case(**{name: "soon"})
