"""Rules on the rollout and on sending it weights (R), by verl's own keys. Must not know: recipes."""

from __future__ import annotations

from collections.abc import Iterator

from ..recipe import MODEL, ROLLOUT
from .findings import ConfigRule, Finding, Values

# vLLM's kernels for adapters, the largest last (verl: vllm_rollout/utils.py, get_vllm_max_lora_rank).
_LARGEST_LORA_RANK = 512


def _shape(values: Values) -> Iterator[Finding]:
    pp, mode = f"{ROLLOUT}.pipeline_model_parallel_size", f"{ROLLOUT}.mode"
    if values.size(pp) > 1:
        text = f"{values.said(pp)}: no rollout engine takes stages; raise rollout.tp instead"
        yield Finding(rule="R5", text=text)
    if values.get(mode) not in (None, "async"):
        yield Finding(rule="R6", text=f"{values.said(mode)}: verl 0.9.1 rolls out in mode 'async' only; leave it out")
    key = f"{ROLLOUT}.moe_tensor_parallel_size"
    if values.size(key) > 1 and values.get(f"{ROLLOUT}.name") != "trtllm":
        yield Finding(rule="R10", text=f"{values.said(key)} is for trtllm only; leave it out")
    key = f"{ROLLOUT}.expert_parallel_size"
    ep, replica = (
        values.size(key),
        values.size(f"{ROLLOUT}.tensor_model_parallel_size") * values.size(f"{ROLLOUT}.data_parallel_size"),
    )
    if ep > 1 and f"{ROLLOUT}.tensor_model_parallel_size" in values.flat and ep != replica:
        yield Finding(rule="R4", text=f"{values.said(key)} must be 1 or tp x dp = {replica}; set {replica}, or leave it out")


def _sampling(values: Values) -> Iterator[Finding]:
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
        if rank > _LARGEST_LORA_RANK and values.get(f"{ROLLOUT}.name") == "vllm":
            text = f"{values.said(key)} is more than vLLM has kernels for; set at most {_LARGEST_LORA_RANK}"
            yield Finding(rule="R12", text=text)


def _weights(values: Values) -> Iterator[Finding]:
    key, mode = f"{ROLLOUT}.checkpoint_engine.backend", values.get("trainer.v1.trainer_mode")
    if mode != "separate_async":
        if values.get(key) not in (None, "naive") and values.is_asked(key):
            text = (
                f"{values.said(key)} is not used: a rollout on the devices of the trainer gets its weights by 'naive'; leave it out"
            )
            yield Finding(rule="R14", text=text, is_error=False)
        return
    if values.get(key) == "naive":
        yield Finding(rule="R14", text=f"{values.said(key)} cannot send weights to other devices; set one such as 'nccl'")
    for name in ("nnodes", "n_gpus_per_node"):
        key = f"{ROLLOUT}.{name}"
        if values.number(key) == 0:
            yield Finding(
                rule="R14", text=f"{values.said(key)} leaves the rollout no devices of its own; set trainer.rollout_devices"
            )
    key = "reward.reward_model.enable"
    if values.get(key) is True and values.get("reward.reward_model.enable_resource_pool") is False:
        text = (
            f"{values.said(key)} needs reward.reward_model.enable_resource_pool=True: a rollout that never pauses frees no memory"
        )
        yield Finding(rule="R14", text=text)


ROLLOUT_RULES: tuple[ConfigRule, ...] = (_shape, _sampling, _model_length, _adapters, _weights)
