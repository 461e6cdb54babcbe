"""Layouts against an oracle that forms the rank groups megatron-core forms, instead of dividing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ascend_e2e.errors import LayoutError
from pytest_ascend_e2e.recipe import FSDP2, GRPO, Megatron, Recipe, Vllm, plan_layout

SIZES = st.integers(min_value=1, max_value=8)


def recipe_with(**given_fields: Any) -> Recipe:
    fields: dict[str, Any] = {
        "algorithm": GRPO(),
        "model": "Qwen/Qwen3-30B-A3B",
        "dataset": "gsm8k",
        "engine": Megatron(),
        "rollout": Vllm(),
        "train_batch_size": 8,
        "max_prompt_length": 16,
        "max_response_length": 16,
        "steps": 1,
        **given_fields,
    }
    return Recipe(**fields)


def groups_of_ranks(world: int, inner: tuple[int, ...], pp: int) -> list[list[int]] | None:
    """Return the pipeline groups of a grid `inner x data x pp` of ranks, None where ranks are left over."""
    block = 1
    for size in inner:
        block *= size
    stages = [list(range(stage * world // pp, (stage + 1) * world // pp)) for stage in range(pp)]
    if sum(len(stage) for stage in stages) != world or any(len(stage) != len(stages[0]) for stage in stages):
        return None
    for stage in stages:
        rest = list(stage)
        while rest:
            if len(rest) < block:
                return None
            rest = rest[block:]
    return [[stage[place] for stage in stages] for place in range(len(stages[0]))]


def is_initialisable(engine: Megatron, world: int) -> bool:
    """Tell what megatron-core 0.16's initialize_model_parallel would say."""
    etp = engine.tp if engine.etp is None else engine.etp
    if engine.vpp is not None and engine.pp == 1:
        return False
    dense = groups_of_ranks(world, (engine.tp, engine.cp), engine.pp)
    expert = groups_of_ranks(world, (etp, engine.ep), engine.pp)
    return dense is not None and expert is not None and dense == expert


@given(
    world=st.integers(min_value=1, max_value=64),
    tp=SIZES,
    pp=SIZES,
    cp=st.integers(min_value=1, max_value=4),
    ep=SIZES,
    etp=st.none() | SIZES,
    vpp=st.none() | st.integers(min_value=1, max_value=3),
)
def test_a_layout_exists_exactly_where_megatron_can_form_its_groups(
    *, world: int, tp: int, pp: int, cp: int, ep: int, etp: int | None, vpp: int | None
) -> None:
    engine = Megatron(tp=tp, pp=pp, cp=cp, ep=ep, etp=etp, vpp=vpp)

    try:
        layout = plan_layout(recipe_with(engine=engine), world)
    except LayoutError:
        assert not is_initialisable(engine, world)
    else:
        assert is_initialisable(engine, world)
        assert layout.dp * tp * pp * cp == world
        assert layout.edp * layout.etp * ep * pp == world


@given(world=st.integers(min_value=1, max_value=64), tp=SIZES, pp=SIZES, ep=SIZES, etp=st.none() | SIZES)
def test_every_alternative_that_is_told_mends_its_rule_and_breaks_no_other(
    *, world: int, tp: int, pp: int, ep: int, etp: int | None
) -> None:
    engine = Megatron(tp=tp, pp=pp, ep=ep, etp=etp)

    problems = problems_of(engine, world)

    for problem in problems:
        for changes, devices in alternatives(problem, world):
            left = problems_of(replace(engine, **changes), devices)
            assert len(left) < len(problems)
            assert not any(other.split(" is ")[0] == problem.split(" is ")[0] for other in left)


def problems_of(engine: Megatron, world: int) -> tuple[str, ...]:
    try:
        plan_layout(recipe_with(engine=engine), world)
    except LayoutError as error:
        return error.problems
    return ()


