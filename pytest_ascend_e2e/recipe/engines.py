"""The training engines a recipe can ask for: their parallel sizes and what else decides whether a model fits and how it computes.

Must not know: the rollout, or how a field becomes an override (`settings.py`). Short parallel names as in the field: tp, pp, cp,
ep, etp, vpp, sp. A field is checked by the Recipe that holds the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from .arguments import told_arguments
from .checking import FieldChecks

DTYPES = ("bfloat16", "float16")
MODEL_DTYPES = ("fp32", "bf16", "fp16")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingEngine:
    """What every engine has.

    `offload` moves parameters and the optimizer's state to the host while they rest; `param_offload` and `optimizer_offload`
    say one of the two otherwise. `optimizer` is verl's `override_optimizer_config`.
    """

    name: ClassVar[str]
    group: ClassVar[str]
    section: ClassVar[str]
    critic_section: ClassVar[str]

    offload: bool = False
    param_offload: bool | None = None
    optimizer_offload: bool | None = None
    dtype: str = "bfloat16"
    optimizer: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_param_offloaded(self) -> bool:
        """Tell whether parameters go to the host while they rest."""
        return self.offload if self.param_offload is None else self.param_offload

    @property
    def is_optimizer_offloaded(self) -> bool:
        """Tell whether the optimizer's state goes to the host while it rests."""
        return self.offload if self.optimizer_offload is None else self.optimizer_offload

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        checks.boolean("offload", self.offload)
        checks.boolean("param_offload", self.param_offload, optional=True)
        checks.boolean("optimizer_offload", self.optimizer_offload, optional=True)
        checks.choice("dtype", self.dtype, DTYPES, rule="M13" if isinstance(self, Megatron) else "")
        checks.mapping("optimizer", self.optimizer)


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class Megatron(TrainingEngine):
    """Megatron-core (on NPUs through MindSpeed).

    `etp` left out means megatron-core's own default, which is `tp`; `sequence_parallel` left out is on where `tp` is above 1.
    `transformer` is verl's `override_transformer_config`, `ddp` its `override_ddp_config`: any key of megatron-core.
    """

    name: ClassVar[str] = "megatron"
    group: ClassVar[str] = "megatron"
    section: ClassVar[str] = "megatron"
    critic_section: ClassVar[str] = "megatron"

    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int | None = None
    vpp: int | None = None
    sequence_parallel: bool | None = None
    use_distributed_optimizer: bool = True
    vanilla_mbridge: bool = False
    transformer: Mapping[str, object] = field(default_factory=dict)
    ddp: Mapping[str, object] = field(default_factory=dict)

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        TrainingEngine.check_into(self, checks)
        for name in ("tp", "pp", "cp", "ep"):
            checks.size(name, getattr(self, name))
        checks.size("etp", self.etp, optional=True)
        checks.size("vpp", self.vpp, optional=True)
        checks.boolean("sequence_parallel", self.sequence_parallel, optional=True)
        for name in ("use_distributed_optimizer", "vanilla_mbridge"):
            checks.boolean(name, getattr(self, name))
        checks.mapping("transformer", self.transformer)
        checks.mapping("ddp", self.ddp)

    @property
    def effective_etp(self) -> int:
        """Tell the expert tensor parallel size that megatron-core will use."""
        return self.tp if self.etp is None else self.etp


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class FSDP(TrainingEngine):
    """PyTorch's FSDP, first version.

    `sp` is the Ulysses sequence parallel size; `fsdp_size` is how many devices share one copy (-1: all). `use_torch_compile`
    is off: it is what verl's own NPU recipes do.
    """

    name: ClassVar[str] = "fsdp"
    group: ClassVar[str] = "dp"
    section: ClassVar[str] = "fsdp_config"
    critic_section: ClassVar[str] = "fsdp"

    sp: int = 1
    fsdp_size: int = -1
    model_dtype: str = "fp32"
    reshard_after_forward: bool = True
    forward_prefetch: bool = False
    use_torch_compile: bool = False

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        TrainingEngine.check_into(self, checks)
        checks.size("sp", self.sp)
        if self.fsdp_size != -1 or isinstance(self.fsdp_size, bool):
            checks.size("fsdp_size", self.fsdp_size)
        checks.choice("model_dtype", self.model_dtype, MODEL_DTYPES)
        for name in ("reshard_after_forward", "forward_prefetch", "use_torch_compile"):
            checks.boolean(name, getattr(self, name))


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class FSDP2(FSDP):
    """PyTorch's FSDP, second version; `offload_policy` is its own offload of parameters, gradients and optimizer."""

    name: ClassVar[str] = "fsdp2"

    offload_policy: bool = False

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        FSDP.check_into(self, checks)
        checks.boolean("offload_policy", self.offload_policy)
        if self.offload_policy is True and (self.is_param_offloaded or self.is_optimizer_offloaded):
            checks.refuse(
                "offload_policy",
                self.offload_policy,
                "verl switches param_offload and optimizer_offload off beside it: leave out one of the two",
                rule="F7",
            )


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class FSDPTurbo(FSDP2):
    """FSDP-turbo: FSDP2 with plans of its own for sharding, sequence parallelism and recomputation.

    A copy of the model lies on `fully_shard` devices, a sequence on `ulysses`; verl's own `sp` stays 1. `turbo` holds any other
    key of verl's `turbo_config`, dotted, such as "memory.recompute".
    """

    name: ClassVar[str] = "fsdp_turbo"

    fully_shard: int = 1
    ulysses: int = 1
    turbo: Mapping[str, object] = field(default_factory=dict)

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        FSDP2.check_into(self, checks)
        checks.size("fully_shard", self.fully_shard)
        checks.size("ulysses", self.ulysses)
        checks.mapping("turbo", self.turbo)
        if self.sp != 1:
            checks.refuse("sp", self.sp, "FSDP-turbo splits sequences itself: leave sp out and set ulysses", rule="F8")


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class VeOmni(TrainingEngine):
    """VeOmni: FSDP2 with expert parallelism; `sp` is its Ulysses size, `fsdp_size` how many devices share one copy (-1: all)."""

    name: ClassVar[str] = "veomni"
    group: ClassVar[str] = "veomni"
    section: ClassVar[str] = "veomni"
    critic_section: ClassVar[str] = "veomni"

    sp: int = 1
    ep: int = 1
    fsdp_size: int = -1
    forward_prefetch: bool = True

    def check_into(self, checks: FieldChecks) -> None:
        """Note each field that cannot be used."""
        TrainingEngine.check_into(self, checks)
        checks.size("sp", self.sp)
        checks.size("ep", self.ep)
        if self.fsdp_size != -1 or isinstance(self.fsdp_size, bool):
            checks.size("fsdp_size", self.fsdp_size)
        checks.boolean("forward_prefetch", self.forward_prefetch)
        if self.dtype != "bfloat16":
            checks.refuse("dtype", self.dtype, "VeOmni has no such setting: leave it out")


Engine: TypeAlias = Megatron | FSDP | FSDP2 | FSDPTurbo | VeOmni
