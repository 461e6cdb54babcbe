"""Actor, reference and rollout compute alike, or the recipe says that they are not to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_ascend_e2e.errors import RecipeError
from pytest_ascend_e2e.preflight import Plan, judge
from pytest_ascend_e2e.preflight.findings import Values
from pytest_ascend_e2e.preflight.role_rules import role_findings
from pytest_ascend_e2e.recipe import FSDP2, GRPO, Megatron, Recipe, Vllm

ACTOR, REFERENCE, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.ref", "actor_rollout_ref.rollout"
ROUTER = {"moe_router_dtype": "fp32", "moe_router_load_balancing_type": "none"}
DTYPE, BALANCING = (f"override_transformer_config.{name}" for name in ROUTER)


def plan_of(**given: Any) -> Plan:
    fields: dict[str, Any] = {
        "algorithm": GRPO(use_kl_loss=True),
        "model": "Qwen/Qwen3.5-35B-A3B",
        "dataset": "geometry3k",
        "engine": Megatron(tp=2, pp=2, ep=8, etp=1, transformer=ROUTER),
        "rollout": Vllm(tp=8, n=5),
        "train_batch_size": 32,
        "max_prompt_length": 1024,
        "max_response_length": 2048,
        "steps": 15,
        **given,
    }
    return judge(Recipe(**fields), 16)


def reference(**transformer: object) -> Megatron:
    return Megatron(tp=2, pp=2, ep=8, etp=1, transformer=transformer)


def findings_of(flat: Mapping[str, object], *, meant: Mapping[str, str] | None = None, is_whole: bool = True) -> list[str]:
    values = Values(flat=flat, origins={})
    return [str(finding) for finding in role_findings(values, meant or {}, is_whole=is_whole)]


def test_router_settings_of_the_actor_alone_are_reported_with_both_values() -> None:
    problems = plan_of(reference=reference()).problems

    assert problems == (
        (
            "engine.transformer['moe_router_dtype']: 'fp32' for the actor and None for the reference (reference.transformer), "
            "so they compute other log-probs of one token; set both alike, or say why not: "
            f"meant_differences={{{DTYPE!r}: '...'}} [A1]"
        ),
        (
            "engine.transformer['moe_router_load_balancing_type']: 'none' for the actor and None for the reference "
            "(reference.transformer), so they compute other log-probs of one token; set both alike, or say why not: "
            f"meant_differences={{{BALANCING!r}: '...'}} [A1]"
        ),
    )


def test_the_reference_has_the_router_settings_of_the_actor_by_default() -> None:
    assert plan_of().is_sound


def test_a_reference_of_the_same_settings_is_no_problem() -> None:
    assert plan_of(reference=reference(**ROUTER)).is_sound


def test_a_difference_that_is_meant_is_no_problem_and_the_other_stays_one() -> None:
    meant = {DTYPE: "the reference is the published model, which routes in bfloat16"}

    problems = plan_of(reference=reference(), meant_differences=meant).problems

    assert [problem.split(":")[0] for problem in problems] == ["engine.transformer['moe_router_load_balancing_type']"]


def test_what_changes_memory_or_speed_alone_may_differ() -> None:
    engine = Megatron(transformer={"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1})

    assert plan_of(engine=engine, reference=Megatron(), rollout=Vllm(n=5)).is_sound


def test_a_recipe_without_a_reference_has_nothing_to_compare() -> None:
    flat = {f"{ACTOR}.use_kl_loss": False, "algorithm.use_kl_in_reward": False, f"{ACTOR}.strategy": "megatron"}

    assert findings_of({**flat, f"{ACTOR}.megatron.dtype": "float16"}) == []


@pytest.mark.parametrize(
    ("section", "name", "mine", "other"),
    [
        ("megatron", "dtype", "float16", "bfloat16"),
        ("megatron", "override_mcore_model_config.x", 1, None),
        ("megatron", "override_transformer_config.rotary_base", 10_000, None),
        ("megatron", "pad_to_length", True, False),
        ("fsdp_config", "model_dtype", "bf16", "fp32"),
        ("fsdp_config", "mixed_precision.param_dtype", "fp32", "bf16"),
        ("veomni", "attn_implementation", "flash_attention_2", "eager"),
        ("veomni", "rotary_pos_emb_implementation", "eager", "fused"),
    ],
)
def test_every_kind_of_setting_that_changes_numbers_is_compared(section: str, name: str, mine: object, other: object) -> None:
    strategy = {"fsdp_config": "fsdp2"}.get(section, section)
    flat = {f"{ACTOR}.strategy": strategy, f"{ACTOR}.{section}.{name}": mine, f"{REFERENCE}.{section}.{name}": other}

    (finding,) = findings_of(flat)

    assert finding.startswith(f"{ACTOR}.{section}.{name}: {mine!r} for the actor and {other!r} for the reference")
    assert finding.endswith("[A1]")
    assert findings_of({**flat, f"{REFERENCE}.{section}.{name}": mine}) == []
    assert findings_of(flat, meant={name: "why"}) == []


def test_layout_and_offload_are_not_compared() -> None:
    flat = {f"{ACTOR}.strategy": "fsdp2", f"{ACTOR}.fsdp_config.fsdp_size": 2, f"{ACTOR}.fsdp_config.param_offload": True}

    assert findings_of(flat) == []


@pytest.mark.parametrize(
    ("fields", "is_sound"),
    [
        ({"engine": Megatron(dtype="float16"), "rollout": Vllm(n=5)}, False),
        ({"engine": Megatron(dtype="float16"), "rollout": Vllm(n=5, dtype="float16")}, True),
        ({"engine": FSDP2(), "rollout": Vllm(n=5, dtype="float16")}, False),
        (
            {"engine": FSDP2(), "rollout": Vllm(n=5, dtype="float16"), "meant_differences": {"rollout.dtype": "as on the server"}},
            True,
        ),
        (
            {
                "engine": FSDP2(),
                "rollout": Vllm(n=5, dtype="float32"),
                "overrides": {f"{role}.fsdp_config.mixed_precision": {"+param_dtype": "fp32"} for role in (ACTOR, REFERENCE)},
            },
            True,
        ),
    ],
)
def test_rollout_and_training_have_one_dtype(fields: dict[str, Any], is_sound: bool) -> None:
    problems = plan_of(**fields).problems

    assert [problem.rpartition(" ")[2] for problem in problems] == ([] if is_sound else ["[A2]"])


def test_a_difference_that_is_meant_and_is_not_there_is_told_once_everything_is_known() -> None:
    flat = {
        f"{ACTOR}.strategy": "megatron",
        f"{ACTOR}.megatron.dtype": "bfloat16",
        f"{REFERENCE}.megatron.dtype": "bfloat16",
        f"{ROLLOUT}.dtype": "bfloat16",
    }
    meant = {"rollout.dtype": "the server has no bfloat16"}

    assert findings_of(flat, meant=meant) == [
        "meant_differences['rollout.dtype']: the roles do not differ in this; leave it out [A3]"
    ]
    assert findings_of(flat, meant=meant, is_whole=False) == []


@pytest.mark.parametrize("given", [["rollout.dtype"], {"rollout.dtype": ""}, {"rollout.dtype": True}, {1: "why"}])
def test_a_difference_that_is_meant_needs_a_reason(given: object) -> None:
    with pytest.raises(RecipeError, match=r"meant_differences: .* cannot be used: expected a reason for each name"):
        plan_of(meant_differences=given)
