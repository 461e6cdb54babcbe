"""Rules on a configuration by verl's own keys, whichever field or override gave a value: they see what no typed field guards.

verl 0.9.1 raises these in its workers, minutes after the devices were taken, or never. A key that is not there is not judged: so
the rules work on a whole configuration and on overrides alone. Must not know: recipes, or how a configuration came about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

ACTOR, REFERENCE, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.ref", "actor_rollout_ref.rollout"
MODEL = "actor_rollout_ref.model"
TRANSFORMER = f"{ACTOR}.megatron.override_transformer_config"
ROUTER_REPLAY_MODES = ("disabled", "R2", "R3")
RECOMPUTE_METHODS = ("uniform", "block")
# vLLM's kernels for adapters, the largest last (verl: vllm_rollout/utils.py, get_vllm_max_lora_rank).
LARGEST_LORA_RANK = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What one rule says of one value; a warning is about what verl silently ignores."""

    rule: str
    text: str
    is_error: bool = True

    def __str__(self) -> str:
        return f"{self.text} [{self.rule}]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Values:
    """A flat configuration, and of each key the field or override that asked for it."""

    flat: Mapping[str, object]
    origins: Mapping[str, str]

    def get(self, key: str) -> object:
        """Return a value, None where the key is not there."""
        return self.flat.get(key)

    def number(self, key: str) -> int | None:
        """Return a whole number, None where there is none."""
        value = self.flat.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def origin(self, key: str) -> str:
        """Return who asked for a key, the key itself where verl's YAML did."""
        return self.origins.get(key) or key

    def said(self, key: str) -> str:
        """Return the beginning of a message: who gave the value, and the value."""
        return f"{self.origin(key)}: {self.flat.get(key)!r}"


def config_findings(flat: Mapping[str, object], origins: Mapping[str, str]) -> list[Finding]:
    """Return what all rules say of a flat configuration or of overrides."""
    values = Values(flat=flat, origins=origins)
    return [finding for rule in RULES for finding in rule(values)]


def _recompute(values: Values) -> Iterator[Finding]:
    granularity = f"{TRANSFORMER}.recompute_granularity"
    method, layers = (f"{TRANSFORMER}.recompute_{name}" for name in ("method", "num_layers"))
    if values.get(granularity) == "full":
        if values.get(method) not in RECOMPUTE_METHODS:
            yield Finding(
                rule="M11",
                text=f"{values.said(granularity)} needs recompute_method, not {values.get(method)!r}; set 'uniform' or 'block'",
            )
        if values.number(layers) is None:
            yield Finding(rule="M11", text=f"{values.said(granularity)} needs recompute_num_layers; set 1")
    elif values.get(granularity) == "selective" and values.get(layers) is not None:
        yield Finding(rule="M11", text=f"{values.said(layers)} cannot stand beside recompute_granularity 'selective'; leave it out")


def _bridge(values: Values) -> Iterator[Finding]:
    key = f"{ACTOR}.megatron.use_mbridge"
    if values.get(key) is False:
        yield Finding(rule="M13", text=f"{values.said(key)}: verl 0.9.1 builds Megatron models through a bridge only; leave it out")


def _router_replay(values: Values) -> Iterator[Finding]:
    for key in (f"{ACTOR}.megatron.router_replay.mode", f"{ACTOR}.veomni.router_replay.mode", f"{ACTOR}.router_replay.mode"):
        mode = values.get(key)
        if mode is not None and mode not in ROUTER_REPLAY_MODES:
            accepted = ", ".join(ROUTER_REPLAY_MODES)
            yield Finding(rule="M19", text=f"{values.said(key)} is no mode of router replay; accepted are {accepted}")
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
    if (values.number(f"{section}.max_seqlen_per_dp_cp_rank") or 0) < 1:
        yield Finding(rule="M20", text=f"{values.said(key)} needs max_seqlen_per_dp_cp_rank; set the longest sequence of a device")


def _strategy(values: Values) -> Iterator[Finding]:
    key = f"{ACTOR}.strategy"
    accepted = ("fsdp", "fsdp2", "fsdp_turbo", "megatron", "veomni", "torchtitan")
    if values.get(key) is not None and values.get(key) not in accepted:
        yield Finding(rule="F1", text=f"{values.said(key)} is no engine of verl; accepted are {', '.join(accepted)}")


def _critic_sequence(values: Values) -> Iterator[Finding]:
    key = "critic.ulysses_sequence_parallel_size"
    if (values.number(key) or 1) > 1:
        text = f"{values.said(key)} is never read; set critic.fsdp.ulysses_sequence_parallel_size, or engine.sp"
        yield Finding(rule="F6", text=text, is_error=False)


def _scheduler(values: Values) -> Iterator[Finding]:
    for role in (ACTOR, "critic"):
        key = f"{role}.optim.lr_scheduler_type"
        is_fsdp = values.get(f"{ACTOR}.strategy") in ("fsdp", "fsdp2", "fsdp_turbo")
        if is_fsdp and values.get(key) not in (None, "constant", "cosine"):
            yield Finding(rule="F10", text=f"{values.said(key)} is no schedule of an FSDP optimizer; set 'constant' or 'cosine'")
    for role in (ACTOR, "critic"):
        key = f"{role}.optim.warmup_style"
        if values.get(key) is not None:
            yield Finding(rule="K11", text=f"{values.said(key)} is deprecated; use lr_scheduler_type", is_error=False)


