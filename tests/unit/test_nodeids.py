"""Node ids: what stands in the brackets of a test is never taken for a part of its id."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.nodeids import name_of_test, split_nodeid


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("tests/test_a.py::test_b", "test_b"),
        ("tests/test_a.py::TestB::test_c[x]", "test_c[x]"),
        ("tests/test_a.py::test_b[x::y]", "test_b[x::y]"),
        ("tests/test_a.py::test_b[x/[1]::y]", "test_b[x/[1]::y]"),
        ("test_b[x::y]", "test_b[x::y]"),
        ("test_b", "test_b"),
    ],
)
def test_the_name_of_a_test_is_whole(nodeid: str, name: str) -> None:
    assert name_of_test(nodeid) == name


def test_an_id_has_file_classes_test_and_parameters() -> None:
    assert split_nodeid("tests/test_a.py::TestB::test_c[x::y]") == (["tests/test_a.py", "TestB", "test_c"], "[x::y]")
    assert split_nodeid("tests/test_a.py") == (["tests/test_a.py"], "")
