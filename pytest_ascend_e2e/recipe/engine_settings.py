"""What the fields of a training engine mean in the section of verl that configures it, whichever role or trainer has it.

Must not know: roles other than by the name of their section, or which overrides a user wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

from .engines import FSDP, FSDP2, Engine, FSDPTurbo, Megatron, VeOmni
from .keys import REFERENCE, TRANSFORMER, Setting, owned


def megatron_settings(section: str, engine: Megatron, owner: str) -> Iterator[Setting]:
    """Yield the settings of Megatron in an engine's section; those of its transformer the reference model has from the actor."""
    for key, name in (
        ("tensor_model_parallel_size", "tp"),
        ("pipeline_model_parallel_size", "pp"),
        ("context_parallel_size", "cp"),
        ("expert_model_parallel_size", "ep"),
        ("expert_tensor_parallel_size", "etp"),
        ("virtual_pipeline_model_parallel_size", "vpp"),
        ("sequence_parallel", "sequence_parallel"),
        ("use_distributed_optimizer", "use_distributed_optimizer"),
        ("vanilla_mbridge", "vanilla_mbridge"),
    ):
        yield owned(f"{section}.{key}", getattr(engine, name), f"{owner}.{name}")
    yield Setting(key=f"{section}.use_mbridge", value=True)
    for key, value in engine.ddp.items():
        yield Setting(key=f"{section}.override_ddp_config.{key}", value=value, field=f"{owner}.ddp[{key!r}]", mark="++")
    if section.startswith(f"{REFERENCE}."):
        return
    for key, value in engine.transformer.items():
        yield Setting(key=f"{section}.{TRANSFORMER}.{key}", value=value, field=f"{owner}.transformer[{key!r}]", mark="++")


def fsdp_settings(section: str, engine: FSDP, owner: str) -> Iterator[Setting]:
    """Yield the settings of FSDP, FSDP2 and FSDP-turbo in an engine's section."""
    yield owned(f"{section}.ulysses_sequence_parallel_size", engine.sp, f"{owner}.sp")
    for name in ("fsdp_size", "model_dtype", "reshard_after_forward", "forward_prefetch", "use_torch_compile"):
        yield owned(f"{section}.{name}", getattr(engine, name), f"{owner}.{name}")
    if isinstance(engine, FSDP2):
        yield owned(f"{section}.offload_policy", engine.offload_policy, f"{owner}.offload_policy")
    if isinstance(engine, FSDPTurbo):
        distributed = f"{section}.turbo_config.distributed"
        yield owned(f"{distributed}.fully_shard_parallel_size", engine.fully_shard, f"{owner}.fully_shard")
        yield owned(f"{distributed}.ulysses_parallel_size", engine.ulysses, f"{owner}.ulysses")
        for key, value in engine.turbo.items():
            yield Setting(key=f"{section}.turbo_config.{key}", value=value, field=f"{owner}.turbo[{key!r}]", mark="++")


def veomni_settings(section: str, engine: VeOmni, owner: str) -> Iterator[Setting]:
    """Yield the settings of VeOmni in an engine's section."""
    yield owned(f"{section}.ulysses_parallel_size", engine.sp, f"{owner}.sp")
    yield owned(f"{section}.expert_parallel_size", engine.ep, f"{owner}.ep")
    yield owned(f"{section}.fsdp_size", engine.fsdp_size, f"{owner}.fsdp_size")
    yield owned(f"{section}.forward_prefetch", engine.forward_prefetch, f"{owner}.forward_prefetch")


def optimizer_settings(section: str, engine: Engine) -> Iterator[Setting]:
    """Yield what an engine asks of its optimizer."""
    for key, value in engine.optimizer.items():
        yield Setting(key=f"{section}.override_optimizer_config.{key}", value=value, field=f"engine.optimizer[{key!r}]", mark="++")
