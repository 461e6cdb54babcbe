"""Building a composed configuration as verl would: its own dataclasses in every role, and its own `validate_config`.

verl's driver builds the actor and the critic only; a mistake in the section of another role is raised by a worker, minutes after
the devices were taken. Here all of them are built. Only the child of a preflight imports verl, with stand-ins for what is heavy.
Must not know: overrides, or who asked for them.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

from . import stand_ins

Config: TypeAlias = dict[str, Any]
_ROLES = "actor_rollout_ref"
# What verl's worker renames before it builds the reference (verl: workers/engine_workers.py, init_model).
_OF_THE_REFERENCE = {
    "log_prob_micro_batch_size": "ppo_micro_batch_size",
    "log_prob_micro_batch_size_per_gpu": "ppo_micro_batch_size_per_gpu",
    "log_prob_use_dynamic_bsz": "use_dynamic_bsz",
    "log_prob_max_token_len_per_gpu": "ppo_max_token_len_per_gpu",
}
# What verl builds besides actor and critic, which `validate_config` builds itself: in the trainers of reinforcement learning, and
# in those of fine-tuning. Other sections with a `_target_` are never built, and not all of them could be.
_HYBRID = "trainer.v1.separate_async.hybrid_rollout"
_SECTIONS = (f"{_ROLES}.ref", f"{_ROLES}.rollout", f"{_ROLES}.model", "distillation", _HYBRID)
_TUNING_SECTIONS = ("model", "engine", "optim", "checkpoint", "profiler")
# Raised where a module of verl needs more of a library than its stand-in has: nothing is known then. The errors of a
# configuration that lacks a key are of these kinds too, and of OmegaConf's own.
_NOT_VERLS_WORD = (ImportError, AttributeError, NameError)


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """What verl says of a configuration: each part that it refuses and why, and each that it could not be asked about."""

    refused: list[tuple[str, str]] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)

    def add(self, name: str, error: Exception | None) -> None:
        """Note what came of one part."""
        from omegaconf.errors import OmegaConfBaseException  # noqa: PLC0415  # only this child has it

        if error is None:
            return
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if isinstance(error, _NOT_VERLS_WORD) and not isinstance(error, OmegaConfBaseException):
            self.unasked.append(f"{name}: {text}")
        else:
            self.refused.append((name, text))


@final
class Builder:
    """Builds configurations with the verl of this interpreter.

    Raises:
        Exception: verl could not be imported, of whatever kind its modules raise.
    """

    def __init__(self) -> None:
        stand_ins.install()
        with _silence():
            utils = importlib.import_module("verl.utils.config")
            models = importlib.import_module("verl.workers.config.model")
            roles = importlib.import_module("verl.trainer.ppo.utils")
            importlib.import_module("verl.workers.config")
        # Weights and tokenizer are on the runner; here only the fields of a model's section are looked at.
        models.HFModelConfig.__post_init__ = lambda _: None
        self._build: Callable[[Any], Any] = utils.omega_conf_to_dataclass
        self._validate: Callable[..., None] = utils.validate_config
        self._needs_reference: Callable[[Any], bool] = roles.need_reference_policy
        self._needs_critic: Callable[[Any], bool] = roles.need_critic
        self._known: dict[str, Exception | None] = {}

    def examine(self, config: Mapping[str, Any]) -> Words:
        """Return what verl says of each part of a resolved configuration that it refuses, or that it could not be asked about."""
        from omegaconf import OmegaConf  # noqa: PLC0415  # only this child has it

        words = Words()
        needs_reference = False
        if _ROLES in config:
            whole = OmegaConf.create(dict(config))
            with _silence():
                needs_reference, needs_critic = bool(self._needs_reference(whole)), bool(self._needs_critic(whole))
            words.add("validate_config", _outcome(lambda: self._validate(whole, needs_reference, needs_critic)))
        for name in _SECTIONS if _ROLES in config else _TUNING_SECTIONS:
            section = _section(config, name)
            is_dead = name == f"{_ROLES}.ref" and not needs_reference
            # Distillation is built where it is switched on.
            is_dead = is_dead or (name == "distillation" and not section.get("enabled"))
            if section and not is_dead:
                words.add(name, self._outcome_of(_as_built(name, section, config)))
        return words

    def _outcome_of(self, section: Config) -> Exception | None:
        """Build one section, and one that is the same as of another case only once."""
        from omegaconf import OmegaConf  # noqa: PLC0415  # only this child has it

        key = json.dumps(section, sort_keys=True, default=str)
        if key not in self._known:
            self._known[key] = _outcome(lambda: self._build(OmegaConf.create(section)))
        return self._known[key]


def _section(config: Mapping[str, Any], name: str) -> Config:
    """Return a section by its dotted name, empty where there is none."""
    node: Any = config
    for part in name.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def _as_built(name: str, section: Config, config: Mapping[str, Any]) -> Config:
    if name != f"{_ROLES}.ref":
        return section
    renamed = {_OF_THE_REFERENCE.get(key, key): value for key, value in section.items()}
    return {**renamed, "ppo_mini_batch_size": config[_ROLES]["actor"]["ppo_mini_batch_size"]}


def _outcome(build: Callable[[], object]) -> Exception | None:
    """Return what verl raised where it refuses to build something: the first cause, since Hydra wraps it."""
    try:
        with _silence():
            build()
    except Exception as error:  # noqa: BLE001  # verl refuses by whatever exception comes to hand
        return _first_cause(error)
    return None


def _first_cause(error: Exception) -> Exception:
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    return error


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep what verl prints and warns of out of the answer; its warnings have rules of their own."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere), warnings.catch_warnings():  # noqa: PTH123  # no path of ours
        warnings.simplefilter("ignore")
        yield
