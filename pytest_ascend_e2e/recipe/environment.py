"""The environment variables that a recipe brings to its training.

Must not know: the environment of this process. What every training needs (HCCL's port ranges, Ray's device masks) verl 0.9.1 sets
by itself, so a recipe adds only what is its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # recipe.py checks its variables here
    from .recipe import Recipe
    from .sft import SFT

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWNED = {
    "ASCEND_RT_VISIBLE_DEVICES": "the lease decides which devices a run gets",
    "ASCEND_VISIBLE_DEVICES": "the lease decides which devices a run gets",
    "VERL_FILE_LOGGER_PATH": "the run directory decides where metrics are written",
    "VERL_FILE_LOGGER_ROOT": "the run directory decides where metrics are written",
}
# A fixed range makes two runs on one host collide; verl asks for "auto", which is made for several processes on one device.
_PORT_RANGES = ("HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_NPU_SOCKET_PORT_RANGE", "HCCL_IF_BASE_PORT")


def to_environment(recipe: Recipe | SFT) -> dict[str, str]:
    """Return the variables that a recipe brings to its training, on top of what the launcher sets."""
    return dict(recipe.env)


def environment_problems(env: object) -> list[str]:
    """Return one text for each variable of a recipe that cannot be used."""
    if not isinstance(env, Mapping):
        return [f"env: {env!r} cannot be used: expected a mapping of texts, such as {{'HCCL_CONNECT_TIMEOUT': '1500'}}"]
    problems = []
    for name, value in env.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            problems.append(f"env: {name!r} is no name of a variable: use letters, digits and _")
        elif not isinstance(value, str) or "\0" in value:
            problems.append(f"env[{name!r}]: {value!r} cannot be used: expected a text, such as {str(value)!r}")
        elif name in _OWNED:
            problems.append(f"env[{name!r}]: {value!r} cannot be used: {_OWNED[name]}; leave it out")
        elif name in _PORT_RANGES and value != "auto":
            problems.append(
                f"env[{name!r}]: {value!r} cannot be used: a fixed port makes two runs on one host collide; leave it out"
            )
    return problems
