"""What a command composes to, and which keys it says itself.

Must not know: recipes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# What chooses a file of verl's configuration and is no key of it.
GROUPS = ("model_engine", "engine", "optim", "model")


class Absent:
    """Stands for the value of a key that a configuration lacks."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A composed configuration, nested, beside what it would be without the command's overrides.

    `said` holds the keys that the command sets, in its order, with Hydra's mark of each.
    """

    config: Mapping[str, Any]
    defaults: Mapping[str, Any]
    said: Mapping[str, str]

    def get(self, key: str) -> Any:
        """Return the value of a dotted key, None where there is none."""
        value = value_of(self.config, key)
        return None if value is ABSENT else value

    def has(self, key: str) -> bool:
        """Tell whether the configuration has a dotted key."""
        return value_of(self.config, key) is not ABSENT

    def is_changed(self, key: str) -> bool:
        """Tell whether a dotted key has another value than without the command's overrides."""
        return bool(value_of(self.config, key) != value_of(self.defaults, key))

    def said_below(self, section: str) -> list[str]:
        """Return the keys that the command sets within a section, relative to it."""
        prefix = f"{section}."
        return [key.removeprefix(prefix) for key in self.said if key.startswith(prefix)]


def said_keys(arguments: Sequence[str]) -> dict[str, str]:
    """Return the keys of overrides with their marks; a choice of a file is none."""
    found: dict[str, str] = {}
    for argument in arguments:
        marked = argument.partition("=")[0]
        key = marked.lstrip("+~")
        if key not in GROUPS:
            found[key] = marked[: len(marked) - len(key)]
    return found


def groups_of(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments that choose a file of verl's configuration."""
    return tuple(argument for argument in arguments if argument.partition("=")[0] in GROUPS)


def value_of(config: Mapping[str, Any], key: str) -> Any:
    """Return the value of a dotted key, ABSENT where there is none."""
    node: Any = config
    for part in key.split("."):
        if not isinstance(node, Mapping) or part not in node:
            return ABSENT
        node = node[part]
    return node
