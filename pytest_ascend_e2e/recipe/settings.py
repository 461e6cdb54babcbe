"""What the typed fields of a recipe mean in verl's keys: the only table of its kind.

A setting is either typed (a field of the recipe owns the key, so an override of it is refused) or derived (a sensible value that
an override may replace). Keys and their meaning are those of verl 0.9.1, `verl/trainer/config/`.

Must not know: Hydra's grammar, or which overrides a user wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from .algorithms import DAPO, GRPO, POLICY_KEYS, PPO
from .engines import FSDP, FSDP2, Engine, Megatron
from .rollouts import Sglang

if TYPE_CHECKING:  # recipe.py checks its overrides against these settings
    from .recipe import Recipe

ACTOR = "actor_rollout_ref.actor"
REFERENCE = "actor_rollout_ref.ref"
ROLLOUT = "actor_rollout_ref.rollout"
MODEL = "actor_rollout_ref.model"
TRANSFORMER = "override_transformer_config"


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """What a recipe leaves open: where the model and the data are, and how many devices there are."""

    model_path: str
    train_files: str
    val_files: str
    n_gpus_per_node: int
    nnodes: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One key of verl with its value.

    `field` is the field that owns it, empty for a derived value; `is_written` is False where a field owns the key and leaves it
    to verl; `mark` is Hydra's append mark.
    """

    key: str
    value: object = None
    field: str = ""
    mark: str = ""
    is_written: bool = True


def settings_of(recipe: Recipe, inputs: Inputs) -> Iterator[Setting]:
    """Yield every setting of a recipe, typed ones first for each part."""
    yield from _algorithm(recipe)
    yield from _data(recipe, inputs)
    yield from _model(recipe, inputs)
    yield from _batches(recipe)
    yield from _actor_engine(recipe)
    yield from _rollout(recipe)
    yield from _reference(recipe)
    yield from _critic(recipe, inputs)
    yield from _seeds(recipe)
    yield from _trainer(recipe, inputs)


def _owned(key: str, value: object, field: str) -> Setting:
    return Setting(key=key, value=value, field=field, is_written=value is not None)


def _algorithm(recipe: Recipe) -> Iterator[Setting]:
    algorithm = recipe.algorithm
    yield _owned("algorithm.adv_estimator", algorithm.estimator, "algorithm")
    yield _owned(f"{ACTOR}.policy_loss.loss_mode", algorithm.loss_mode, "algorithm")
    for name, key in POLICY_KEYS.items():
        yield _owned(key, getattr(algorithm, name), f"algorithm.{name}")
    yield Setting(key=f"{ACTOR}.clip_ratio", field="algorithm.clip_ratio_low and algorithm.clip_ratio_high", is_written=False)
    if isinstance(algorithm, GRPO):
        yield _owned("algorithm.norm_adv_by_std_in_grpo", algorithm.norm_adv_by_std_in_grpo, "algorithm.norm_adv_by_std_in_grpo")
    if isinstance(algorithm, DAPO):
        yield from _dapo(algorithm, recipe.max_response_length)
    if isinstance(algorithm, PPO):
        yield _owned("algorithm.gamma", algorithm.gamma, "algorithm.gamma")
        yield _owned("algorithm.lam", algorithm.lam, "algorithm.lam")
        yield _owned("trainer.critic_warmup", algorithm.critic_warmup, "algorithm.critic_warmup")


