"""What is known of a model: from its own configuration, else from the table, else it is said what was not checked."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ascend_e2e.preflight import judge, known_models
from pytest_ascend_e2e.recipe import FSDP2, GRPO, SFT, Megatron, Recipe, Vllm
from tests.fakes.upstream import cases

# A model made by its case, of a size of its own.
MADE_BY_ITS_CASE = {"mindspeed/Qwen3-30B-A3B-minimal"}


def plan_warnings(model: str, config: dict[str, object] | None = None, **given: Any) -> list[str]:
    fields: dict[str, Any] = {"engine": Megatron(tp=2, pp=2, ep=2), "rollout": Vllm(n=4, tp=2), **given}
    recipe = Recipe(
        algorithm=GRPO(),
        model=model,
        dataset="gsm8k",
        train_batch_size=16,
        max_prompt_length=64,
        max_response_length=64,
        steps=1,
        **fields,
    )
    return [warning for warning in judge(recipe, 8, model_config=config).warnings if warning.startswith("model:")]


def test_every_model_of_the_cases_is_in_the_table() -> None:
    models = {case.recipe.model for case in cases().values() if case.recipe is not None}

    assert models - MADE_BY_ITS_CASE <= set(known_models())


@pytest.mark.parametrize("name", known_models())
def test_an_entry_of_the_table_has_its_source_and_what_the_rules_need(name: str) -> None:
    entry = known_models()[name]

    assert str(entry["source"]).startswith(f"https://huggingface.co/{name}/")
    needed = {"num_attention_heads", "num_key_value_heads", "num_hidden_layers", "hidden_size", "vocab_size"}
    assert needed <= set(entry)
    assert all(isinstance(entry[key], int) for key in needed)


def test_a_model_of_the_table_is_judged_without_its_weights() -> None:
    recipe = SFT(model="Qwen/Qwen3-0.6B", dataset="gsm8k_sft", engine=FSDP2(sp=3), steps=1, train_batch_size=4)

    assert "engine.sp: 3 does not divide the 16 attention heads of the model; set 2 [F4]" in judge(recipe, 12).problems


def test_a_configuration_at_hand_goes_before_the_table() -> None:
    recipe = SFT(model="Qwen/Qwen3-0.6B", dataset="gsm8k_sft", engine=FSDP2(sp=3), steps=1, train_batch_size=4)

    assert judge(recipe, 12, model_config={"num_attention_heads": 3}).is_sound


def test_of_an_unknown_model_it_is_said_what_was_not_checked() -> None:
    (warning,) = plan_warnings("some/model")

    assert warning == "model: neither a config.json nor the table of known models has 'some/model'; not checked: M6, M7, M9, M8, R3"


def test_a_configuration_that_does_not_tell_is_named_with_what_it_lacks() -> None:
    config: dict[str, object] = {"num_attention_heads": 16, "num_experts": 8}

    (warning,) = plan_warnings("some/model", config)

    assert warning == "model: the configuration of 'some/model' does not tell layers; not checked: M9"


def test_sizes_of_one_need_no_facts() -> None:
    assert plan_warnings("some/model", engine=FSDP2(), rollout=Vllm(n=4)) == []
