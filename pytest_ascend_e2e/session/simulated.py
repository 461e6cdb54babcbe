"""What a simulated runner cannot train at all, whatever its sizes. Must not know: how a training is simulated."""

from __future__ import annotations

from ..errors import PreflightError
from ..recipe import SFT, Megatron, Recipe, Sglang


def refuse_unsimulated(recipe: Recipe | SFT, runner: str) -> None:
    """Refuse a trainer or an engine that there is no simulation of.

    Raises:
        PreflightError: with one text for each of them.
    """
    found = ["supervised fine-tuning"] if isinstance(recipe, SFT) else []
    found += ["Megatron"] if isinstance(recipe.engine, Megatron) else []
    found += ["SGLang"] if isinstance(recipe, Recipe) and isinstance(recipe.rollout, Sglang) else []
    if found:
        raise PreflightError(*(f"{what} is not simulated, and {runner} is; use a runner with NPUs" for what in found))
