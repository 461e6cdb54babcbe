"""The properties of a case in JUnit XML, in the place that the family's schema has for them.

`junit_family=xunit1` has properties inside a test case: they stay with the report. The schema of `xunit2`, pytest's default,
allows them only in the test suite (https://github.com/pytest-dev/pytest/issues/14315): there they are named `<nodeid>:<name>`.
"""

from __future__ import annotations

import pytest

# There is no public way to the XML of a session on an xdist controller: the fixture `record_testsuite_property` does nothing
# there (https://github.com/pytest-dev/pytest/issues/7767). tests/plugin/test_junit.py notices when this moves.
from _pytest.junitxml import xml_key

from ..report import PREFIX


def place_properties(config: pytest.Config, report: pytest.TestReport) -> None:
    """Move our properties from a test case to the test suite where the schema asks for that."""
    xml = config.stash.get(xml_key, None)
    if xml is None or xml.family != "xunit2":
        return
    ours = [(name, value) for name, value in report.user_properties if name.startswith(PREFIX)]
    report.user_properties = [pair for pair in report.user_properties if pair not in ours]
    if report.when == "teardown":
        for name, value in ours:
            xml.add_global_property(f"{report.nodeid}:{name}", str(value))
