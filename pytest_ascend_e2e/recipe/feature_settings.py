"""What LoRA, profiling and the asynchronous trainer mean in verl's keys (verl 0.9.1, `verl/trainer/config/`).

Must not know: Hydra's grammar, or which overrides a user wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .features import Lora, Profiling, SeparateAsync
from .keys import ACTOR, MODEL, REFERENCE, ROLLOUT, Inputs, Setting, owned

if TYPE_CHECKING:  # recipe.py checks its overrides against these settings
    from .recipe import Recipe


def feature_settings(recipe: Recipe, inputs: Inputs) -> Iterator[Setting]:
    """Yield the settings of the features that a recipe has."""
    if recipe.lora is not None:
        yield from lora_settings(MODEL, recipe.lora)
    if recipe.profiling is not None:
        yield from _profiling(recipe, recipe.profiling)
    if recipe.trainer is not None:
        yield from _separate_async(recipe.trainer, inputs)


def lora_settings(section: str, lora: Lora) -> Iterator[Setting]:
    """Yield the settings of LoRA in the section of a model."""
    yield owned(f"{section}.lora_rank", lora.rank, "lora.rank")
    yield owned(f"{section}.lora_alpha", lora.alpha, "lora.alpha")
    yield owned(f"{section}.target_modules", lora.target_modules, "lora.target_modules")
    yield owned(f"{section}.exclude_modules", lora.exclude_modules, "lora.exclude_modules")


def _profiling(recipe: Recipe, profiling: Profiling) -> Iterator[Setting]:
    yield owned("global_profiler.tool", "npu", "profiling")
    yield owned("global_profiler.steps", tuple(profiling.steps), "profiling.steps")
    yield owned("global_profiler.save_path", profiling.save_path, "profiling.save_path")
    roles = [ACTOR]
    if recipe.has_reference:
        roles.append(REFERENCE)
    if recipe.algorithm.has_critic:
        roles.append("critic")
    for role in (*roles, ROLLOUT):
        section = f"{role}.profiler"
        yield Setting(key=f"{section}.enable", value=True, field="profiling")
        yield owned(f"{section}.all_ranks", not profiling.ranks, "profiling.ranks")
        yield owned(f"{section}.ranks", tuple(profiling.ranks), "profiling.ranks")
    # verl's YAML gives a critic no section for the tool: it has the actor's.
    for role in roles:
        if role == "critic":
            continue
        for name in ("level", "contents", "discrete", "analysis"):
            value = getattr(profiling, name)
            given = tuple(value) if isinstance(value, list) else value
            yield owned(f"{role}.profiler.tool_config.npu.{name}", given, f"profiling.{name}")


def _separate_async(trainer: SeparateAsync, inputs: Inputs) -> Iterator[Setting]:
    yield Setting(key="trainer.use_v1", value=True, field="trainer")
    yield owned("trainer.v1.trainer_mode", "separate_async", "trainer")
    yield Setting(key="transfer_queue.enable", value=True, field="trainer")
    for name in ("num_warmup_batches", "parameter_sync_step"):
        yield owned(f"trainer.v1.separate_async.{name}", getattr(trainer, name), f"trainer.{name}")
    for name in ("max_off_policy_threshold", "max_off_policy_strategy"):
        yield owned(f"trainer.v1.sampler.{name}", getattr(trainer, name), f"trainer.{name}")
    yield owned("data.gen_batch_size", trainer.gen_batch_size, "trainer.gen_batch_size")
    yield owned(f"{ROLLOUT}.nnodes", inputs.nnodes, "the case's nodes")
    yield owned(f"{ROLLOUT}.n_gpus_per_node", trainer.rollout_devices, "trainer.rollout_devices")
    yield owned(f"{ROLLOUT}.checkpoint_engine.backend", trainer.checkpoint_backend, "trainer.checkpoint_backend")
