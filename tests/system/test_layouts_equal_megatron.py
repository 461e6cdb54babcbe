"""The planner's verdict on layouts against megatron-core's own `initialize_model_parallel`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pytest

from pytest_ascend_e2e import GRPO, Megatron, Recipe, Vllm
from pytest_ascend_e2e.errors import LayoutError
from pytest_ascend_e2e.recipe import plan_layout

Sizes: TypeAlias = "dict[str, int | None]"

PROGRAM = Path(__file__).with_name("megatron_verdicts.py")
# Where requirements/install.sh puts megatron-core; one that is importable anyway comes after it.
INSTALLED = Path(sys.prefix) / "megatron"
LAYOUTS = 5000


def random_layouts() -> list[Sizes]:
    """Return layouts of which about a twelfth can be formed, on up to 64 devices; few of them on many, which takes long to form."""
    random = Random(20261130)  # noqa: S311  # repeatable, not secret
    worlds = [*range(1, 17), *range(1, 17), 8, 16, 24, 32, 64]
    sizes = (1, 1, 1, 1, 2, 2, 3, 4, 8)
    return [
        {
            "world": random.choice(worlds),
            "tp": random.choice(sizes),
            "pp": random.choice(sizes),
            "cp": random.choice((1, 1, 2, 3, 4)),
            "ep": random.choice((*sizes, 16)),
            "etp": random.choice((None, *sizes)),
            "vpp": random.choice((None, None, 1, 2, 3)),
        }
        for _ in range(LAYOUTS)
    ]


def verdicts_of_megatron(layouts: list[Sizes]) -> list[list[int] | str]:
    places = [str(INSTALLED), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, PROGRAM],
        input=json.dumps(layouts),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
    )
    if done.returncode:
        pytest.fail(f"{PROGRAM.name} ended with status {done.returncode}: {done.stderr}")
    verdicts: list[list[int] | str] = json.loads(done.stdout)
    return verdicts


def verdict_of_planner(layout: Sizes) -> list[int] | str:
    sizes: dict[str, Any] = {name: size for name, size in layout.items() if name != "world"}
    recipe = Recipe(
        algorithm=GRPO(),
        model="Qwen/Qwen3-30B-A3B",
        dataset="gsm8k",
        engine=Megatron(**sizes),
        rollout=Vllm(),
        train_batch_size=8,
        max_prompt_length=16,
        max_response_length=16,
        steps=1,
    )
    try:
        planned = plan_layout(recipe, layout["world"] or 0)
    except LayoutError as error:
        return str(error)
    return [planned.dp, planned.edp]


def test_the_planner_accepts_exactly_the_layouts_that_megatron_can_form() -> None:
    layouts = random_layouts()

    megatron = verdicts_of_megatron(layouts)

    planner = [verdict_of_planner(layout) for layout in layouts]
    differing = [
        f"{layout}: megatron-core says {theirs!r}, the planner {ours!r}"
        for layout, theirs, ours in zip(layouts, megatron, planner, strict=True)
        if (ours if isinstance(ours, list) else None) != (theirs if isinstance(theirs, list) else None)
    ]
    assert differing == []
    # Neither side of the comparison may be empty, or every planner would pass.
    assert sum(isinstance(verdict, list) for verdict in megatron) > LAYOUTS / 20
    assert sum(isinstance(verdict, str) for verdict in megatron) > LAYOUTS / 20
