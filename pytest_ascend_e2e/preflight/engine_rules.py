"""Rules on the training engines (M: Megatron, F: FSDP and VeOmni), by verl's own keys. Must not know: recipes."""

from __future__ import annotations

from collections.abc import Iterator

from ..recipe import ACTOR, MODEL, REFERENCE
from .findings import FSDP_STRATEGIES, ConfigRule, Finding, Values

# The actor's section of Megatron, and that of the trainer for fine-tuning.
_MEGATRON = (f"{ACTOR}.megatron", "engine")
# verl: the engines registered for NPUs, workers/engine/.
_STRATEGIES = (*FSDP_STRATEGIES, "megatron", "veomni", "torchtitan")
_ROUTER_REPLAY_MODES = ("disabled", "R2", "R3")
_RECOMPUTE_METHODS = ("uniform", "block")
# A simulation switches packing off, whatever the recipe asks for.
_NOT_SIMULATED = (
    "cannot be simulated: verl splits packed sequences only, and packing needs the flash attention of a device; "
    "leave it out, or run the case on a runner with NPUs"
)
_NOT_PACKED = "needs use_remove_padding=True; verl splits packed sequences only"
_SIZES = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
    "virtual_pipeline_model_parallel_size",
)
# verl: workers/config/optimizer.py, McoreOptimizerConfig.
_STATE_DTYPES = ("fp32", "float32", "32", "bf16", "bfloat16")


def _recompute(values: Values) -> Iterator[Finding]:
    for section in (*_MEGATRON, f"{REFERENCE}.megatron"):
        transformer = f"{section}.override_transformer_config"
        granularity, method, layers = (f"{transformer}.recompute_{name}" for name in ("granularity", "method", "num_layers"))
        followed = granularity.replace(REFERENCE, ACTOR)
        if followed != granularity and values.get(followed) == values.get(granularity):
            continue
        if values.get(granularity) == "full":
            if values.get(method) not in _RECOMPUTE_METHODS:
                given = values.get(method)
                text = f"{values.said(granularity)} needs recompute_method, not {given!r}; set 'uniform' or 'block'"
                yield Finding(rule="M11", text=text)
            if values.number(layers) is None:
                yield Finding(rule="M11", text=f"{values.said(granularity)} needs recompute_num_layers; set 1")
        elif values.get(granularity) == "selective" and values.get(layers) is not None:
            text = f"{values.said(layers)} cannot stand beside recompute_granularity 'selective'; leave it out"
            yield Finding(rule="M11", text=text)


def _sequence_parallel(values: Values) -> Iterator[Finding]:
    for section in _MEGATRON:
        key, tp = f"{section}.sequence_parallel", f"{section}.tensor_model_parallel_size"
        if values.get(key) is True and values.is_asked(key) and values.number(tp) == 1:
            text = f"{values.said(key)} with tp 1: verl switches it off; leave it out, or set tp=2"
            yield Finding(rule="M12", text=text, is_error=False)


def _bridge(values: Values) -> Iterator[Finding]:
    for section in _MEGATRON:
        key = f"{section}.use_mbridge"
        if values.get(key) is False:
            text = f"{values.said(key)}: verl 0.9.1 builds Megatron models through a bridge only; leave it out"
            yield Finding(rule="M13", text=text)
        key = f"{section}.vanilla_mbridge"
        if values.get(key) is True:
            text = f"{values.said(key)}: verl will remove the old bridge; False needs the package megatron.bridge"
            yield Finding(rule="M14", text=text, is_error=False)


def _dtype(values: Values) -> Iterator[Finding]:
    if values.strategy != "megatron":
        return
    for section in _MEGATRON:
        key = f"{section}.dtype"
        if values.get(key) not in (None, "bfloat16", "float16"):
            yield Finding(rule="M13", text=f"{values.said(key)} is no dtype of Megatron in verl; set 'bfloat16' or 'float16'")


def _one_layout(values: Values) -> Iterator[Finding]:
    for role in values.roles():
        for name in _SIZES:
            key, actor = f"{role}.megatron.{name}", f"{ACTOR}.megatron.{name}"
            if key in values.flat and actor in values.flat and values.get(key) != values.get(actor):
                text = (
                    f"{values.said(key)} beside {values.origin(actor)} = {values.get(actor)!r}; megatron-core has one layout in a "
                    "process, and the role that is built first would silently give its own to the others; set one value"
                )
                yield Finding(rule="M15", text=text)