def _dapo(algorithm: DAPO, max_response_length: int) -> Iterator[Setting]:
    groups = "algorithm.filter_groups"
    yield _owned(f"{groups}.enable", algorithm.filter_groups, groups)
    yield _owned(f"{groups}.metric", algorithm.filter_groups_metric, "algorithm.filter_groups_metric")
    yield _owned(f"{groups}.max_inflight_gen_batches", algorithm.max_inflight_gen_batches, "algorithm.max_inflight_gen_batches")
    # verl's reward manager of this name is the one that knows the penalty and hands out "acc".
    yield Setting(key="reward.reward_manager.name", value="dapo")
    if algorithm.overlong_buffer_len is None:
        return
    buffer = "reward.reward_kwargs.overlong_buffer_cfg"
    owner = "algorithm.overlong_buffer_len"
    for key, value, field in (
        (f"{buffer}.enable", True, owner),
        (f"{buffer}.len", algorithm.overlong_buffer_len, owner),
        (f"{buffer}.penalty_factor", algorithm.overlong_penalty_factor, "algorithm.overlong_penalty_factor"),
        ("reward.reward_kwargs.max_resp_len", max_response_length, "max_response_length"),
    ):
        yield Setting(key=key, value=value, field=field, mark="++")
    yield Setting(key=f"{buffer}.log", value=False, mark="++")


def _data(recipe: Recipe, inputs: Inputs) -> Iterator[Setting]:
    yield _owned("data.train_files", inputs.train_files, "dataset")
    yield _owned("data.val_files", inputs.val_files, "dataset")
    for name in (
        "train_batch_size",
        "max_prompt_length",
        "max_response_length",
        "shuffle",
        "filter_overlong_prompts",
        "trust_remote_code",
    ):
        yield _owned(f"data.{name}", getattr(recipe, name), name)


def _model(recipe: Recipe, inputs: Inputs) -> Iterator[Setting]:
    yield _owned(f"{MODEL}.path", inputs.model_path, "model")
    yield _owned(f"{MODEL}.trust_remote_code", recipe.trust_remote_code, "trust_remote_code")
    yield _owned(f"{MODEL}.use_remove_padding", recipe.use_remove_padding, "use_remove_padding")


def _batches(recipe: Recipe) -> Iterator[Setting]:
    yield _owned(f"{ACTOR}.optim.lr", recipe.lr, "lr")
    yield _owned(f"{ACTOR}.ppo_mini_batch_size", recipe.mini_batch_size, "ppo_mini_batch_size")
    yield _owned(f"{ACTOR}.use_dynamic_bsz", recipe.use_dynamic_bsz, "use_dynamic_bsz")
    yield _owned(f"{ACTOR}.ppo_micro_batch_size_per_gpu", recipe.micro_batch_size, "ppo_micro_batch_size_per_gpu")
    yield _owned(f"{ACTOR}.ppo_max_token_len_per_gpu", recipe.ppo_max_token_len_per_gpu, "ppo_max_token_len_per_gpu")
    yield Setting(key=f"{ACTOR}.ppo_micro_batch_size", field="ppo_micro_batch_size_per_gpu", is_written=False)
    yield from _log_prob_batches(recipe, ROLLOUT)


def _log_prob_batches(recipe: Recipe, role: str) -> Iterator[Setting]:
    # A worker refuses two values of this key (verl: engine_workers.py), so one field owns all of them.
    yield _owned(f"{role}.log_prob_use_dynamic_bsz", recipe.use_dynamic_bsz, "use_dynamic_bsz")
    if recipe.micro_batch_size is not None:
        yield Setting(key=f"{role}.log_prob_micro_batch_size_per_gpu", value=recipe.micro_batch_size)
    if recipe.ppo_max_token_len_per_gpu is not None:
        yield Setting(key=f"{role}.log_prob_max_token_len_per_gpu", value=recipe.ppo_max_token_len_per_gpu)


def _actor_engine(recipe: Recipe) -> Iterator[Setting]:
    engine = recipe.engine
    group = engine.group if isinstance(engine, Megatron) else None
    yield _owned("model_engine", group, "engine")
    yield _owned(f"{ACTOR}.strategy", engine.name, "engine")
    yield from _engine(f"{ACTOR}.{engine.section}", engine, "engine", use_remove_padding=recipe.use_remove_padding)
    yield from _optimizer(f"{ACTOR}.optim", engine)
    if isinstance(engine, FSDP):
        yield _owned(f"{ACTOR}.use_torch_compile", engine.use_torch_compile, "engine.use_torch_compile")
        yield Setting(key=f"{ACTOR}.ulysses_sequence_parallel_size", field="engine.sp", is_written=False)


