"""Rules on models, with the numbers of a config.json."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ascend_e2e.preflight import ModelFacts, model_problems
from pytest_ascend_e2e.recipe import FSDP2, GRPO, Megatron, Recipe, Vllm

DENSE = {"num_attention_heads": 12, "num_key_value_heads": 4, "num_hidden_layers": 30, "max_position_embeddings": 4096}
MIXTURE = {**DENSE, "num_experts": 16}
GATED = {**MIXTURE, "linear_num_key_heads": 6, "linear_num_value_heads": 12}


def recipe_with(**given: Any) -> Recipe:
    fields: dict[str, Any] = {
        "algorithm": GRPO(),
        "model": "Qwen/Qwen3-8B",
        "dataset": "gsm8k",
        "engine": Megatron(),
        "rollout": Vllm(),
        "train_batch_size": 8,
        "max_prompt_length": 64,
        "max_response_length": 64,
        "steps": 1,
        **given,
    }
    return Recipe(**fields)


def problems_of(config: dict[str, object], **fields: Any) -> list[str]:
    return model_problems(recipe_with(**fields), ModelFacts.from_config(config))


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        (DENSE, {"engine": Megatron(tp=4, pp=3), "rollout": Vllm(tp=4)}),
        (DENSE, {"engine": FSDP2(sp=12)}),
        (MIXTURE, {"engine": Megatron(ep=8)}),
        (GATED, {"engine": Megatron(tp=2)}),
        (
            DENSE,
            {
                "engine": Megatron(
                    pp=4, transformer={"num_layers_in_first_pipeline_stage": 8, "num_layers_in_last_pipeline_stage": 8}
                )
            },
        ),
        (DENSE, {"engine": Megatron(pp=4, transformer={"pipeline_model_parallel_layout": "E|t*29|L"})}),
        ({}, {"engine": Megatron(tp=5, ep=7)}),
    ],
)
def test_sizes_that_suit_the_model_are_no_problem(config: dict[str, object], fields: dict[str, Any]) -> None:
    assert problems_of(config, **fields) == []


@pytest.mark.parametrize(
    ("config", "fields", "text"),
    [
        (DENSE, {"engine": Megatron(tp=8)}, "engine.tp: 8 does not divide the 12 attention heads of the model; set 6"),
        (DENSE, {"engine": Megatron(tp=6)}, "engine.tp: 6 neither divides the 4 key-value heads of the model nor is a multiple of"),
        (DENSE, {"engine": Megatron(ep=2)}, "engine.ep: 2 needs a model with experts, and this one has none; leave ep out"),
        (MIXTURE, {"engine": Megatron(ep=6)}, "engine.ep: 6 does not divide the 16 experts of the model; set 4"),
        (DENSE, {"engine": Megatron(pp=4)}, "engine.pp: 4 does not fit 30 layers: 30 do not divide over 4; set "),
        (DENSE, {"engine": Megatron(pp=2, vpp=4)}, "engine.pp: 2 x vpp 4 does not fit 30 layers: 30 do not divide over 8; set "),
        (
            DENSE,
            {"engine": Megatron(pp=4, transformer={"num_layers_in_first_pipeline_stage": 7})},
            "engine.pp: 4 does not fit 30 layers, 7 in the first stage: 23 do not divide over 3; set ",
        ),
        (GATED, {"engine": Megatron(tp=4)}, "engine.tp: 4 does not divide the 6 linear key heads of the model; set 3"),
        (GATED, {"engine": Megatron(cp=2)}, "engine.cp: 2 with a gated delta net; megatron-core takes cp=1 only"),
        (DENSE, {"engine": FSDP2(sp=5)}, "engine.sp: 5 does not divide the 12 attention heads of the model; set 4"),
        (DENSE, {"rollout": Vllm(tp=8)}, "rollout.tp: 8 does not divide the 12 attention heads of the model; set 6"),
        (DENSE, {"rollout": Vllm(max_model_len=5000)}, "rollout.max_model_len: 5000 is more than the 4096 positions of the model"),
        (
            DENSE,
            {"max_prompt_length": 4000, "max_response_length": 97},
            "max_prompt_length: 4000 + max_response_length 97 = 4097 tokens are more than the 4096 positions of the model",
        ),
    ],
)  # fmt: skip
def test_a_size_that_the_model_does_not_allow_is_told(config: dict[str, object], fields: dict[str, Any], text: str) -> None:
    problems = problems_of(config, **fields)

    assert any(problem.startswith(text) for problem in problems), problems


def test_the_facts_of_a_model_with_images_are_those_of_its_text() -> None:
    facts = ModelFacts.from_config(
        {"vision_config": {"num_heads": 3}, "text_config": {"num_attention_heads": 8, "num_hidden_layers": 2}}
    )

    assert (facts.heads, facts.kv_heads, facts.layers) == (8, 8, 2)
