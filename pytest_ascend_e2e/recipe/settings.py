"""What the typed fields of a recipe mean in verl's keys: the only table of its kind.

A setting is either typed (a field of the recipe owns the key, so an override of it is refused) or derived (a sensible value that
an override may replace). Keys and their meaning are those of verl 0.9.1, `verl/trainer/config/`.

Must not know: Hydra's grammar, or which overrides a user wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from .algorithms import DAPO, GRPO, POLICY_KEYS, PPO
from .engine_settings import fsdp_settings, megatron_settings, optimizer_settings, veomni_settings
from .engines import FSDP, Engine, Megatron, VeOmni
from .feature_settings import feature_settings
from .keys import ACTOR, MODEL, REFERENCE, ROLLOUT, TRANSFORMER, Inputs, Setting, owned
from .rollouts import Sglang
from .sft_settings import sft_settings

if TYPE_CHECKING:  # recipe.py and sft.py check their overrides against these settings
    from .recipe import Recipe
    from .sft import SFT


def settings_of(recipe: Recipe | SFT, inputs: Inputs) -> Iterator[Setting]:
    """Yield every setting of a recipe, typed ones first for each part."""
    if recipe.config_name == "sft_trainer_engine":
        yield from sft_settings(recipe, inputs)
    else:
        yield from _reinforcement_settings(recipe, inputs)


def _reinforcement_settings(recipe: Recipe, inputs: Inputs) -> Iterator[Setting]:
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
    yield from feature_settings(recipe, inputs)


def _algorithm(recipe: Recipe) -> Iterator[Setting]:
    algorithm = recipe.algorithm
    yield owned("algorithm.adv_estimator", algorithm.estimator, "algorithm")
    yield owned(f"{ACTOR}.policy_loss.loss_mode", algorithm.loss_mode, "algorithm")
    for name, key in POLICY_KEYS.items():
        yield owned(key, getattr(algorithm, name), f"algorithm.{name}")
    yield Setting(key=f"{ACTOR}.clip_ratio", field="algorithm.clip_ratio_low and algorithm.clip_ratio_high", is_written=False)
    if isinstance(algorithm, GRPO):
        yield owned("algorithm.norm_adv_by_std_in_grpo", algorithm.norm_adv_by_std_in_grpo, "algorithm.norm_adv_by_std_in_grpo")
    if isinstance(algorithm, DAPO):
        yield from _dapo(algorithm, recipe.max_response_length)
    if isinstance(algorithm, PPO):
        yield owned("algorithm.gamma", algorithm.gamma, "algorithm.gamma")
        yield owned("algorithm.lam", algorithm.lam, "algorithm.lam")
        yield owned("trainer.critic_warmup", algorithm.critic_warmup, "algorithm.critic_warmup")


def _dapo(algorithm: DAPO, max_response_length: int) -> Iterator[Setting]:
    groups = "algorithm.filter_groups"
    yield owned(f"{groups}.enable", algorithm.filter_groups, groups)
    yield owned(f"{groups}.metric", algorithm.filter_groups_metric, "algorithm.filter_groups_metric")
    yield owned(f"{groups}.max_inflight_gen_batches", algorithm.max_inflight_gen_batches, "algorithm.max_inflight_gen_batches")
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
    yield owned("data.train_files", inputs.train_files, "dataset")
    yield owned("data.val_files", inputs.val_files, "dataset")
    for name in (
        "train_batch_size",
        "max_prompt_length",
        "max_response_length",
        "shuffle",
        "filter_overlong_prompts",
        "trust_remote_code",
    ):
        yield owned(f"data.{name}", getattr(recipe, name), name)


def _model(recipe: Recipe, inputs: Inputs) -> Iterator[Setting]:
    yield owned(f"{MODEL}.path", inputs.model_path, "model")
    yield owned(f"{MODEL}.trust_remote_code", recipe.trust_remote_code, "trust_remote_code")
    yield owned(f"{MODEL}.use_remove_padding", recipe.use_remove_padding, "use_remove_padding")


def _batches(recipe: Recipe) -> Iterator[Setting]:
    yield owned(f"{ACTOR}.optim.lr", recipe.lr, "lr")
    yield owned(f"{ACTOR}.ppo_mini_batch_size", recipe.mini_batch_size, "ppo_mini_batch_size")
    yield owned(f"{ACTOR}.use_dynamic_bsz", recipe.use_dynamic_bsz, "use_dynamic_bsz")
    yield owned(f"{ACTOR}.ppo_micro_batch_size_per_gpu", recipe.micro_batch_size, "ppo_micro_batch_size_per_gpu")
    yield owned(f"{ACTOR}.ppo_max_token_len_per_gpu", recipe.ppo_max_token_len_per_gpu, "ppo_max_token_len_per_gpu")
    yield Setting(key=f"{ACTOR}.ppo_micro_batch_size", field="ppo_micro_batch_size_per_gpu", is_written=False)
    yield from _log_prob_batches(recipe, ROLLOUT)


def _log_prob_batches(recipe: Recipe, role: str) -> Iterator[Setting]:
    # A worker refuses two values of this key (verl: engine_workers.py), so one field owns all of them.
    yield owned(f"{role}.log_prob_use_dynamic_bsz", recipe.use_dynamic_bsz, "use_dynamic_bsz")
    if recipe.micro_batch_size is not None:
        yield Setting(key=f"{role}.log_prob_micro_batch_size_per_gpu", value=recipe.micro_batch_size)
    if recipe.ppo_max_token_len_per_gpu is not None:
        yield Setting(key=f"{role}.log_prob_max_token_len_per_gpu", value=recipe.ppo_max_token_len_per_gpu)


def _actor_engine(recipe: Recipe) -> Iterator[Setting]:
    engine = recipe.engine
    group = None if isinstance(engine, FSDP) else engine.group
    yield owned("model_engine", group, "engine")
    yield owned(f"{ACTOR}.strategy", engine.name, "engine")
    yield from _engine(f"{ACTOR}.{engine.section}", engine, "engine", use_remove_padding=recipe.use_remove_padding)
    yield from optimizer_settings(f"{ACTOR}.optim", engine)
    if isinstance(engine, FSDP):
        yield owned(f"{ACTOR}.use_torch_compile", engine.use_torch_compile, "engine.use_torch_compile")
        yield Setting(key=f"{ACTOR}.ulysses_sequence_parallel_size", field="engine.sp", is_written=False)


def _engine(section: str, engine: Engine, owner: str, *, use_remove_padding: bool, has_optimizer: bool = True) -> Iterator[Setting]:
    yield owned(f"{section}.param_offload", engine.is_param_offloaded, f"{owner}.param_offload")
    if has_optimizer:
        yield owned(f"{section}.optimizer_offload", engine.is_optimizer_offloaded, f"{owner}.optimizer_offload")
    if isinstance(engine, VeOmni):
        yield from veomni_settings(section, engine, owner)
        return
    yield owned(f"{section}.dtype", engine.dtype, f"{owner}.dtype")
    if isinstance(engine, Megatron):
        yield from megatron_settings(section, engine, owner)
        yield owned(f"{section}.use_remove_padding", use_remove_padding, "use_remove_padding")
    else:
        yield from fsdp_settings(section, engine, owner)


def _rollout(recipe: Recipe) -> Iterator[Setting]:
    rollout = recipe.rollout
    yield owned(f"{ROLLOUT}.name", rollout.name, "rollout")
    names = {"tp": "tensor_model_parallel_size", "dp": "data_parallel_size", "ep": "expert_parallel_size"}
    for field in fields(rollout):
        if field.name not in ("engine_kwargs", "attention_backend"):
            yield owned(f"{ROLLOUT}.{names.get(field.name, field.name)}", getattr(rollout, field.name), f"rollout.{field.name}")
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
    yield owned(f"{REFERENCE}.strategy", engine.name, owner)
    yield from _engine(section, engine, owner, use_remove_padding=recipe.use_remove_padding, has_optimizer=False)
    if isinstance(engine, Megatron):
        # verl's YAML holds an interpolation here: a single key below it would cut the rest off.
        own = None if recipe.reference is None else dict(engine.transformer)
        value = own if own is not None else "${" + f"{ACTOR}.{engine.section}.{TRANSFORMER}" + "}"
        yield owned(f"{section}.{TRANSFORMER}", value, f"{owner}.transformer")
    elif isinstance(engine, FSDP):
        yield owned(f"{REFERENCE}.use_torch_compile", engine.use_torch_compile, f"{owner}.use_torch_compile")
        yield Setting(key=f"{REFERENCE}.ulysses_sequence_parallel_size", field=f"{owner}.sp", is_written=False)
    yield from _log_prob_batches(recipe, REFERENCE)


def _critic(recipe: Recipe, inputs: Inputs) -> Iterator[Setting]:
    algorithm, engine = recipe.algorithm, recipe.engine
    if not isinstance(algorithm, PPO):
        return
    yield owned("critic.optim.lr", algorithm.critic_lr, "algorithm.critic_lr")
    yield owned("critic.cliprange_value", algorithm.cliprange_value, "algorithm.cliprange_value")
    yield owned("critic.model.path", inputs.model_path, "model")
    yield owned("critic.model.trust_remote_code", recipe.trust_remote_code, "trust_remote_code")
    yield owned("critic.model.use_remove_padding", recipe.use_remove_padding, "use_remove_padding")
    yield owned("critic.strategy", engine.name, "engine")
    yield from _engine(f"critic.{engine.critic_section}", engine, "engine", use_remove_padding=recipe.use_remove_padding)
    yield from optimizer_settings("critic.optim", engine)
    yield owned("critic.use_dynamic_bsz", recipe.use_dynamic_bsz, "use_dynamic_bsz")
    if recipe.micro_batch_size is not None:
        yield Setting(key="critic.ppo_micro_batch_size_per_gpu", value=recipe.micro_batch_size)
    if recipe.ppo_max_token_len_per_gpu is not None:
        yield Setting(key="critic.ppo_max_token_len_per_gpu", value=recipe.ppo_max_token_len_per_gpu)
    yield Setting(key="critic.ppo_micro_batch_size", field="ppo_micro_batch_size_per_gpu", is_written=False)
    # verl 0.9.1 never reads the critic's own field of this name, only its engine's.
    yield Setting(key="critic.ulysses_sequence_parallel_size", field="engine.sp", is_written=False)


def _seeds(recipe: Recipe) -> Iterator[Setting]:
    yield owned("data.seed", recipe.seed, "seed")
    yield owned(f"{ACTOR}.data_loader_seed", recipe.seed, "seed")
    yield owned(f"{ACTOR}.{recipe.engine.section}.seed", recipe.seed, "seed")
    yield owned(f"{ROLLOUT}.seed", recipe.seed, "seed")
    if recipe.has_reference:
        yield owned(f"{REFERENCE}.{recipe.engine.section}.seed", recipe.seed, "seed")
    if recipe.algorithm.has_critic:
        yield owned("critic.data_loader_seed", recipe.seed, "seed")
        yield owned(f"critic.{recipe.engine.critic_section}.seed", recipe.seed, "seed")


def _trainer(recipe: Recipe, inputs: Inputs) -> Iterator[Setting]:
    yield owned("trainer.total_training_steps", recipe.steps, "steps")
    rollout_devices = 0 if recipe.trainer is None else recipe.trainer.rollout_devices
    yield owned("trainer.n_gpus_per_node", inputs.n_gpus_per_node - rollout_devices, "the case's runner")
    yield owned("trainer.nnodes", inputs.nnodes, "the case's nodes")
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
