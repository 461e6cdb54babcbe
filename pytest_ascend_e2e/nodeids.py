"""The parts of a test's node id: `tests/test_a.py::TestB::test_c[x::y]`, also without the file.

Must not know: what a part is shown or kept as.
"""

from __future__ import annotations


def split_nodeid(nodeid: str) -> tuple[list[str], str]:
    """Return file, classes and test, and apart from them the parameters with their brackets, empty where there are none.

    As pytest splits it for JUnit: parameters begin at the first bracket, and may hold anything.
    """
    plain, bracket, parameters = nodeid.partition("[")
    return plain.split("::"), bracket + parameters


def name_of_test(nodeid: str) -> str:
    """Return the name of the test with its parameters, without file and classes."""
    parts, parameters = split_nodeid(nodeid)
    return parts[-1] + parameters
