"""The recipe: what to train, as one frozen typed object that cannot hold a value no training can have.

Must not know: devices, paths, or processes. The rules here need nothing but the recipe; those that need devices stand in
`layout.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from .algorithms import DAPO, Algorithm, PolicyAlgorithm
from .arguments import told_arguments
from .checking import FieldChecks, settle
from .engines import FSDP, Engine, FSDPTurbo, Megatron, TrainingEngine, VeOmni
from .environment import environment_problems
from .features import Lora, Profiling, SeparateAsync
from .overrides import override_problems
from .rollouts import Rollout, RolloutEngine

# verl: trainer/config/actor/actor.yaml; what it takes where the field is left out.
_DEFAULT_TOKENS_PER_GPU = 16384


@told_arguments
@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """What to train. Field names are verl's own wherever verl has a name; lengths are tokens, `steps` are trainer steps.

    `ppo_mini_batch_size` left out is `train_batch_size`. `seed` goes to the order of the data, the training engine and the
    rollout. `reference` is the engine of the reference model where it is not to be the actor's. `dataset_size` is the number of
    training rows, where it is known. `meant_differences` names each setting in which roles are to compute differently, and says
    why: `{"override_transformer_config.moe_router_dtype": "..."}` between actor and reference, `{"rollout.dtype": "..."}` between
    training and rollout; any other difference is an error of the preflight. `trainer` left out is verl's synchronous one.
    `overrides` are any other keys of verl, nested or dotted; a `+` before the last name of a key appends a field that verl has and
    its YAML lacks. `env` is added to the environment of the training.

    Raises:
        RecipeError: with one text for each problem.
    """

    config_name: ClassVar[Literal["ppo_trainer"]] = "ppo_trainer"
    # What every trainer of reinforcement learning of verl prints at every step; a log without them is no log of a training.
    required_metrics: ClassVar[tuple[str, ...]] = (
        "critic/rewards/mean",
        "actor/grad_norm",
        "response_length/mean",
        "timing_s/step",
    )

    algorithm: Algorithm
    model: str
    dataset: str
    engine: Engine
    rollout: Rollout
    train_batch_size: int
    max_prompt_length: int
    max_response_length: int
    steps: int
    lr: float = 1e-6
    ppo_mini_batch_size: int | None = None
    ppo_micro_batch_size_per_gpu: int | None = 1
    use_dynamic_bsz: bool = False
    ppo_max_token_len_per_gpu: int | None = None
    use_remove_padding: bool = True
    trust_remote_code: bool = False
    shuffle: bool = True
    filter_overlong_prompts: bool = True
    seed: int | None = None
    reference: Engine | None = None
    dataset_size: int | None = None
    lora: Lora | None = None
    profiling: Profiling | None = None
    trainer: SeparateAsync | None = None
    meant_differences: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settle(self, _field_problems(self) or [*_rule_problems(self), *override_problems(self)])

    @property
    def algorithm_name(self) -> str:
        """Tell the name of the algorithm, such as grpo."""
        return self.algorithm.name

    @property
    def rollout_name(self) -> str:
        """Tell the name of the rollout engine, such as vllm."""
        return self.rollout.name

    @property
    def has_reference(self) -> bool:
        """Tell whether verl builds a reference model (verl: trainer/ppo/utils.py, need_reference_policy)."""
        return self.algorithm.use_kl_loss or self.algorithm.use_kl_in_reward

    @property
    def mini_batch_size(self) -> int:
        """Tell the number of prompts of one optimizer step."""
        return self.train_batch_size if self.ppo_mini_batch_size is None else self.ppo_mini_batch_size

    @property
    def updates_per_step(self) -> int:
        """Tell the number of optimizer steps of one trainer step: before the first of them, actor and reference are the same."""
        return -(-self.train_batch_size // self.mini_batch_size) * self.algorithm.ppo_epochs

    @property
    def micro_batch_size(self) -> int | None:
        """Tell the responses of a device in one forward pass, None where verl packs by tokens instead."""
        return None if self.use_dynamic_bsz else self.ppo_micro_batch_size_per_gpu

    @property
    def short_name(self) -> str:
        """Return a name for logs, such as `grpo-Qwen3-8B-fsdp2-vllm`."""
        model = self.model.rstrip("/").rpartition("/")[2]
        return f"{self.algorithm.name}-{model}-{self.engine.name}-{self.rollout.name}"


def _field_problems(recipe: Recipe) -> list[str]:
    checks = FieldChecks(owner="")
    _check_parts(recipe, checks)
    checks.text("model", recipe.model, "Qwen/Qwen3-8B")
    checks.text("dataset", recipe.dataset, "gsm8k")
    for name in ("train_batch_size", "max_prompt_length", "max_response_length", "steps"):
        checks.size(name, getattr(recipe, name))
    for name in ("ppo_mini_batch_size", "ppo_micro_batch_size_per_gpu", "ppo_max_token_len_per_gpu", "dataset_size"):
        checks.size(name, getattr(recipe, name), optional=True)
    checks.size("seed", recipe.seed, minimum=0, optional=True)
    checks.number("lr", recipe.lr, above=0)
    for name in ("use_dynamic_bsz", "use_remove_padding", "trust_remote_code", "shuffle", "filter_overlong_prompts"):
        checks.boolean(name, getattr(recipe, name))
    checks.mapping("overrides", recipe.overrides)
    checks.reasons("meant_differences", recipe.meant_differences)
    return [*checks.problems, *environment_problems(recipe.env)]


def _check_parts(recipe: Recipe, checks: FieldChecks) -> None:
    parts: tuple[tuple[str, type, str], ...] = (
        ("algorithm", PolicyAlgorithm, "GRPO(...), GSPO(...), DAPO(...) or PPO(...)"),
        ("engine", TrainingEngine, "Megatron(...), FSDP(...), FSDP2(...), FSDPTurbo(...) or VeOmni(...)"),
        ("rollout", RolloutEngine, "Vllm(...) or Sglang(...)"),
    )
    for name, kind, expected in parts:
        _check_part(name, getattr(recipe, name), kind, expected, checks)
    if recipe.reference is not None:
        _check_part("reference", recipe.reference, TrainingEngine, "an engine, or None for the actor's own", checks)
    _check_features(recipe, checks)


def _check_part(name: str, part: object, kind: type, expected: str, checks: FieldChecks) -> None:
    if isinstance(part, type) and issubclass(part, kind):
        checks.refuse(name, part.__name__, f"this is the class; write {part.__name__}()")
    elif not isinstance(part, kind):
        checks.refuse(name, part, f"expected {expected}")
    else:
        inner = FieldChecks(owner=name)
        if isinstance(part, (PolicyAlgorithm, TrainingEngine, RolloutEngine)):
            part.check_into(inner)
        checks.problems.extend(inner.problems)


def _check_features(recipe: Recipe, checks: FieldChecks) -> None:
    for name, kind in (("lora", Lora), ("profiling", Profiling), ("trainer", SeparateAsync)):
        part = getattr(recipe, name)
        if part is None:
            continue
        if not isinstance(part, kind):
            checks.refuse(name, part, f"expected {kind.__name__}(...), or None for none")
            continue
        inner = FieldChecks(owner=name)
        part.check_into(inner)
        checks.problems.extend(inner.problems)


def _rule_problems(recipe: Recipe) -> list[str]:
    return [
        *_batch_problems(recipe),
        *_algorithm_problems(recipe),
        *_engine_problems(recipe),
        *_reference_problems(recipe),
        *_feature_problems(recipe),
    ]


def _batch_problems(recipe: Recipe) -> list[str]:
    problems = []
    if recipe.mini_batch_size > recipe.train_batch_size:
        problems.append(
            f"ppo_mini_batch_size: {recipe.mini_batch_size} is more than train_batch_size = {recipe.train_batch_size}; "
            "a mini-batch is part of the batch [B2]"
        )
    if not recipe.use_dynamic_bsz and recipe.ppo_micro_batch_size_per_gpu is None:
        problems.append(
            "ppo_micro_batch_size_per_gpu: None needs use_dynamic_bsz=True; give a number, or let verl pack by tokens [B5]"
        )
    if recipe.dataset_size is not None and recipe.dataset_size < recipe.train_batch_size:
        problems.append(
            f"dataset_size: {recipe.dataset_size} rows are fewer than train_batch_size = {recipe.train_batch_size}, "
            "so no step would ever run; use a smaller batch or more rows [B12]"
        )
    return [*problems, *_token_problems(recipe)]


def _token_problems(recipe: Recipe) -> list[str]:
    if not recipe.use_dynamic_bsz:
        return []
    engine = recipe.engine
    name, parts = _sequence_parts(engine)
    tokens = recipe.ppo_max_token_len_per_gpu or _DEFAULT_TOKENS_PER_GPU
    longest = recipe.max_prompt_length + recipe.max_response_length
    if tokens * parts >= longest:
        return []
    problem = (
        f"ppo_max_token_len_per_gpu: {tokens} x {name} {parts} = {tokens * parts} tokens cannot hold the longest sequence, "
        f"{recipe.max_prompt_length} + {recipe.max_response_length} = {longest}; set at least {-(-longest // parts)} [B7]"
    )
    return [problem]


def _sequence_parts(engine: Engine) -> tuple[str, int]:
    """Return over how many devices a sequence is split, and the field that says so."""
    if isinstance(engine, Megatron):
        return "cp", engine.cp
    return ("ulysses", engine.ulysses) if isinstance(engine, FSDPTurbo) else ("sp", engine.sp)


def _algorithm_problems(recipe: Recipe) -> list[str]:
    algorithm = recipe.algorithm
    if isinstance(algorithm, DAPO) and algorithm.overlong_buffer_len is not None:
        length = algorithm.overlong_buffer_len
        if length > recipe.max_response_length:
            return [
                f"algorithm.overlong_buffer_len: {length} is more than max_response_length = {recipe.max_response_length} [K22]"
            ]
    return []


def _engine_problems(recipe: Recipe) -> list[str]:
    engine = recipe.engine
    if isinstance(engine, (FSDP, VeOmni)) and engine.sp > 1 and not recipe.use_remove_padding:
        return [f"engine.sp: {engine.sp} needs use_remove_padding=True; verl splits packed sequences only [F3]"]
    return []


def _feature_problems(recipe: Recipe) -> list[str]:
    problems = []
    if recipe.lora is not None and not isinstance(recipe.engine, FSDP):
        name = type(recipe.engine).__name__
        problems.append(f"lora: {name} does not read these fields; use FSDP(...) or FSDP2(...), or overrides of model.lora [K18]")
    if recipe.trainer is not None:
        step, mini = recipe.trainer.parameter_sync_step, recipe.mini_batch_size
        if recipe.train_batch_size != step * mini:
            problems.append(
                f"train_batch_size: {recipe.train_batch_size} must be trainer.parameter_sync_step {step} x ppo_mini_batch_size "
                f"{mini} = {step * mini} for SeparateAsync; set train_batch_size={step * mini} [B10]"
            )
    return problems


def _reference_problems(recipe: Recipe) -> list[str]:
    reference, engine = recipe.reference, recipe.engine
    if reference is None:
        return []
    if not recipe.has_reference:
        return ["reference: verl builds none for this recipe; set algorithm.use_kl_loss or use_kl_in_reward, or leave it out [K1]"]
    if reference.name != engine.name:
        return [
            f"reference: {type(reference).__name__} beside engine {type(engine).__name__}; verl has one kind for all roles [K19]"
        ]
    if not isinstance(reference, Megatron) or not isinstance(engine, Megatron):
        return []
    differing = [name for name in ("tp", "pp", "cp", "ep", "etp", "vpp") if getattr(reference, name) != getattr(engine, name)]
    return [
        f"reference.{name}: {getattr(reference, name)!r} beside engine.{name} = {getattr(engine, name)!r}; megatron-core has one "
        "layout in a process, and the reference, which is built first, would silently give its own to the actor [M15]"
        for name in differing
    ]
