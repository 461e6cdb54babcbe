# ruff: noqa: INP001  # a directory for PYTHONPATH, not a package
"""Python runs this before the first line of a program, in every process of a simulated run: it installs the patches.

Another `sitecustomize` further down the path (of a vendor's image, of a distribution) is hidden by this one, so it is run first.
"""

from __future__ import annotations

import gc
import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run_hidden_sitecustomize() -> None:
    """Run the module of the same name that Python would have found without this directory."""
    spec = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if Path(entry or ".").resolve() != HERE])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def install_patches() -> None:
    """Install the patches of the package this file belongs to, which may stand outside the path of this interpreter."""
    if importlib.util.find_spec("pytest_ascend_e2e") is None:
        sys.path.append(str(HERE.parents[2]))
    from pytest_ascend_e2e.simnpu.patches import install  # noqa: PLC0415  # only now is the path complete

    install()


def fork_instead() -> None:
    """Let the heavy processes of a run be forked from the one that has their imports done; return in every other process."""
    if any(part.endswith(("main_ppo", "default_worker.py")) for part in sys.orig_argv[1:3]):
        from pytest_ascend_e2e.simnpu import forkserver  # noqa: PLC0415  # a few milliseconds that other processes save

        forkserver.fork_instead()


# Six thousand modules are imported before anything becomes garbage: looking for it every 700 objects is a tenth of the start.
gc.set_threshold(50_000)
run_hidden_sitecustomize()
install_patches()
fork_instead()