def _engine(section: str, engine: Engine, owner: str, *, use_remove_padding: bool, has_optimizer: bool = True) -> Iterator[Setting]:
    yield _owned(f"{section}.param_offload", engine.is_param_offloaded, f"{owner}.param_offload")
    if has_optimizer:
        yield _owned(f"{section}.optimizer_offload", engine.is_optimizer_offloaded, f"{owner}.optimizer_offload")
    yield _owned(f"{section}.dtype", engine.dtype, f"{owner}.dtype")
    if isinstance(engine, Megatron):
        yield from _megatron(section, engine, owner)
        yield _owned(f"{section}.use_remove_padding", use_remove_padding, "use_remove_padding")
    else:
        yield from _fsdp(section, engine, owner)


def _megatron(section: str, engine: Megatron, owner: str) -> Iterator[Setting]:
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
        yield _owned(f"{section}.{key}", getattr(engine, name), f"{owner}.{name}")
    yield Setting(key=f"{section}.use_mbridge", value=True, field=owner)
    for key, value in engine.ddp.items():
        yield Setting(key=f"{section}.override_ddp_config.{key}", value=value, field=f"{owner}.ddp[{key!r}]", mark="++")
    if section.startswith(f"{REFERENCE}."):
        return
    for key, value in engine.transformer.items():
        yield Setting(key=f"{section}.{TRANSFORMER}.{key}", value=value, field=f"{owner}.transformer[{key!r}]", mark="++")


def _fsdp(section: str, engine: FSDP, owner: str) -> Iterator[Setting]:
    yield _owned(f"{section}.ulysses_sequence_parallel_size", engine.sp, f"{owner}.sp")
    for name in ("fsdp_size", "model_dtype", "reshard_after_forward", "forward_prefetch", "use_torch_compile"):
        yield _owned(f"{section}.{name}", getattr(engine, name), f"{owner}.{name}")
    if isinstance(engine, FSDP2):
        yield _owned(f"{section}.offload_policy", engine.offload_policy, f"{owner}.offload_policy")


def _optimizer(section: str, engine: Engine) -> Iterator[Setting]:
    for key, value in engine.optimizer.items():
        yield Setting(key=f"{section}.override_optimizer_config.{key}", value=value, field=f"engine.optimizer[{key!r}]", mark="++")


def _rollout(recipe: Recipe) -> Iterator[Setting]:
    rollout = recipe.rollout
    yield _owned(f"{ROLLOUT}.name", rollout.name, "rollout")
    names = {"tp": "tensor_model_parallel_size", "dp": "data_parallel_size", "ep": "expert_parallel_size"}
    for field in fields(rollout):
        if field.name not in ("engine_kwargs", "attention_backend"):
            yield _owned(f"{ROLLOUT}.{names.get(field.name, field.name)}", getattr(rollout, field.name), f"rollout.{field.name}")
    section = f"{ROLLOUT}.engine_kwargs.{rollout.name}"
    if isinstance(rollout, Sglang):
        yield Setting(
            key=f"{section}.attention_backend", value=rollout.attention_backend, field="rollout.attention_backend", mark="++"
        )
    for key, value in rollout.engine_kwargs.items():
        yield Setting(key=f"{section}.{key}", value=value, field=f"rollout.engine_kwargs[{key!r}]", mark="++")


def _reference(recipe: Recipe) -> Iterator[Setting]:
    if not recipe.has_reference:
        return
    engine = recipe.reference or recipe.engine
    owner = "engine" if recipe.reference is None else "reference"
    section = f"{REFERENCE}.{engine.section}"
    yield _owned(f"{REFERENCE}.strategy", engine.name, owner)
    yield from _engine(section, engine, owner, use_remove_padding=recipe.use_remove_padding, has_optimizer=False)
    if isinstance(engine, Megatron):
        # verl's YAML holds an interpolation here: a single key below it would cut the rest off.
        own = None if recipe.reference is None else dict(engine.transformer)
        value = own if own is not None else "${" + f"{ACTOR}.{engine.section}.{TRANSFORMER}" + "}"
        yield _owned(f"{section}.{TRANSFORMER}", value, f"{owner}.transformer")
    else:
        yield _owned(f"{REFERENCE}.use_torch_compile", engine.use_torch_compile, f"{owner}.use_torch_compile")
        yield Setting(key=f"{REFERENCE}.ulysses_sequence_parallel_size", field=f"{owner}.sp", is_written=False)
    yield from _log_prob_batches(recipe, REFERENCE)


