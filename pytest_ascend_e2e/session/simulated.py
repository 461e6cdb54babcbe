"""What a simulated runner cannot train at all, whatever its sizes. Must not know: how a training is simulated."""

from __future__ import annotations

from ..errors import ModelError, PreflightError
from ..models import architecture_of
from ..recipe import FSDP2, SFT, Recipe, Sglang


def refuse_unsimulated(recipe: Recipe | SFT, runner: str) -> None:
    """Refuse a trainer or an engine that there is no simulation of.

    Raises:
        PreflightError: with one text for each of them.
    """
    found = ["supervised fine-tuning"] if isinstance(recipe, SFT) else []
    # FSDP of the first kind wants its module on a GPU before it shards it; what the others need, a CPU has not either.
    found += [] if type(recipe.engine) is FSDP2 else [type(recipe.engine).__name__]
    if isinstance(recipe, Recipe):
        found += ["SGLang"] if isinstance(recipe.rollout, Sglang) else []
        found += ["a critic of a model of images"] if recipe.algorithm.has_critic and _has_images(recipe.model) else []
    if found:
        other = "" if type(recipe.engine) is FSDP2 else "FSDP2 or "
        raise PreflightError(*(f"{what} is not simulated, and {runner} is; use {other}a runner with NPUs" for what in found))


def _has_images(model: str) -> bool:
    """Tell whether transformers has no critic of a model's architecture; of a model that has no tiny one it is not asked."""
    try:
        return architecture_of(model) == "qwen3_vl"
    except ModelError:
        return False
