"""Root of the tests: `pytester` for the tests of what pytest does with the plugin."""

from __future__ import annotations

pytest_plugins = ["pytester"]
