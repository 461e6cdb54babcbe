"""The parts of a node id: what a parameter holds separates nothing."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.nodeids import own_name, parts_of


@pytest.mark.parametrize(
    ("nodeid", "parts"),
    [
        ("tests/test_a.py::test_one", ("tests/test_a.py", "test_one")),
        ("test_a.py::TestIn::test_one[x]", ("test_a.py", "TestIn", "test_one[x]")),
        ("test_a.py::test_one[a::b]", ("test_a.py", "test_one[a::b]")),
        ("test_one[a::b]", ("test_one[a::b]",)),
        ("test_a.py", ("test_a.py",)),
    ],
)
def test_a_node_id_has_its_parts(nodeid: str, parts: tuple[str, ...]) -> None:
    assert parts_of(nodeid) == parts
    assert own_name(nodeid) == parts[-1]


def test_two_cases_whose_parameters_end_alike_have_names_of_their_own() -> None:
    assert own_name("test_a.py::test_one[a::b]") != own_name("test_a.py::test_two[c::b]")
