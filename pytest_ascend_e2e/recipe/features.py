"""What a recipe may have beside algorithm, engine and rollout: LoRA, a profiler, a trainer that rolls out on devices of its own.

Must not know: how a field becomes an override (`feature_settings.py`). A field is checked by the Recipe that holds the feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .arguments import told_arguments
from .checking import FieldChecks

PROFILER_LEVELS = ("level_none", "level0", "level1", "level2")
# verl: trainer/ppo/v1/replay_buffer.py, what happens when a sample is too old.
OFF_POLICY_STRATEGIES = ("drop", "wait")


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class Lora:
    """Low-rank adapters instead of all weights (Hu et al. 2021), for FSDP engines; the reference is the model without them.

    `target_modules` and `exclude_modules` are peft's: names, a pattern, or "all-linear".
    """

    rank: int
    alpha: int = 16
    target_modules: str | Sequence[str] = "all-linear"
    exclude_modules: str | Sequence[str] | None = None

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        checks.size("rank", self.rank)
        checks.size("alpha", self.alpha)
        if not self.target_modules:
            checks.refuse("target_modules", self.target_modules, "expected names of modules, a pattern, or 'all-linear'")


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class Profiling:
    """The NPU profiler over whole steps, in every role that verl builds.

    `steps` are trainer steps; without `ranks` every rank is profiled. `discrete` writes each role's part by itself.
    """

    steps: Sequence[int]
    ranks: Sequence[int] = ()
    level: str = "level0"
    contents: Sequence[str] = ("npu", "cpu")
    discrete: bool = False
    analysis: bool = True
    save_path: str = "profiler"

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        for name, least in (("steps", 1), ("ranks", 0)):
            values = getattr(self, name)
            if not isinstance(values, (list, tuple)):
                checks.refuse(name, values, "expected a list of whole numbers")
                continue
            for value in values:
                checks.size(name, value, minimum=least)
        if self.steps in ((), []):
            checks.refuse("steps", self.steps, "a profiler without a step never starts; name the steps, or leave profiling out")
        checks.choice("level", self.level, PROFILER_LEVELS)
        checks.boolean("discrete", self.discrete)
        checks.boolean("analysis", self.analysis)
        checks.text("save_path", self.save_path, "profiler")


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class SeparateAsync:
    """verl's trainer that rolls out on devices of its own while it trains, with weights that may be some updates old.

    Of each node's devices `rollout_devices` roll out and the rest train. A trainer step is `parameter_sync_step` mini-batches,
    after which the rollout gets new weights; a sample older than `max_off_policy_threshold` updates is dropped, or the rollout
    waits.
    """

    rollout_devices: int
    parameter_sync_step: int = 1
    num_warmup_batches: int = 1
    max_off_policy_threshold: int = 8
    max_off_policy_strategy: str = "drop"
    gen_batch_size: int = 1
    checkpoint_backend: str = "nccl"

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        for name in ("rollout_devices", "parameter_sync_step", "gen_batch_size"):
            checks.size(name, getattr(self, name))
        checks.size("num_warmup_batches", self.num_warmup_batches, minimum=0)
        checks.size("max_off_policy_threshold", self.max_off_policy_threshold, minimum=0)
        checks.choice("max_off_policy_strategy", self.max_off_policy_strategy, OFF_POLICY_STRATEGIES)
        checks.text("checkpoint_backend", self.checkpoint_backend, "nccl")
        if self.checkpoint_backend == "naive":
            expected = "weights go to devices of the rollout's own: name a backend that can send them, such as 'nccl'"
            checks.refuse("checkpoint_backend", self.checkpoint_backend, expected, rule="R14")
        if self.checkpoint_backend == "naive":
            checks.refuse("checkpoint_backend", self.checkpoint_backend, "it cannot reach devices of another pool; use 'nccl'")
