"""Root of the tests: `pytester` for the tests of what pytest does with the plugin, and how hypothesis looks for examples."""

from __future__ import annotations

import hypothesis

pytest_plugins = ["pytester"]

# A busy host is slow, which is no fault of what is tested; examples are the same every time.
hypothesis.settings.register_profile(
    "ascend-e2e", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("ascend-e2e")
