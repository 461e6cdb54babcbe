"""One key of verl with its value and the field that owns it, and what a recipe leaves open.

Must not know: which fields there are, or Hydra's grammar.
"""

from __future__ import annotations

from dataclasses import dataclass

ACTOR = "actor_rollout_ref.actor"
REFERENCE = "actor_rollout_ref.ref"
ROLLOUT = "actor_rollout_ref.rollout"
MODEL = "actor_rollout_ref.model"
TRANSFORMER = "override_transformer_config"


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """What a recipe leaves open: where the model and the data are, and how many devices there are."""

    model_path: str
    train_files: str
    val_files: str
    n_gpus_per_node: int
    nnodes: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One key of verl with its value.

    `field` is the field that owns it, empty for a derived value; `is_written` is False where a field owns the key and leaves it
    to verl; `mark` is Hydra's append mark.
    """

    key: str
    value: object = None
    field: str = ""
    mark: str = ""
    is_written: bool = True


def owned(key: str, value: object, field: str) -> Setting:
    """Return the setting of a key that a field owns; None leaves the key to verl."""
    return Setting(key=key, value=value, field=field, is_written=value is not None)
