"""The recipe of a supervised fine-tuning: verl's other trainer, with an engine and no rollout.

Must not know: devices, paths, or processes; how a field becomes an override stands in `sft_settings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from .arguments import told_arguments
from .checking import FieldChecks, settle
from .engines import FSDP, Engine, Megatron, TrainingEngine
from .environment import environment_problems
from .features import Lora
from .overrides import override_problems

LAUNCHERS = ("torchrun", "ray")


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class SFT:
    """What to fine-tune. Field names are verl's own wherever verl has a name; lengths are tokens, `steps` are optimizer steps.

    verl packs the sequences of a device by tokens, at most `max_token_len_per_gpu` of them. `launcher` is who starts the
    processes: torchrun, or Ray. `processes_per_node` left out is one for each device of the runner. `overrides` and `env` are
    those of a Recipe.

    Raises:
        RecipeError: with one text for each problem.
    """

    config_name: ClassVar[Literal["sft_trainer_engine"]] = "sft_trainer_engine"
    algorithm_name: ClassVar[str] = "sft"
    rollout_name: ClassVar[str] = "none"
    has_reference: ClassVar[bool] = False
    updates_per_step: ClassVar[int] = 1
    required_metrics: ClassVar[tuple[str, ...]] = ("train/loss", "train/grad_norm", "train/lr")

    model: str
    dataset: str
    engine: Engine
    steps: int
    train_batch_size: int = 256
    micro_batch_size_per_gpu: int = 4
    max_token_len_per_gpu: int = 8192
    max_length: int = 1024
    lr: float = 1e-5
    use_remove_padding: bool = True
    trust_remote_code: bool = False
    lora: Lora | None = None
    launcher: str = "torchrun"
    processes_per_node: int | None = None
    overrides: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settle(self, _field_problems(self) or [*_rule_problems(self), *override_problems(self)])

    @property
    def short_name(self) -> str:
        """Return a name for logs, such as `sft-Qwen3-8B-fsdp2`."""
        return f"sft-{self.model.rstrip('/').rpartition('/')[2]}-{self.engine.name}"

    def processes(self, devices: int) -> int:
        """Tell how many processes run on a node of so many devices."""
        return devices if self.processes_per_node is None else self.processes_per_node


def _field_problems(recipe: SFT) -> list[str]:
    checks = FieldChecks(owner="")
    checks.text("model", recipe.model, "Qwen/Qwen3-8B")
    checks.text("dataset", recipe.dataset, "gsm8k_sft")
    _check_part("engine", recipe.engine, TrainingEngine, "Megatron(...), FSDP(...), FSDP2(...) or VeOmni(...)", checks)
    for name in ("steps", "train_batch_size", "micro_batch_size_per_gpu", "max_token_len_per_gpu", "max_length"):
        checks.size(name, getattr(recipe, name))
    checks.size("processes_per_node", recipe.processes_per_node, optional=True)
    checks.number("lr", recipe.lr, above=0)
    checks.boolean("use_remove_padding", recipe.use_remove_padding)
    checks.boolean("trust_remote_code", recipe.trust_remote_code)
    checks.choice("launcher", recipe.launcher, LAUNCHERS)
    checks.mapping("overrides", recipe.overrides)
    if recipe.lora is not None:
        _check_part("lora", recipe.lora, Lora, "Lora(...), or None for all weights", checks)
    return [*checks.problems, *environment_problems(recipe.env)]


def _check_part(name: str, part: object, kind: type, expected: str, checks: FieldChecks) -> None:
    if not isinstance(part, kind):
        checks.refuse(name, part, f"expected {expected}")
    elif isinstance(part, (TrainingEngine, Lora)):
        inner = FieldChecks(owner=name)
        part.check_into(inner)
        checks.problems.extend(inner.problems)


def _rule_problems(recipe: SFT) -> list[str]:
    engine, problems = recipe.engine, []
    if recipe.lora is not None and not isinstance(engine, FSDP):
        problems.append(f"lora: {type(engine).__name__} does not read these fields; use FSDP(...) or FSDP2(...) [K18]")
    if not isinstance(engine, Megatron) and engine.sp > 1 and not recipe.use_remove_padding:
        problems.append(f"engine.sp: {engine.sp} needs use_remove_padding=True; verl splits packed sequences only [F3]")
    parts = engine.cp if isinstance(engine, Megatron) else engine.sp
    if recipe.max_token_len_per_gpu * parts < recipe.max_length:
        problems.append(
            f"max_token_len_per_gpu: {recipe.max_token_len_per_gpu} x {parts} = {recipe.max_token_len_per_gpu * parts} tokens "
            f"cannot hold a sequence of max_length = {recipe.max_length}; set at least {-(-recipe.max_length // parts)} [S4]"
        )
    return problems
