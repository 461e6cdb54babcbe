"""Rules on batches: how prompts, responses and micro-batches divide over a layout.

verl 0.9.1 raises these in its driver (`utils/config.py`) or only in its workers (`workers/engine_workers.py`), minutes later. Must
not know: models, or how a layout came about.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from ..recipe import SFT, Layout, Megatron, Recipe
from .findings import Finding, Values


def batch_problems(recipe: Recipe, layout: Layout) -> list[str]:
    """Return one text for each rule on batches that a recipe breaks on a layout."""
    return [*_mini_batch_problems(recipe, layout), *_train_batch_problems(recipe, layout), *_pipeline_problems(recipe, layout)]


def sft_problems(recipe: SFT, layout: Layout) -> list[str]:
    """Return one text for each rule on batches that a supervised fine-tuning breaks on a layout."""
    batch, dp = recipe.train_batch_size, layout.dp
    if batch % dp:
        return [f"train_batch_size: {batch} does not divide over dp {dp}; set a multiple of it, such as {_next(batch, dp)} [S1]"]
    return []


def epoch_findings(recipe: Recipe, values: Values) -> Iterator[Finding]:
    """Yield where the rows of a dataset and the epochs asked for end a training before its last step."""
    epochs, rows = values.number("trainer.total_epochs"), recipe.dataset_size
    if epochs is None or rows is None:
        return
    # verl drops the last batch of an epoch where it is not whole.
    steps = epochs * (rows // recipe.train_batch_size)
    if steps < recipe.steps:
        text = (
            f"{values.said('trainer.total_epochs')} x {rows} rows / train_batch_size {recipe.train_batch_size} = {steps} steps end "
            f"the training before steps = {recipe.steps}, with status 0 and without its last save; leave it out"
        )
        yield Finding(rule="B12", text=text)


def _mini_batch_problems(recipe: Recipe, layout: Layout) -> Iterator[str]:
    mini, n, dp = recipe.mini_batch_size, recipe.rollout.n, layout.dp
    if mini * n % dp:
        step = dp // gcd(n, dp)
        yield (
            f"ppo_mini_batch_size: {mini} x rollout.n {n} = {mini * n} responses do not divide over dp {dp}; "
            f"set a multiple of {step}, such as {_next(mini, step)} [B3]"
        )
        return
    micro = recipe.ppo_micro_batch_size_per_gpu
    share = mini * n // dp
    if not recipe.use_dynamic_bsz and micro is not None and share % micro:
        fits = max(size for size in range(1, micro) if share % size == 0)
        rule = "M17" if layout.pp > 1 else "B4"
        yield (
            f"ppo_micro_batch_size_per_gpu: {micro} does not divide the {mini} x {n} / dp {dp} = {share} responses of a device; "
            f"set {fits}, or use_dynamic_bsz=True [{rule}]"
        )


def _train_batch_problems(recipe: Recipe, layout: Layout) -> Iterator[str]:
    if recipe.use_dynamic_bsz:
        return
    batch, n = recipe.train_batch_size, recipe.rollout.n
    if isinstance(recipe.engine, Megatron):
        micro = recipe.ppo_micro_batch_size_per_gpu or 1
        least, why = layout.dp * micro, f"dp {layout.dp} x ppo_micro_batch_size_per_gpu {micro} = {layout.dp * micro}"
    else:
        least, why = layout.devices, f"the {layout.devices} devices"
    if batch * n % least:
        step = least // gcd(n, least)
        yield (
            f"train_batch_size: {batch} x rollout.n {n} = {batch * n} responses do not divide over {why}; "
            f"set a multiple of {step}, such as {_next(batch, step)} [B1]"
        )


def _pipeline_problems(recipe: Recipe, layout: Layout) -> Iterator[str]:
    """Yield where an interleaved pipeline cannot be filled: megatron-core takes micro-batches in groups of pp."""
    if layout.vpp is None or layout.vpp < 2:  # noqa: PLR2004  # 1 is no interleaving
        return
    share = recipe.mini_batch_size * recipe.rollout.n // layout.dp
    if recipe.micro_batch_size is None:
        # verl rounds the number of micro-batches up to whole groups, and none of them can be empty.
        if share < layout.pp:
            yield (
                f"engine.vpp: {layout.vpp} takes micro-batches in groups of pp = {layout.pp}, and a device has {share} responses "
                "of a mini-batch; raise ppo_mini_batch_size, or leave vpp out [M16]"
            )
        return
    count = share // recipe.micro_batch_size
    if count % layout.pp:
        yield (
            f"engine.vpp: {layout.vpp} takes micro-batches in groups of pp = {layout.pp}, and a mini-batch has {count}; "
            "change ppo_mini_batch_size or ppo_micro_batch_size_per_gpu, or leave vpp out [M16]"
        )


def _next(value: int, step: int) -> int:
    return -(-value // step) * step
