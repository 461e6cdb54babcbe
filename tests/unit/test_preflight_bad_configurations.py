"""All thirty-one bad configurations are found, and the field that is wrong is named; 22 of them pass verl's own driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ascend_e2e.errors import RecipeError
from pytest_ascend_e2e.preflight import judge
from tests.fakes.bad_configurations import BAD_CONFIGURATIONS, BadConfiguration

PAGE = Path(__file__).parent.parent.parent / "docs" / "rules.md"
HERE = [configuration for configuration in BAD_CONFIGURATIONS if not configuration.is_composed]


def problems_of(configuration: BadConfiguration) -> tuple[str, ...]:
    try:
        recipe = configuration.recipe()
    except RecipeError as error:
        return error.problems
    return judge(recipe, configuration.devices, extra=configuration.changes).problems


@pytest.mark.parametrize("configuration", HERE, ids=lambda configuration: configuration.name)
def test_a_bad_configuration_is_found_without_verl_and_its_field_is_named(configuration: BadConfiguration) -> None:
    found = [problem for problem in problems_of(configuration) if problem.endswith(f"[{configuration.rule}]")]

    assert found, problems_of(configuration)
    assert all(problem.startswith(configuration.named) for problem in found)


def test_there_are_thirty_one_of_which_verls_driver_takes_twenty_two() -> None:
    assert len({configuration.name for configuration in BAD_CONFIGURATIONS}) == 31
    assert sum(configuration.accepted for configuration in BAD_CONFIGURATIONS) == 22


def test_the_docs_name_those_that_verls_driver_takes() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]

    named = [row for row in rows if any(row == f"| {one.name} | {one.rule} |" for one in BAD_CONFIGURATIONS if one.accepted)]

    assert len(named) == 22
