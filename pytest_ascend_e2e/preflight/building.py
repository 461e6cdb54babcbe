"""Building a composed configuration as verl would: its own dataclasses in every role, and its own `validate_config`.

verl's driver builds the actor and the critic only; a mistake in the section of another role is raised by a worker, minutes after
the devices were taken. Here all of them are built. Only the child of a preflight imports verl, with stand-ins for what is heavy.
Must not know: overrides, or who asked for them.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
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
# `validate_config` builds these two itself, the critic where there is one.
_BUILT_BY_VALIDATION = (f"{_ROLES}.actor", "critic")
# No trainer builds the first as a whole (verl's own YAML would not pass), and the second only where it is switched on.
_NEVER_BUILT = ("global_profiler", "distillation")
# Raised where a module of verl needs more of a library than its stand-in has: nothing is known then.
_NOT_VERLS_WORD = (ImportError, AttributeError, NameError)


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
        self._known: dict[str, tuple[str, ...]] = {}

    def problems(self, config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield, for each part of a resolved configuration that verl refuses, its name and verl's own words."""
        from omegaconf import OmegaConf  # noqa: PLC0415  # only this child has it

        whole = OmegaConf.create(copy.deepcopy(dict(config)))
        needs_reference = needs_critic = False
        if _ROLES in config:
            with _silence():
                needs_reference, needs_critic = bool(self._needs_reference(whole)), bool(self._needs_critic(whole))
            refused = _refusals(lambda: self._validate(whole, needs_reference, needs_critic))
            yield from (("validate_config", text) for text in refused)
        left_out = {*_BUILT_BY_VALIDATION, *_NEVER_BUILT, *(() if needs_reference else (f"{_ROLES}.ref",))}
        for name, section in _sections(config):
            if name not in left_out:
                yield from ((name, text) for text in self._refusals_of(_as_built(name, section, config)))

    def _refusals_of(self, section: Config) -> tuple[str, ...]:
        """Build one section, and one that is the same as of another case only once."""
        from omegaconf import OmegaConf  # noqa: PLC0415  # only this child has it

        key = json.dumps(section, sort_keys=True, default=str)
        if key not in self._known:
            self._known[key] = tuple(_refusals(lambda: self._build(OmegaConf.create(section))))
        return self._known[key]


def _sections(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Config]]:
    """Yield the outermost sections that verl builds as dataclasses, by their dotted names."""
    for key, value in node.items():
        if not isinstance(value, dict):
            continue
        if str(value.get("_target_", "")).startswith("verl."):
            yield f"{prefix}{key}", value
        else:
            yield from _sections(value, f"{prefix}{key}.")


def _as_built(name: str, section: Config, config: Mapping[str, Any]) -> Config:
    if name != f"{_ROLES}.ref":
        return section
    renamed = {_OF_THE_REFERENCE.get(key, key): value for key, value in section.items()}
    return {**renamed, "ppo_mini_batch_size": config[_ROLES]["actor"]["ppo_mini_batch_size"]}


def _refusals(build: Callable[[], object]) -> Iterator[str]:
    """Yield what verl says where it refuses to build something."""
    try:
        with _silence():
            build()
    except _NOT_VERLS_WORD:
        return
    except Exception as error:  # noqa: BLE001  # verl refuses by whatever exception comes to hand
        cause = _first_cause(error)
        if not isinstance(cause, _NOT_VERLS_WORD):
            yield f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__


def _first_cause(error: BaseException) -> BaseException:
    """Return what a dataclass raised: Hydra wraps it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep what verl prints and warns of out of the answer; its warnings have rules of their own."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere), warnings.catch_warnings():  # noqa: PTH123  # no path of ours
        warnings.simplefilter("ignore")
        yield
