"""Rules on batches (B), by verl's own keys; those that need a layout stand in `sizes.py`. Must not know: recipes."""

from __future__ import annotations

from collections.abc import Iterator

from ..recipe import ACTOR, REFERENCE, ROLLOUT
from .findings import ConfigRule, Finding, Values

# The switch of dynamic batches of a role, its tokens, its micro-batch for a device, and the deprecated one for all.
_LOG_PROB = ("log_prob_use_dynamic_bsz", "log_prob_max_token_len_per_gpu", "log_prob_micro_batch_size")
_PPO = ("use_dynamic_bsz", "ppo_max_token_len_per_gpu", "ppo_micro_batch_size")


def _roles(values: Values) -> Iterator[tuple[str, str, str, str]]:
    """Yield of each role that computes: its section, its switch, its tokens, and its deprecated micro-batch."""
    roles = [(ACTOR, _PPO), (ROLLOUT, _LOG_PROB)]
    roles += [(role, _LOG_PROB if role == REFERENCE else _PPO) for role in values.roles()]
    for role, names in roles:
        switch, tokens, micro = (f"{role}.{name}" for name in names)
        yield role, switch, tokens, micro


def _critic_mini_batch(values: Values) -> Iterator[Finding]:
    key, batch, devices = "critic.ppo_mini_batch_size", values.number("data.train_batch_size"), values.devices
    mini, n = values.number(key), values.size(f"{ROLLOUT}.n")
    if mini is None or not values.has_critic or not values.is_asked(key):
        return
    if batch is not None and mini > batch:
        text = f"{values.said(key)} is more than data.train_batch_size = {batch}; a mini-batch is part of the batch"
        yield Finding(rule="B2", text=text)
    if devices is None:
        return
    dp = devices // (values.sequence_split * _model_parallel(values))
    if dp and mini * n % dp:
        yield Finding(rule="B3", text=f"{values.said(key)} x rollout.n {n} = {mini * n} responses do not divide over dp {dp}")


def _model_parallel(values: Values) -> int:
    if values.strategy != "megatron":
        return 1
    section = f"{ACTOR}.megatron"
    return values.size(f"{section}.tensor_model_parallel_size") * values.size(f"{section}.pipeline_model_parallel_size")


def _micro_batches(values: Values) -> Iterator[Finding]:
    for role, switch, _, micro in _roles(values):
        if values.get(switch) is not False:
            continue
        per_device = f"{micro}_per_gpu"
        if values.get(micro) is not None and values.get(per_device) is not None:
            text = f"{values.said(micro)} beside {per_device} = {values.get(per_device)!r}; the former is deprecated, leave it out"
            yield Finding(rule="B5", text=text)
        elif per_device not in values.flat or values.get(per_device) is not None:
            continue
        elif role in (ACTOR, ROLLOUT):
            text = f"{values.said(per_device)} leaves a worker without a micro-batch; set a number, or {switch}=True"
            yield Finding(rule="B9", text=text)
        elif values.get(micro) is None:
            text = f"{values.said(per_device)} leaves {role} without a micro-batch; set a number, or {switch}=True"
            yield Finding(rule="B5", text=text)


def _global_micro_batch(values: Values) -> Iterator[Finding]:
    for role in (ACTOR, "critic"):
        key = f"{role}.ppo_micro_batch_size"
        micro, mini, devices = values.number(key), values.number(f"{role}.ppo_mini_batch_size"), values.devices
        if not micro or mini is None or values.get(f"{role}.use_dynamic_bsz") is True:
            continue
        if mini % micro:
            yield Finding(rule="B6", text=f"{values.said(key)} does not divide ppo_mini_batch_size = {mini}; leave it out")
        elif devices is not None and micro * values.sequence_split < devices:
            text = f"{values.said(key)} x {values.sequence_split} is less than the {devices} devices; leave it out"
            yield Finding(rule="B6", text=text)


def _tokens(values: Values) -> Iterator[Finding]:
    prompt, response = values.number("data.max_prompt_length"), values.number("data.max_response_length")
    if prompt is None or response is None:
        return
    split, longest = values.sequence_split, prompt + response
    for role, switch, key, _ in _roles(values):
        tokens = values.number(key)
        # The actor's tokens are a field of the recipe, which has judged them already.
        is_judged = role != ACTOR and values.get(switch) is True and values.is_asked(key)
        if is_judged and tokens is not None and tokens * split < longest:
            text = (
                f"{values.said(key)} x {split} = {tokens * split} tokens cannot hold the longest sequence, {prompt} + {response} = "
                f"{longest}; set at least {-(-longest // split)}"
            )
            yield Finding(rule="B7", text=text)


def _one_kind_of_batches(values: Values) -> Iterator[Finding]:
    one, other = f"{ACTOR}.use_dynamic_bsz", f"{ROLLOUT}.log_prob_use_dynamic_bsz"
    if None not in (values.get(one), values.get(other)) and values.get(one) != values.get(other):
        yield Finding(rule="B8", text=f"{values.said(other)} beside {one} = {values.get(one)!r}; a worker takes one kind only")


def _tokens_given(values: Values) -> Iterator[Finding]:
    for role, switch, key, _ in _roles(values):
        if role in (ACTOR, ROLLOUT) and values.get(switch) is True and key in values.flat and values.get(key) is None:
            yield Finding(rule="B9", text=f"{values.said(key)} leaves dynamic batches without a limit; set a number of tokens")


def _generation_batches(values: Values) -> Iterator[Finding]:
    batch, size = values.number("data.train_batch_size"), values.number("data.gen_batch_size")
    if batch is not None and size and batch % size:
        text = f"{values.said('data.gen_batch_size')} does not divide data.train_batch_size = {batch}; set a divisor, such as 1"
        yield Finding(rule="B10", text=text)


def _long_prompts(values: Values) -> Iterator[Finding]:
    key = "data.filter_overlong_prompts"
    if values.get(key) is False and values.is_asked(key):
        text = f"{values.said(key)}: a text prompt that is too long is cut from the left, and one with images ends the run"
        yield Finding(rule="B13", text=text, is_error=False)


BATCH_RULES: tuple[ConfigRule, ...] = (
    _critic_mini_batch,
    _micro_batches,
    _global_micro_batch,
    _tokens,
    _one_kind_of_batches,
    _tokens_given,
    _generation_batches,
    _long_prompts,
)
