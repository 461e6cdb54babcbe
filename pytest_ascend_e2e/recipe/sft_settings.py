"""What the typed fields of a supervised fine-tuning mean in verl's keys (verl 0.9.1, `sft_trainer_engine.yaml`).

Must not know: Hydra's grammar, or which overrides a user wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .engine_settings import fsdp_settings, megatron_settings, optimizer_settings, veomni_settings
from .engines import FSDP, Megatron, VeOmni
from .feature_settings import lora_settings
from .keys import Inputs, Setting, owned

if TYPE_CHECKING:  # sft.py checks its overrides against these settings
    from .sft import SFT


def sft_settings(recipe: SFT, inputs: Inputs) -> Iterator[Setting]:
    """Yield every setting of a supervised fine-tuning."""
    yield owned("data.train_files", inputs.train_files, "dataset")
    yield owned("data.val_files", inputs.val_files, "dataset")
    for name in ("train_batch_size", "micro_batch_size_per_gpu", "max_token_len_per_gpu", "max_length"):
        yield owned(f"data.{name}", getattr(recipe, name), name)
    yield owned("model.path", inputs.model_path, "model")
    yield owned("model.trust_remote_code", recipe.trust_remote_code, "trust_remote_code")
    yield owned("model.use_remove_padding", recipe.use_remove_padding, "use_remove_padding")
    if recipe.lora is not None:
        yield from lora_settings("model", recipe.lora)
    yield from _engine(recipe)
    yield owned("optim.lr", recipe.lr, "lr")
    yield from optimizer_settings("optim", recipe.engine)
    yield from _trainer(recipe, inputs)


def _engine(recipe: SFT) -> Iterator[Setting]:
    engine = recipe.engine
    # The two groups stand for whole sections, which keys of their own then change.
    group = "fsdp" if isinstance(engine, FSDP) else engine.group
    yield Setting(key="engine", value=group)
    yield Setting(key="optim", value=group)
    if isinstance(engine, FSDP):
        yield owned("engine.strategy", engine.name, "engine")
    yield owned("engine.param_offload", engine.is_param_offloaded, "engine.param_offload")
    yield owned("engine.optimizer_offload", engine.is_optimizer_offloaded, "engine.optimizer_offload")
    if isinstance(engine, VeOmni):
        yield from veomni_settings("engine", engine, "engine")
        return
    yield owned("engine.dtype", engine.dtype, "engine.dtype")
    if isinstance(engine, Megatron):
        yield from megatron_settings("engine", engine, "engine")
    else:
        yield from fsdp_settings("engine", engine, "engine")


def _trainer(recipe: SFT, inputs: Inputs) -> Iterator[Setting]:
    yield owned("trainer.total_training_steps", recipe.steps, "steps")
    yield owned("trainer.n_gpus_per_node", recipe.processes(inputs.n_gpus_per_node), "processes_per_node")
    yield owned("trainer.nnodes", inputs.nnodes, "the case's nodes")
    # An epoch has at least one step, so this many are enough.
    yield Setting(key="trainer.total_epochs", value=recipe.steps)
    yield Setting(key="trainer.logger", value=("console", "file"))
    yield Setting(key="trainer.project_name", value="ascend-e2e")
    yield Setting(key="trainer.experiment_name", value=recipe.short_name)
    yield Setting(key="trainer.test_freq", value=-1)
    yield Setting(key="trainer.save_freq", value=-1)
    # verl would otherwise go on from whatever an earlier run left.
    yield Setting(key="trainer.resume_mode", value="disable")