def alternatives(problem: str, world: int) -> Iterator[tuple[dict[str, Any], int]]:
    advice = problem.rpartition(";")[2]
    for name, value in re.findall(r"(\w+)=(\d+)", advice):
        yield {name: int(value)}, world
    for devices in re.findall(r"use (\d+) devices", advice):
        yield {}, int(devices)


def test_missing_etp_is_told_with_its_arithmetic_and_three_ways_out() -> None:
    recipe = recipe_with(engine=Megatron(tp=2, pp=2, ep=8))

    with pytest.raises(LayoutError) as caught:
        plan_layout(recipe, 16)

    assert str(caught.value) == (
        "engine.etp is not set, so it is TP = 2: etp x ep x pp = 2 x 8 x 2 = 32 does not divide 16 devices; "
        "set etp=1 (1 x 8 x 2 = 16), or ep=4, or use 32 devices [M2]"
    )


def test_a_layout_reads_as_one_line() -> None:
    recipe = recipe_with(engine=Megatron(tp=2, pp=2, ep=8, etp=1), rollout=Vllm(tp=8))

    layout = plan_layout(recipe, 16)

    assert str(layout) == "TP2 PP2 CP1 EP8 ETP1: dp 4, expert-dp 1 on 16 devices"
    assert layout.replicas == 2


def test_an_fsdp_layout_reads_as_one_line() -> None:
    layout = plan_layout(recipe_with(engine=FSDP2(sp=2)), 4)

    assert str(layout) == "FSDP2 SP2: dp 2 on 4 devices"
    assert layout.shard_size == 4


def test_nodes_count_together() -> None:
    layout = plan_layout(recipe_with(engine=Megatron(tp=2, ep=16, etp=1)), 16, nodes=2)

    assert str(layout) == "TP2 PP1 CP1 EP16 ETP1: dp 16, expert-dp 2 on 32 devices"


def test_all_rules_that_are_broken_are_told_together() -> None:
    recipe = recipe_with(engine=Megatron(tp=3, vpp=2), rollout=Vllm(tp=5, ep=2))

    with pytest.raises(LayoutError) as caught:
        plan_layout(recipe, 16)

    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "engine",
        "engine.etp is not set, so it is TP = 3",
        "engine.vpp",
        "rollout",
        "rollout.ep",
    ]


@pytest.mark.parametrize(
    ("engine", "devices", "text"),
    [
        (FSDP2(sp=3), 4, "engine: sp = 3 does not divide 4 devices; set sp=2, or use 6 devices [F2]"),
        (
            FSDP2(fsdp_size=3),
            8,
            "engine.fsdp_size: 3 does not divide 8 devices; set fsdp_size=2, or -1 for one copy over all of them [F5]",
        ),
        (
            Megatron(tp=4, pp=4, etp=1),
            8,
            "engine: tp x pp x cp = 4 x 4 x 1 = 16 does not divide 8 devices; set tp=2, or pp=2, or use 16 devices [M1]",
        ),
    ],
)
def test_the_sizes_of_an_engine_must_divide_the_devices(engine: FSDP2 | Megatron, devices: int, text: str) -> None:
    with pytest.raises(LayoutError) as caught:
        plan_layout(recipe_with(engine=engine), devices)

    assert text in caught.value.problems


def test_fsdp_size_beyond_the_devices_means_all_of_them() -> None:
    layout = plan_layout(recipe_with(engine=FSDP2(fsdp_size=16)), 4)

    assert layout.shard_size == 4


def test_a_replica_over_nodes_must_fill_whole_nodes() -> None:
    recipe = recipe_with(rollout=Vllm(tp=6))

    with pytest.raises(LayoutError, match="does not fill whole nodes of 4; set a product of"):
        plan_layout(recipe, 4, nodes=3)


def test_no_devices_are_no_layout() -> None:
    with pytest.raises(LayoutError, match="at least one of each"):
        plan_layout(recipe_with(), 0)
