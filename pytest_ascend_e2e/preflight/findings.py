"""What a rule says, and the configuration it is asked about: flat, by verl's own keys, with who asked for each.

Must not know: rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ..recipe import ACTOR, REFERENCE

FSDP_STRATEGIES = ("fsdp", "fsdp2", "fsdp_turbo")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What one rule says of one value; a warning is about what verl silently ignores or changes."""

    rule: str
    text: str
    is_error: bool = True

    def __str__(self) -> str:
        return f"{self.text} [{self.rule}]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Values:
    """A flat configuration, and of each key the field or override that asked for it."""

    flat: Mapping[str, object]
    origins: Mapping[str, str]

    def get(self, key: str) -> object:
        """Return a value, None where the key is not there."""
        return self.flat.get(key)

    def number(self, key: str) -> int | None:
        """Return a whole number, None where there is none."""
        value = self.flat.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def size(self, key: str) -> int:
        """Return a parallel size, 1 where none is given."""
        return self.number(key) or 1

    def is_asked(self, key: str) -> bool:
        """Tell whether a field or an override asked for a key, other than verl's YAML."""
        return bool(self.origins.get(key))

    def origin(self, key: str) -> str:
        """Return who asked for a key, the key itself where verl's YAML did."""
        return self.origins.get(key) or key

    def said(self, key: str) -> str:
        """Return the beginning of a message: who gave the value, and the value."""
        return f"{self.origin(key)}: {self.flat.get(key)!r}"

    @property
    def has_reference(self) -> bool:
        """Tell whether verl builds a reference model; a part of a configuration that does not say so may have one."""
        return self.get(f"{ACTOR}.use_kl_loss") is not False or self.get("algorithm.use_kl_in_reward") is not False

    @property
    def has_critic(self) -> bool:
        """Tell whether verl builds a critic; a part of a configuration that does not say so may have one."""
        return self.get("critic.enable") is True or self.get("algorithm.adv_estimator") in (None, "gae")

    @property
    def strategy(self) -> object:
        """Return the training engine, of whichever trainer."""
        return self.get(f"{ACTOR}.strategy") or self.get("engine.strategy")

    @property
    def sequence_split(self) -> int:
        """Return over how many devices a sequence is split."""
        if self.strategy == "megatron":
            return self.size(f"{ACTOR}.megatron.context_parallel_size")
        fsdp = f"{ACTOR}.fsdp_config"
        keys = (
            f"{ACTOR}.megatron.context_parallel_size",
            f"{fsdp}.ulysses_sequence_parallel_size",
            f"{fsdp}.turbo_config.distributed.ulysses_parallel_size",
            f"{ACTOR}.veomni.ulysses_parallel_size",
        )
        return max(self.size(key) for key in keys)

    @property
    def devices(self) -> int | None:
        """Return the number of devices that train, None where it is not said."""
        per_node = self.number("trainer.n_gpus_per_node")
        return None if per_node is None else per_node * self.size("trainer.nnodes")

    def roles(self) -> Iterator[str]:
        """Yield the sections of the roles that verl builds beside the actor."""
        if self.has_reference:
            yield REFERENCE
        if self.has_critic:
            yield "critic"


ConfigRule: TypeAlias = Callable[[Values], Iterator[Finding]]
