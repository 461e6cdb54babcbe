"""JUnit files read back, and cases found again under names from another directory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ascend_e2e.errors import ReportError
from pytest_ascend_e2e.report import Outcome, ReportedCase, differences, latest, matches, read_junit

FILE = b"""<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="2" failures="1" skipped="1" tests="5" time="9.1">
<properties>
 <property name="tests/test_cases.py::test_red[a::b]:e2e_runner" value="a3-16" />
 <property name="of somebody else" value="1" />
</properties>
<testcase classname="tests.test_cases" name="test_green" time="1.5" />
<testcase classname="tests.test_cases" name="test_red[a::b]" time="4.000">
<failure message="1 of 9 checks failed&#10;more">text</failure></testcase>
<testcase classname="tests.test_cases.TestIn" name="test_off"><skipped type="pytest.skip" message="needs a3-16" /></testcase>
<testcase classname="tests.test_cases" name="test_lost"><error message="unfinished">was running</error></testcase>
<testcase classname="" name="tests.test_broken"><error message="collection failure">no module</error></testcase>
</testsuite></testsuites>"""


def case(address: str, outcome: Outcome = Outcome.FAILED, *, is_module: bool = False) -> ReportedCase:
    return ReportedCase(address=tuple(address.split(".")), outcome=outcome, message="", origin="junit.xml", is_module=is_module)


def test_every_case_is_read_with_its_outcome() -> None:
    cases = read_junit(FILE, origin="junit.xml")

    assert [(found.name, found.outcome) for found in cases] == [
        ("test_green", Outcome.PASSED),
        ("test_red[a::b]", Outcome.FAILED),
        ("test_off", Outcome.SKIPPED),
        ("test_lost", Outcome.UNFINISHED),
        ("test_broken", Outcome.ERROR),
    ]
    assert cases[1].message == "1 of 9 checks failed"
    assert cases[1].time_s == 4.0
    assert cases[4].is_module


def test_properties_are_those_of_ours_that_name_the_case() -> None:
    cases = read_junit(FILE, origin="junit.xml")

    assert cases[1].properties == {"runner": "a3-16"}
    assert cases[0].properties == {}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"<testsuites><testsuite", "junit.xml: not XML"),
        (b"<coverage/>", "XML with the root 'coverage'; expected a JUnit file"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><testsuites/>', "holds a document type"),
    ],
)
def test_a_file_that_is_none_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(ReportError, match=told):
        read_junit(data, origin="junit.xml")


@pytest.mark.parametrize(
    "nodeid", ["tests/test_cases.py::test_red", "test_cases.py::test_red", "repo/tests/test_cases.py::test_red"]
)
def test_a_case_is_found_from_another_root(nodeid: str) -> None:
    found = matches(
        [case("tests.test_cases.test_red")], [nodeid, "other/test_more.py::test_red", "tests/test_cases.py::test_green"]
    )

    assert list(found) == [nodeid]


def test_the_longest_common_end_decides() -> None:
    nodeids = ["a/tests/test_cases.py::test_red", "b/tests/test_cases.py::test_red"]

    assert list(matches([case("ci.b.tests.test_cases.test_red")], nodeids)) == nodeids[1:]
    assert list(matches([case("tests.test_cases.test_red")], nodeids)) == nodeids


def test_a_test_of_the_same_name_elsewhere_is_another() -> None:
    nodeids = ["tests/test_cases.py::TestOther::test_red", "tests/test_more.py::test_red"]

    assert matches([case("tests.test_cases.TestIn.test_red")], nodeids) == {}


def test_a_module_that_was_not_collected_is_all_its_tests() -> None:
    nodeids = ["test_broken.py::test_one", "test_broken.py::TestIn::test_two", "test_other.py::test_one"]

    assert list(matches([case("tests.test_broken", is_module=True)], nodeids)) == nodeids[:2]


def test_a_test_that_failed_as_expected_did_run() -> None:
    skipped = '<testcase classname="test_a" name="test_x"><skipped type="{}" message="slow"/></testcase>'
    cases = [
        read_junit(f'<testsuite name="t">{skipped.format(kind)}</testsuite>'.encode(), origin="junit.xml")[0]
        for kind in ("pytest.xfail", "pytest.skip")
    ]

    assert [found.outcome for found in cases] == [Outcome.XFAILED, Outcome.SKIPPED]
    assert not cases[0].outcome.is_red


def test_a_test_that_is_expected_to_fail_and_is_not_run_did_not_run() -> None:
    skipped = '<testcase classname="test_a" name="test_x"><skipped type="pytest.xfail" message="[NOTRUN] hangs"/></testcase>'

    (found,) = read_junit(f'<testsuite name="t">{skipped}</testsuite>'.encode(), origin="junit.xml")

    assert (found.outcome, found.message) == (Outcome.SKIPPED, "[NOTRUN] hangs")


def test_of_a_failure_and_the_error_of_its_teardown_the_failure_counts() -> None:
    both = [replace(case("t.a"), message="call"), replace(case("t.a", Outcome.ERROR), message="teardown")]

    assert [found.message for found in latest(both)] == ["call"]
    assert [found.message for found in latest([both[0], replace(both[1], origin="later.xml")])] == ["teardown"]


def test_of_several_reports_of_a_case_the_one_that_ran_it_counts() -> None:
    reports = [case("t.a", Outcome.SKIPPED), case("t.a", Outcome.PASSED), case("t.a", Outcome.SKIPPED)]

    assert [found.outcome for found in latest(reports)] == [Outcome.PASSED]
    assert [found.outcome for found in latest([*reports, case("t.a"), case("t.a", Outcome.PASSED)])] == [Outcome.FAILED]


def test_what_differs_is_told_where_both_know_it() -> None:
    before = {"runner": "a3-16", "version_vllm": "0.11.0", "version_verl": "0.9.1", "commit": "", "reward_last": "0.4"}
    after = {"runner": "sim-2", "version_vllm": "0.32.0", "version_verl": "0.9.1", "commit": "1a2b", "reward_last": "0.5"}

    assert list(differences(before, after)) == ["runner a3-16 -> sim-2", "vllm 0.11.0 -> 0.32.0"]
