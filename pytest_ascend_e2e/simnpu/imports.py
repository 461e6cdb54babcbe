"""Actions that run right after a module was imported, wherever and whenever that happens.

A patch must be in place before other modules copy the patched name (`from x import f`), in every process, whatever its first
import is. So patches are tied to the import itself.

Must not know: what is patched, or why.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .errors import SimulationError

if TYPE_CHECKING:
    # A stub-only name, and a cost to every interpreter start.
    from importlib.machinery import ModuleSpec

Action = Callable[[ModuleType], None]


class PostImportFinder(importlib.abc.MetaPathFinder):
    """A finder for `sys.meta_path` that leaves finding to the other finders and runs an action after the module's own code.

    Each action runs once, before the import statement that asked for the module returns.
    """

    def __init__(self, actions: Mapping[str, Action]) -> None:
        self._actions = dict(actions)

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec that the other finders give, with the action added, or None for a module without one."""
        action = self._actions.get(fullname)
        if action is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _ActingLoader(spec.loader, action)
                return spec
        return None


class _ActingLoader(importlib.abc.Loader):
    """Loads by the real loader, which then stands in the module and its spec as if nothing had happened, and acts."""

    def __init__(self, loader: Any, action: Action) -> None:
        self._loader = loader
        self._action = action

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._action(module)


def act_after_imports(actions: Mapping[str, Action]) -> PostImportFinder:
    """Put a finder for these actions at the front of `sys.meta_path` and return it.

    Raises:
        SimulationError: one of the modules is imported already, so others may hold copies of what the action replaces.
    """
    late = sorted(name for name in actions if name in sys.modules)
    if late:
        raise SimulationError(
            f"{', '.join(late)}: imported before the simulated NPU could follow the import; put simnpu/site first on PYTHONPATH"
        )
    finder = PostImportFinder(actions)
    sys.meta_path.insert(0, finder)
    return finder
