"""The made-up NPU host for the tests of what pytest does with the plugin."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from tests.fakes.npu_host import HEADER, make_npu_host

# pytest run in this process forgets what it imported; Pillow and its formats would be there twice then.
Image.init()


@dataclass(frozen=True, kw_only=True)
class Host:
    """The made-up host; `cases` writes a test file and `run` runs pytest on it."""

    pytester: pytest.Pytester
    root: Path

    def cases(self, body: str, *, name: str = "test_cases") -> Path:
        return self.pytester.makepyfile(**{name: HEADER + body})

    def run(self, *args: str) -> pytest.RunResult:
        return self.pytester.runpytest_inprocess("-p", "no:cacheprovider", *args)


@pytest.fixture
def host(pytester: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Host:
    root = tmp_path_factory.mktemp("host")
    session = tmp_path_factory.getbasetemp()
    # The directories of xdist's workers lie in that of the session.
    made = make_npu_host(root, answers=(session.parent if "PYTEST_XDIST_WORKER" in os.environ else session) / "answers")
    for name in made.unset:
        monkeypatch.delenv(name, raising=False)
    for name, value in made.variables.items():
        monkeypatch.setenv(name, value)
    pytester.makeini(made.ini)
    return Host(pytester=pytester, root=root)


# One worker shows what crosses from a worker to the controller; what two have to do with each other has tests of its own.
PLAIN_AND_XDIST = pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["plain", "xdist"])
