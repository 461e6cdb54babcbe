"""The parts of a node id: file, classes, name. A parameter may hold what separates them.

Must not know: what the id is of.
"""

from __future__ import annotations


def parts_of(nodeid: str) -> tuple[str, ...]:
    """Return the parts of a node id, or of the end of one: the file, the classes, and the test's own name with its parameters."""
    plain, bracket, parameters = nodeid.partition("[")
    parts = plain.split("::")
    return (*parts[:-1], parts[-1] + bracket + parameters)


def own_name(nodeid: str) -> str:
    """Return the test's own name, with its parameters."""
    return parts_of(nodeid)[-1]
