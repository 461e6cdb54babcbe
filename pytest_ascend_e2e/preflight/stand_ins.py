"""Stand-ins for the heavy libraries that verl imports and whose work its configuration does not need.

Importing verl takes ten seconds and half a gigabyte, nearly all of it torch, transformers and Ray; its dataclasses and its
`validate_config` compute with numbers and texts alone. With stand-ins they are there in half a second, also where such a library
does not load at all. For the child of a preflight only. Must not know: verl's classes.
"""

from __future__ import annotations

import importlib.abc
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn

LIBRARIES = frozenset(
    {
        "accelerate", "codetiming", "datasets", "megatron", "mindspeed", "numpy", "nvtx", "pandas", "peft", "ray", "sglang",
        "tensordict", "torch", "torch_npu", "torchdata", "torchvision", "transfer_queue", "transformers", "vllm",
    }
)  # fmt: skip
# verl's own module that asks the installed vLLM for its largest LoRA rank, which rule R12 knows.
_ROLLOUT = "verl.workers.rollout.vllm_rollout"
# No version is older than what a module asks for.
_VERSION = "999.0.0"


class _Kind(type):
    """The class of stand-in classes: each name below it is a stand-in again, and it can stand in an annotation."""

    def __getattr__(cls, name: str) -> Any:
        _refuse_dunder(name)
        return StandIn

    def __getitem__(cls, item: object) -> type:
        return cls

    def __or__(cls, other: object) -> Any:
        return cls

    def __ror__(cls, other: object) -> Any:
        return cls


class StandIn(metaclass=_Kind):
    """Anything of a library: a class to derive from, a function, a decorator that leaves what it decorates as it is."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __call__(self, *args: object, **_: object) -> Any:
        """Return what is decorated, or else another stand-in."""
        return args[0] if len(args) == 1 and callable(args[0]) else StandIn()

    def __getattr__(self, name: str) -> Any:
        _refuse_dunder(name)
        return StandIn()


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return _VERSION
        _refuse_dunder(name)
        return StandIn


def _refuse_dunder(name: str) -> None:
    # Python asks for these to learn what an object can do: a stand-in can do nothing special.
    if name.startswith("__") and name.endswith("__"):
        _raise(name)


def _raise(name: str) -> NoReturn:
    raise AttributeError(name)


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module of the libraries as an empty package whose names are stand-ins."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002  # the signature is Python's
        """Return a spec for a module of one of the libraries, None for every other."""
        is_one = fullname.partition(".")[0] in LIBRARIES or f"{fullname}.".startswith(f"{_ROLLOUT}.")
        return ModuleSpec(fullname, self, is_package=True) if is_one else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return an empty module."""
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: there is nothing in it."""


def install() -> None:
    """Let the libraries be stand-ins from now on, in this process; what is imported already stays as it is."""
    if not any(isinstance(finder, StandInFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, StandInFinder())
