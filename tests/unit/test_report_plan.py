"""The table of a plan, and what it says below."""

from __future__ import annotations

from dataclasses import replace

from pytest_ascend_e2e.report import PlanRow, device_hours, plan_table

ROW = PlanRow(
    case="tests/e2e_npu/test_a.py::test_b",
    runner="a3-16",
    devices=32,
    nodes=2,
    hours=1.5,
    layout="TP2",
    verdict="can work",
    is_composed=True,
)


def test_a_row_travels_as_text() -> None:
    assert PlanRow.from_text(ROW.to_text()) == ROW


def test_the_table_has_a_line_for_each_case_and_the_sum() -> None:
    lines = plan_table([ROW, replace(ROW, case="c", hours=0.0)], budget_device_hours=50)

    assert lines[0].split() == ["case", "runner", "devices", "nodes", "hours", "layout", "verdict"]
    assert lines[2].split() == ["test_a.py::test_b", "a3-16", "32", "2", "1.5", "TP2", "can", "work"]
    assert lines[-1] == "estimated device-hours: 48 of a budget of 50; 1 without an estimate"


def test_the_name_of_a_case_is_whole_without_its_directory() -> None:
    lines = plan_table([replace(ROW, case="tests/test_a.py::test_b[x/y::z]")], budget_device_hours=None)

    assert lines[2].split()[0] == "test_a.py::test_b[x/y::z]"


def test_a_case_of_several_runners_costs_what_the_dearest_costs() -> None:
    assert device_hours([ROW, replace(ROW, runner="a3-8", devices=8)]) == 48


def test_durations_of_the_history_are_named() -> None:
    lines = plan_table([ROW, replace(ROW, is_measured=True)], budget_device_hours=None)

    assert lines[-1] == "estimated device-hours: 48; 1 from the history"


def test_where_verl_is_not_installed_the_table_says_so() -> None:
    lines = plan_table([replace(ROW, is_composed=False)], budget_device_hours=None)

    assert lines[-1] == "composition was not checked for 1 of 1: verl is not installed here"