def _critic(recipe: Recipe, inputs: Inputs) -> Iterator[Setting]:
    algorithm, engine = recipe.algorithm, recipe.engine
    if not isinstance(algorithm, PPO):
        return
    yield _owned("critic.optim.lr", algorithm.critic_lr, "algorithm.critic_lr")
    yield _owned("critic.cliprange_value", algorithm.cliprange_value, "algorithm.cliprange_value")
    yield _owned("critic.model.path", inputs.model_path, "model")
    yield _owned("critic.model.trust_remote_code", recipe.trust_remote_code, "trust_remote_code")
    yield _owned("critic.model.use_remove_padding", recipe.use_remove_padding, "use_remove_padding")
    yield _owned("critic.strategy", engine.name, "engine")
    yield from _engine(f"critic.{engine.critic_section}", engine, "engine", use_remove_padding=recipe.use_remove_padding)
    yield from _optimizer("critic.optim", engine)
    yield _owned("critic.use_dynamic_bsz", recipe.use_dynamic_bsz, "use_dynamic_bsz")
    if recipe.micro_batch_size is not None:
        yield Setting(key="critic.ppo_micro_batch_size_per_gpu", value=recipe.micro_batch_size)
    if recipe.ppo_max_token_len_per_gpu is not None:
        yield Setting(key="critic.ppo_max_token_len_per_gpu", value=recipe.ppo_max_token_len_per_gpu)
    yield Setting(key="critic.ppo_micro_batch_size", field="ppo_micro_batch_size_per_gpu", is_written=False)
    # verl 0.9.1 never reads the critic's own field of this name, only its engine's.
    yield Setting(key="critic.ulysses_sequence_parallel_size", field="engine.sp", is_written=False)


def _seeds(recipe: Recipe) -> Iterator[Setting]:
    yield _owned("data.seed", recipe.seed, "seed")
    yield _owned(f"{ACTOR}.data_loader_seed", recipe.seed, "seed")
    yield _owned(f"{ACTOR}.{recipe.engine.section}.seed", recipe.seed, "seed")
    yield _owned(f"{ROLLOUT}.seed", recipe.seed, "seed")
    if recipe.has_reference:
        yield _owned(f"{REFERENCE}.{recipe.engine.section}.seed", recipe.seed, "seed")
    if recipe.algorithm.has_critic:
        yield _owned("critic.data_loader_seed", recipe.seed, "seed")
        yield _owned(f"critic.{recipe.engine.critic_section}.seed", recipe.seed, "seed")


def _trainer(recipe: Recipe, inputs: Inputs) -> Iterator[Setting]:
    yield _owned("trainer.total_training_steps", recipe.steps, "steps")
    yield _owned("trainer.n_gpus_per_node", inputs.n_gpus_per_node, "the case's runner")
    yield _owned("trainer.nnodes", inputs.nnodes, "the case's nodes")
    # An epoch has at least one step, so this many are enough; verl ends early and silently where they are not.
    yield Setting(key="trainer.total_epochs", value=recipe.steps)
    yield Setting(key="trainer.logger", value=("console", "file"))
    yield Setting(key="trainer.project_name", value="ascend-e2e")
    yield Setting(key="trainer.experiment_name", value=recipe.short_name)
    yield Setting(key="trainer.val_before_train", value=False)
    yield Setting(key="trainer.test_freq", value=-1)
    yield Setting(key="trainer.save_freq", value=-1)
    # verl would otherwise go on from whatever an earlier run left.
    yield Setting(key="trainer.resume_mode", value="disable")