def _tokens(values: Values) -> Iterator[Finding]:
    prompt, response = values.number("data.max_prompt_length"), values.number("data.max_response_length")
    if prompt is None or response is None:
        return
    split = _sequence_split(values)
    for switch, key in (
        (f"{ROLLOUT}.log_prob_use_dynamic_bsz", f"{ROLLOUT}.log_prob_max_token_len_per_gpu"),
        (f"{REFERENCE}.log_prob_use_dynamic_bsz", f"{REFERENCE}.log_prob_max_token_len_per_gpu"),
        ("critic.use_dynamic_bsz", "critic.ppo_max_token_len_per_gpu"),
    ):
        tokens = values.number(key)
        if values.get(switch) is True and key in values.origins and tokens is not None and tokens * split < prompt + response:
            yield Finding(
                rule="B7",
                text=(
                    f"{values.said(key)} x {split} = {tokens * split} tokens cannot hold the longest sequence, {prompt} + "
                    f"{response} = {prompt + response}; set at least {-(-(prompt + response) // split)}"
                ),
            )


def _sequence_split(values: Values) -> int:
    sizes = (
        f"{ACTOR}.megatron.context_parallel_size",
        f"{ACTOR}.fsdp_config.ulysses_sequence_parallel_size",
        f"{ACTOR}.fsdp_config.turbo_config.distributed.ulysses_parallel_size",
        f"{ACTOR}.veomni.ulysses_parallel_size",
    )
    return max(values.number(key) or 1 for key in sizes)


def _one_kind_of_batches(values: Values) -> Iterator[Finding]:
    one, other = f"{ACTOR}.use_dynamic_bsz", f"{ROLLOUT}.log_prob_use_dynamic_bsz"
    if None not in (values.get(one), values.get(other)) and values.get(one) != values.get(other):
        yield Finding(rule="B8", text=f"{values.said(other)} beside {one} = {values.get(one)!r}; a worker takes one kind only")


def _generation_batches(values: Values) -> Iterator[Finding]:
    batch, size = values.number("data.train_batch_size"), values.number("data.gen_batch_size")
    if batch is not None and size and batch % size:
        text = f"{values.said('data.gen_batch_size')} does not divide data.train_batch_size = {batch}; set a divisor, such as 1"
        yield Finding(rule="B10", text=text)


def _rollout(values: Values) -> Iterator[Finding]:
    pp, mode = f"{ROLLOUT}.pipeline_model_parallel_size", f"{ROLLOUT}.mode"
    if (values.number(pp) or 1) > 1:
        yield Finding(
            rule="R5",
            text=f"{values.said(pp)}: no rollout engine takes stages; raise rollout.tp instead",
        )
    if values.get(mode) not in (None, "async"):
        yield Finding(rule="R6", text=f"{values.said(mode)}: verl 0.9.1 rolls out in mode 'async' only; leave it out")
    key = f"{ROLLOUT}.moe_tensor_parallel_size"
    if (values.number(key) or 1) > 1 and values.get(f"{ROLLOUT}.name") != "trtllm":
        yield Finding(rule="R10", text=f"{values.said(key)} is for trtllm only; leave it out")
    key, temperature = f"{ROLLOUT}.val_kwargs.do_sample", values.get(f"{ROLLOUT}.temperature")
    if values.get(key) is True and temperature == 0:
        yield Finding(rule="R11", text=f"{values.said(key)} needs rollout.temperature above 0, and that is 0")


def _model_length(values: Values) -> Iterator[Finding]:
    key = f"{ROLLOUT}.max_model_len"
    limit, prompt, response = (values.number(name) for name in (key, "data.max_prompt_length", "data.max_response_length"))
    if limit is None or prompt is None or response is None:
        return
    if limit <= prompt:
        text = f"{values.said(key)} leaves no token to answer a prompt of max_prompt_length = {prompt}; set {prompt + response}"
        yield Finding(rule="R7", text=text)
    elif limit < prompt + response:
        text = f"{values.said(key)} cuts responses short of max_response_length = {response}; set {prompt + response}"
        yield Finding(rule="R7", text=text, is_error=False)


def _adapters(values: Values) -> Iterator[Finding]:
    for key in (f"{MODEL}.lora_rank", f"{MODEL}.lora.rank"):
        rank = values.number(key) or 0
        if rank > LARGEST_LORA_RANK and values.get(f"{ROLLOUT}.name") == "vllm":
            yield Finding(rule="R12", text=f"{values.said(key)} is more than vLLM has kernels for; set at most {LARGEST_LORA_RANK}")


def _trainer(values: Values) -> Iterator[Finding]:
    if values.get("trainer.use_v1") is False:
        text = f"{values.said('trainer.use_v1')} runs the deprecated trainer, which names its metrics otherwise; leave it out"
        yield Finding(rule="K12", text=text, is_error=False)
    mode, path = values.get("trainer.resume_mode"), values.get("trainer.resume_from_path")
    if mode is not None and mode not in ("disable", "auto", "resume_path"):
        text = f"{values.said('trainer.resume_mode')} is no way to resume; set 'disable', 'auto' or 'resume_path'"
        yield Finding(rule="K13", text=text)
    if mode == "resume_path" and "global_step_" not in str(path):
        text = f"{values.said('trainer.resume_from_path')} must name a checkpoint, a directory global_step_<n>"
        yield Finding(rule="K13", text=text)
    if mode in ("auto", "disable") and path is not None:
        text = f"{values.said('trainer.resume_from_path')} is not read with resume_mode {mode!r}; set 'resume_path' or leave it out"
        yield Finding(rule="K13", text=text, is_error=False)


RULES: tuple[Callable[[Values], Iterator[Finding]], ...] = (
    _recompute,
    _bridge,
    _router_replay,
    _dynamic_context,
    _strategy,
    _critic_sequence,
    _scheduler,
    _tokens,
    _one_kind_of_batches,
    _generation_batches,
    _rollout,
    _model_length,
    _adapters,
    _trainer,
)
