"""What of a command no typed field says: overrides of the recipe, and what is not taken over, with the reason.

Must not know: how a recipe is written down.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import RecipeError
from ..preflight import leaves
from ..recipe import SFT, Inputs, Recipe, settings_of, to_overrides
from ..recipe.keys import ACTOR, MODEL
from ..recipe.overrides import is_free
from .wanted import ABSENT, Wanted, value_of

_MOST_KEYS = 3
_VALIDATES_FIRST = "trainer.val_before_train"
# What every case says for itself is no news.
_OF_THE_CASE = ""


def _never_validates(wanted: Wanted) -> bool:
    is_asked = wanted.get(_VALIDATES_FIRST) and _VALIDATES_FIRST in wanted.said
    return not is_asked and wanted.get("trainer.test_freq") in (-1, None)


def _is_profiled(wanted: Wanted) -> bool:
    return wanted.get(f"{ACTOR}.profiler.enable") is True and bool(wanted.get("global_profiler.steps"))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Unread:
    """Keys that need not be said: patterns, the reason, and when."""

    reason: str
    keys: tuple[str, ...]
    when: Callable[[Wanted], bool] = lambda _: True


_UNREAD = (
    _Unread(
        reason=_OF_THE_CASE,
        keys=(
            "trainer.project_name",
            "trainer.experiment_name",
            "trainer.logger",
            "trainer.total_epochs",
            "trainer.n_gpus_per_node",
            "trainer.nnodes",
            "trainer.device",
            "data.train_files",
            "data.val_files",
            "actor_rollout_ref.rollout.trace.*_name",
        ),
    ),
    # verl copies the deprecated key to the engine, where the recipe has it.
    _Unread(
        reason="",
        keys=("*.ulysses_sequence_parallel_size",),
        when=lambda wanted: f"{ACTOR}.ulysses_sequence_parallel_size" in wanted.said,
    ),
    _Unread(
        reason="a run has a directory of its own, and begins anew",
        keys=("trainer.default_local_dir", "trainer.resume_mode", "trainer.resume_from_path"),
    ),
    _Unread(
        reason="read by a validation only, and there is none",
        keys=(
            "trainer.val_before_train",
            "trainer.test_freq",
            "trainer.log_val_generations",
            "actor_rollout_ref.rollout.val_kwargs.*",
        ),
        when=_never_validates,
    ),
    _Unread(
        reason="read for a checkpoint only, and none is saved",
        keys=("trainer.max_*ckpt_to_keep", "*checkpoint.save_contents", "*checkpoint.load_contents"),
        when=lambda wanted: wanted.get("trainer.save_freq") == -1,
    ),
    _Unread(
        reason="read by a profiler only, and none is enabled for a step",
        keys=("*.profiler.*", "global_profiler.*"),
        when=lambda wanted: not _is_profiled(wanted),
    ),
    _Unread(
        reason="Profiling(...) profiles every role alike, into the run directory",
        keys=("*.profiler.*", "global_profiler.save_path", "global_profiler.finish_hook_cmd", "*.nsys.discrete"),
        when=_is_profiled,
    ),
    _Unread(
        reason="batches are packed by tokens",
        keys=("*micro_batch_size_per_gpu",),
        when=lambda wanted: wanted.get(f"{ACTOR}.use_dynamic_bsz") is True,
    ),
    _Unread(
        reason="batches have a fixed number of responses",
        keys=("*max_token_len_per_gpu",),
        when=lambda wanted: wanted.get(f"{ACTOR}.use_dynamic_bsz") is False,
    ),
    _Unread(
        reason="read for LoRA only, whose rank is 0",
        keys=(f"{MODEL}.lora_alpha", "*.model.lora.alpha", f"{MODEL}.exclude_modules"),
        when=lambda wanted: not wanted.get(f"{MODEL}.lora_rank") and not wanted.get(f"{MODEL}.lora.rank"),
    ),
    _Unread(
        reason="read for converted weights only, and there are none",
        keys=("*.dist_checkpointing_path",),
        when=lambda wanted: not wanted.get(f"{ACTOR}.megatron.use_dist_checkpointing"),
    ),
    _Unread(
        reason="read for a reward function of its own only, and there is none",
        keys=("reward.custom_reward_function.name",),
        when=lambda wanted: wanted.get("reward.custom_reward_function.path") is None,
    ),
    _Unread(reason="verl 0.9 never reads it", keys=("data.truncation", "trainer.balance_batch")),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Remainder:
    """The overrides that a recipe needs beside its typed fields, nested for a reader, and what was left out and why."""

    overrides: Mapping[str, object]
    notes: tuple[str, ...]


def unread_reason(key: str, wanted: Wanted) -> str | None:
    """Return why a key need not be said, None where it must be."""
    for entry in _UNREAD:
        if any(fnmatch.fnmatchcase(key, pattern) for pattern in entry.keys) and entry.when(wanted):
            return entry.reason
    return None


def remainder_of(recipe: Recipe | SFT, taken: frozenset[str], inputs: Inputs, wanted: Wanted) -> Remainder:
    """Return what the command says beyond the typed fields of this recipe."""
    written = {override.key: override.value for override in to_overrides(recipe, inputs)}
    owners = {setting.key: setting.field for setting in settings_of(recipe, inputs) if setting.field}
    reasons: dict[str, list[str]] = {}
    kept: dict[str, object] = {}
    for key, mark in wanted.said.items():
        value = wanted.get(key)
        if key in taken or _is_said(key, value, written, wanted) or _is_of_field(recipe, owners.get(key, ""), value):
            continue
        reason = unread_reason(key, wanted)
        if reason is None:
            reason = _refusal(recipe, key, value, owners)
        if reason is None:
            kept[_appended(key, mark, wanted)] = value
        else:
            reasons.setdefault(reason, []).append(key)
    if not _never_validates(wanted) and wanted.get(_VALIDATES_FIRST) and _VALIDATES_FIRST not in wanted.said:
        # verl's default, which a case that validates has too.
        kept[_VALIDATES_FIRST] = True
    notes = tuple(f"{_listed(keys)}: left out, {reason}" for reason, keys in reasons.items() if reason != _OF_THE_CASE)
    return Remainder(overrides=_nested(kept), notes=notes)


def _listed(keys: Sequence[str]) -> str:
    if len(keys) <= _MOST_KEYS:
        return ", ".join(keys)
    return f"{', '.join(keys[:_MOST_KEYS])} and {len(keys) - _MOST_KEYS} more"


def _is_said(key: str, value: object, written: Mapping[str, object], wanted: Wanted) -> bool:
    """Tell whether the recipe has this value already, or verl has it anyway."""
    if key in written:
        own = written[key]
        return own == value or (isinstance(own, tuple) and list(own) == value)
    default = value_of(wanted.defaults, key)
    return bool(value == default)


def _is_of_field(recipe: Recipe | SFT, field: str, value: object) -> bool:
    """Tell whether a field, such as engine.sp, has this value."""
    part, _, name = field.rpartition(".")
    return bool(name) and getattr(getattr(recipe, part, None) if part else recipe, name, ABSENT) == value


def _refusal(recipe: Recipe | SFT, key: str, value: object, owners: Mapping[str, str]) -> str | None:
    """Return why a recipe does not take an override, by its own rules; None where it does."""
    if key in owners:
        return f"the field {owners[key]} says it" if owners[key] else None
    try:
        replace(recipe, overrides={key: value})
    except RecipeError as error:
        # Field, reason and advice; the advice is for one who writes a recipe.
        return "; ".join(problem.partition(": ")[2].partition(": ")[0] for problem in error.problems)
    return None


def _appended(key: str, mark: str, wanted: Wanted) -> str:
    """Return the key as an override has it: with Hydra's mark where verl's YAML lacks it."""
    if not mark or is_free(key) or value_of(wanted.defaults, key) is not ABSENT:
        return key
    head, _, last = key.rpartition(".")
    return f"{head}.+{last}" if head else f"+{last}"


def _nested(flat: Mapping[str, object]) -> dict[str, object]:
    """Return overrides as a reader would write them: nested where sections meet, dotted where they do not."""
    if len(flat) == 1:
        return dict(flat)
    groups: dict[str, dict[str, object]] = {}
    for key, value in flat.items():
        first, _, rest = key.partition(".")
        groups.setdefault(first, {})[rest] = value
    result: dict[str, object] = {}
    for first, inner in groups.items():
        if "" in inner:
            result[first] = inner[""]
            continue
        below = _nested(inner)
        if len(below) == 1:
            ((name, value),) = below.items()
            result[f"{first}.{name}"] = value
        else:
            result[first] = below
    return result


def differences(wanted: Wanted, got: Mapping[str, Any], recipe: Recipe | SFT) -> Iterator[tuple[str, object, object]]:
    """Yield each key whose value a composed recipe has otherwise than the command, of those that something reads."""
    for key in sorted({key for config in (wanted.config, got) for key, _ in leaves(config)}):
        one, other = value_of(wanted.config, key), value_of(got, key)
        is_dead = not isinstance(recipe, SFT) and (
            (key.startswith("actor_rollout_ref.ref.") and not recipe.has_reference)
            or (key.startswith("critic.") and not recipe.algorithm.has_critic)
        )
        # A nan is no other than a nan.
        if one != other and repr(one) != repr(other) and not is_dead and unread_reason(key, wanted) is None:
            yield key, one, other
