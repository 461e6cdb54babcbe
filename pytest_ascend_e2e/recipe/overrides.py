"""From a recipe to Hydra overrides for `python -m verl.trainer.main_ppo`: the one place where that happens.

Owns the rules on free overrides: how they are spelled, which are doubled, which a typed field owns, which nothing would read, and
which other roles follow the actor. Must not know: how the command is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import RecipeError
from .grammar import is_key_part, render_value
from .keys import ACTOR, REFERENCE, TRANSFORMER, Inputs, Setting
from .settings import settings_of

if TYPE_CHECKING:  # recipe.py and sft.py check their overrides here
    from .recipe import Recipe
    from .sft import SFT

# Where verl's YAML has a dictionary that takes any key, so that Hydra's append mark needs no thought.
FREE_DICTIONARIES: tuple[str, ...] = (
    *(
        f"{role}.megatron.override_{name}_config"
        for role in (ACTOR, REFERENCE, "critic")
        for name in ("ddp", "transformer", "mcore_model")
    ),
    *(f"{role}.{name}" for role in (ACTOR, "critic") for name in ("optim.override_optimizer_config", "checkpoint.mbridge_config")),
    *(f"{section}.wrap_policy" for section in (f"{ACTOR}.fsdp_config", f"{REFERENCE}.fsdp_config", "critic.fsdp")),
    "actor_rollout_ref.model.override_config",
    "critic.model.override_config",
    "actor_rollout_ref.rollout.engine_kwargs",
    "actor_rollout_ref.rollout.checkpoint_engine.engine_kwargs",
    "actor_rollout_ref.rollout.custom",
    "data.apply_chat_template_kwargs",
    "data.mm_processor_kwargs",
    "reward.reward_kwargs",
    "reward.custom_reward_function.reward_kwargs",
    "reward.reward_model.rollout.engine_kwargs",
    "distillation.teacher_models.teacher_model.inference.engine_kwargs",
    "trainer.v1.sampler.sampler_kwargs",
    "trainer.v1.sync",
    "ray_kwargs.ray_init",
    "engine.override_transformer_config",
    "engine.override_ddp_config",
    "engine.turbo_config",
    "optim.override_optimizer_config",
    "global_profiler.global_tool_config.torch_memory.kw_args",
)

# verl keeps these sections for older entry points; its main_ppo never reads them.
_LEGACY_SECTIONS = {
    "reward_model": "reward.reward_model or reward.reward_manager",
    "custom_reward_function": "reward.custom_reward_function",
    "sandbox_fusion": "reward.sandbox_fusion",
}
_NOT_FOR_FOLLOWERS = {"optimizer_offload", "forward_only"}
# Enough devices that a part of them may be set aside.
_DUMMY_INPUTS = Inputs(model_path="model", train_files="train", val_files="val", n_gpus_per_node=1024)


@dataclass(frozen=True, kw_only=True, slots=True)
class Override:
    """One argument of verl's command line; `origin` is the field or the override of the recipe that asked for it."""

    key: str
    value: object
    mark: str = ""
    origin: str = ""

    @property
    def argument(self) -> str:
        """Return it in Hydra's grammar, such as `trainer.nnodes=1`."""
        return f"{self.mark}{self.key}={render_value(self.value)}"


def to_overrides(recipe: Recipe | SFT, inputs: Inputs, extra: Mapping[str, object] | None = None) -> tuple[Override, ...]:
    """Return the overrides of a recipe, each key once.

    `extra` (what a simulation needs) is nested as the recipe's own overrides are and wins over all of it; what it says of a role
    or an engine that the recipe has not is left out.

    Raises:
        RecipeError: `extra` is misspelled, or sets one key twice.
    """
    written = {setting.key: _typed_override(setting) for setting in settings_of(recipe, inputs) if setting.is_written}
    own, _ = flatten(recipe.overrides, "overrides")
    additional, problems = flatten(extra or {}, "extra")
    if problems:
        raise RecipeError(*problems)
    alive = tuple(override for override in additional if _dead_reason(recipe, override.key) is None)
    for layer in (own, alive):
        for override in (*_followers(recipe, layer), *layer):
            written.pop(override.key, None)
            written[override.key] = override
    return tuple(written.values())


def override_problems(recipe: Recipe | SFT) -> list[str]:
    """Return one text for each override of a recipe that cannot be meant."""
    overrides, problems = flatten(recipe.overrides, "overrides")
    owners = {setting.key: setting for setting in settings_of(recipe, _DUMMY_INPUTS) if setting.field}
    for override in overrides:
        reason = _dead_reason(recipe, override.key) or _owner_reason(override, owners) or _logger_reason(override)
        if reason:
            problems.append(f"{override.origin}: {reason}")
    for setting in owners.values():
        problem = _unwritable(setting.key, setting.value)
        if problem:
            problems.append(f"{setting.field}: {problem}")
    return problems


def flatten(overrides: Mapping[str, object], owner: str) -> tuple[tuple[Override, ...], list[str]]:
    """Return the leaves of nested or dotted overrides, and one text for each that is misspelled or doubled."""
    leaves = [_leaf(path, value, owner) for path, value in _walk(overrides, ())]
    problems = [problem for leaf in leaves if (problem := _unwritable(leaf.key, leaf.value, leaf.origin))]
    seen: dict[str, Override] = {}
    for leaf in leaves:
        rival = seen.get(leaf.key) or next((other for other in seen.values() if _is_within(leaf.key, other.key)), None)
        if rival is not None:
            what = "the same key" if rival.key == leaf.key else "keys of which one holds the other"
            problems.append(f"{rival.origin} and {leaf.origin} set {what}, {rival.key} and {leaf.key}: keep one of the two [K10]")
        seen[leaf.key] = leaf
    return tuple(seen.values()), problems


