"""What a session changes of every recipe: `KEY=VALUE` in verl's own key names, as they are typed on a command line.

Must not know: where the texts come from.
"""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from .merging import merged


def changes_of(texts: Sequence[str]) -> dict[str, object]:
    """Return the overrides that these texts ask for, nested; a value is read as YAML, a leading `+` is Hydra's append.

    Raises:
        ValueError: a text is not KEY=VALUE, its value is no YAML, or two texts set one key.
    """
    nested: dict[str, object] = {}
    seen: set[str] = set()
    for text in texts:
        key, equals, value = text.partition("=")
        plain = key.lstrip("+")
        parts = plain.split(".")
        if not equals or not all(parts):
            raise ValueError(f"{text!r} cannot be used: expected KEY=VALUE, such as actor_rollout_ref.actor.optim.lr=1.0e-6")
        if plain in seen:
            raise ValueError(f"{text!r} cannot be used: {plain} is set twice")
        seen.add(plain)
        try:
            read: object = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ValueError(f"{text!r} cannot be used: the value is no YAML ({' '.join(str(error).split())})") from error
        *path, last = parts
        one = {f"+{last}" if key.startswith("+") else last: read}
        for part in reversed(path):
            one = {part: one}
        nested = merged(nested, one)
    return nested