def _router_replay(values: Values) -> Iterator[Finding]:
    for section in (f"{ACTOR}.megatron", f"{ACTOR}.veomni", ACTOR):
        key = f"{section}.router_replay.mode"
        mode = values.get(key)
        if mode is not None and mode not in _ROUTER_REPLAY_MODES:
            accepted = ", ".join(_ROUTER_REPLAY_MODES)
            yield Finding(rule="M19", text=f"{values.said(key)} is no mode of router replay; accepted are {accepted}")
        if mode == "R2" and values.get("algorithm.rollout_correction.bypass_mode") is True:
            text = f"{values.said(key)} records routes in a pass that rollout_correction.bypass_mode leaves out; set one of the two"
            yield Finding(rule="M19", text=text)
    key = f"{ACTOR}.veomni.router_replay.mode"
    if values.get(key) not in (None, "disabled") and values.get(f"{MODEL}.use_remove_padding") is False:
        yield Finding(rule="F9", text=f"{values.said(key)} needs use_remove_padding=True")


def _dynamic_context(values: Values) -> Iterator[Finding]:
    section = f"{ACTOR}.megatron"
    key = f"{section}.dynamic_context_parallel"
    if values.get(key) is not True:
        return
    if values.get(f"{MODEL}.use_remove_padding") is False:
        yield Finding(rule="M20", text=f"{values.said(key)} needs use_remove_padding=True")
    if values.get(f"{section}.virtual_pipeline_model_parallel_size") is not None:
        yield Finding(rule="M20", text=f"{values.said(key)} cannot stand beside engine.vpp; leave vpp out")
    if values.get(f"{section}.pad_to_length") is True:
        yield Finding(rule="M20", text=f"{values.said(key)} cannot stand beside pad_to_length; leave one of the two out")
    if (values.number(f"{section}.max_seqlen_per_dp_cp_rank") or 0) < 1:
        yield Finding(rule="M20", text=f"{values.said(key)} needs max_seqlen_per_dp_cp_rank; set the longest sequence of a device")


def _strategy(values: Values) -> Iterator[Finding]:
    for key in (f"{ACTOR}.strategy", "engine.strategy"):
        if values.get(key) is not None and values.get(key) not in _STRATEGIES:
            yield Finding(rule="F1", text=f"{values.said(key)} is no engine of verl; accepted are {', '.join(_STRATEGIES)}")


def _packed_sequences(values: Values) -> Iterator[Finding]:
    if values.get(f"{MODEL}.use_remove_padding") is not False:
        return
    names = ("fsdp_config.ulysses_sequence_parallel_size", "ulysses_sequence_parallel_size", "veomni.ulysses_parallel_size")
    for key in (f"{ACTOR}.{name}" for name in names):
        if values.size(key) > 1:
            why = _NOT_SIMULATED if values.get("trainer.device") == "cpu" else _NOT_PACKED
            yield Finding(rule="F3", text=f"{values.said(key)} {why}")


def _unread_dtype(values: Values) -> Iterator[Finding]:
    for section in (f"{ACTOR}.fsdp_config", "engine"):
        key = f"{section}.dtype"
        is_unread = values.strategy in FSDP_STRATEGIES and values.get(f"{section}.mixed_precision.param_dtype") is None
        if is_unread and values.get(key) not in (None, "bfloat16"):
            text = f"{values.said(key)} is never read by FSDP; override mixed_precision.param_dtype of its section instead"
            yield Finding(rule="F11", text=text, is_error=False)


def _critic_sequence(values: Values) -> Iterator[Finding]:
    key = "critic.ulysses_sequence_parallel_size"
    if values.size(key) > 1:
        text = f"{values.said(key)} is never read; set critic.fsdp.ulysses_sequence_parallel_size, or engine.sp"
        yield Finding(rule="F6", text=text, is_error=False)


def _optimizer(values: Values) -> Iterator[Finding]:
    for section in (f"{ACTOR}.optim", "critic.optim", "optim"):
        key = f"{section}.lr_scheduler_type"
        if values.strategy in FSDP_STRATEGIES and values.get(key) not in (None, "constant", "cosine"):
            yield Finding(rule="F10", text=f"{values.said(key)} is no schedule of an FSDP optimizer; set 'constant' or 'cosine'")
        for name in ("main_grads_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"):
            key = f"{section}.{name}"
            if values.get(key) is not None and str(values.get(key)) not in _STATE_DTYPES:
                yield Finding(rule="F10", text=f"{values.said(key)} is no dtype of Megatron's optimizer; set 'fp32' or 'bf16'")


ENGINE_RULES: tuple[ConfigRule, ...] = (
    _recompute,
    _sequence_parallel,
    _bridge,
    _dtype,
    _one_layout,
    _router_replay,
    _dynamic_context,
    _strategy,
    _packed_sequences,
    _unread_dtype,
    _critic_sequence,
    _optimizer,
)