def is_free(key: str) -> bool:
    """Tell whether a key lies within one of verl's free dictionaries."""
    return any(key.startswith(f"{section}.") for section in FREE_DICTIONARIES)


def _walk(node: Mapping[str, object], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, value in node.items():
        here = (*path, str(name))
        if isinstance(value, Mapping) and value:
            yield from _walk(value, here)
        else:
            yield here, value


def _leaf(path: Sequence[str], value: object, owner: str) -> Override:
    *parents, last = path
    # The mark may stand before a dotted key or before its last step.
    mark = "+" if last.startswith("+") or (parents and parents[0].startswith("+")) else ""
    key = ".".join(part.lstrip("+") for part in path)
    head, _, tail = key.rpartition(".")
    if tail.startswith("+"):
        mark, key = "+", f"{head}.{tail.lstrip('+')}"
    origin = owner + "".join(f"[{part!r}]" for part in path)
    return Override(key=key, value=value, mark="++" if is_free(key) else mark, origin=origin)


def _unwritable(key: str, value: object, origin: str = "") -> str | None:
    prefix = f"{origin}: " if origin else ""
    for part in key.split("."):
        if not is_key_part(part):
            return f"{prefix}{part!r} in {key!r} is no name of a key: use letters, digits, _, $ and -, and a dot between names"
    try:
        render_value(value)
    except TypeError as error:
        return f"{prefix}{value!r} cannot be used: {error}"
    return None


def _is_within(one: str, other: str) -> bool:
    return one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _dead_reason(recipe: Recipe | SFT, key: str) -> str | None:
    if recipe.config_name == "sft_trainer_engine":
        return None
    if key.startswith(f"{REFERENCE}.") and not recipe.has_reference:
        return (
            "dead, since verl builds no reference model for this recipe: set algorithm.use_kl_loss or algorithm.use_kl_in_reward, "
            "or leave it out [K1]"
        )
    if key.startswith("critic.") and not recipe.algorithm.has_critic:
        return f"dead, since {type(recipe.algorithm).__name__} has no critic: use PPO(...), or leave it out [K2]"
    section = key.partition(".")[0]
    if section in _LEGACY_SECTIONS:
        return f"dead, since verl.trainer.main_ppo does not read {section}: use {_LEGACY_SECTIONS[section]} [K9]"
    return _other_engine(recipe, key)


def _other_engine(recipe: Recipe, key: str) -> str | None:
    name = type(recipe.engine).__name__
    for role, own, known in (
        (ACTOR, recipe.engine.section, ("megatron", "fsdp_config", "veomni", "torchtitan")),
        (REFERENCE, recipe.engine.section, ("megatron", "fsdp_config", "veomni", "torchtitan")),
        ("critic", recipe.engine.critic_section, ("megatron", "fsdp", "veomni", "torchtitan")),
    ):
        for section in known:
            if section != own and key.startswith(f"{role}.{section}."):
                return f"dead, since {role}.{section} belongs to another engine than {name}: its section is {role}.{own} [K17]"
    return None


def _owner_reason(override: Override, owners: Mapping[str, Setting]) -> str | None:
    setting = owners.get(override.key)
    if setting is not None:
        return f"{override.key} is what the field {setting.field} sets: use the field, and leave the override out [K23]"
    inner = sorted({setting.field for key, setting in owners.items() if key.startswith(f"{override.key}.")})
    if inner:
        return f"{override.key} holds what the fields {', '.join(inner)} set: override its other keys one by one [K23]"
    outer = next(
        (setting for key, setting in owners.items() if override.key.startswith(f"{key}.") and setting.value is not None), None
    )
    if outer is not None:
        return f"{override.key} lies within what the field {outer.field} sets: use the field, and leave the override out [K23]"
    return None


def _logger_reason(override: Override) -> str | None:
    if override.key != "trainer.logger":
        return None
    given = override.value if isinstance(override.value, (list, tuple)) else [override.value]
    missing = [name for name in ("console", "file") if name not in given]
    if missing:
        return f"{override.value!r} cannot be used: metrics are read from both, so add {' and '.join(map(repr, missing))} [K21]"
    return None


def _typed_override(setting: Setting) -> Override:
    return Override(key=setting.key, value=setting.value, mark=setting.mark, origin=setting.field)


def _followers(recipe: Recipe | SFT, layer: Iterable[Override]) -> Iterator[Override]:
    """Yield what the reference and the critic get from overrides of the actor's engine, unless the layer says it of them itself."""
    if recipe.config_name == "sft_trainer_engine":
        return
    given = {override.key for override in layer}
    engine = recipe.engine
    targets = []
    if recipe.has_reference and recipe.reference is None:
        targets.append(f"{REFERENCE}.{engine.section}")
    if recipe.algorithm.has_critic:
        targets.append(f"critic.{engine.critic_section}")
    prefix = f"{ACTOR}.{engine.section}."
    for override in layer:
        rest = override.key.removeprefix(prefix)
        if rest == override.key:
            continue
        for target in targets:
            is_reference = target.startswith(REFERENCE)
            if is_reference and (rest.split(".")[0] in _NOT_FOR_FOLLOWERS or rest.startswith(f"{TRANSFORMER}.")):
                continue
            if f"{target}.{rest}" not in given:
                yield replace(override, key=f"{target}.{rest}")
