"""Which architecture a model has, told by its name."""

from __future__ import annotations

import pytest

from pytest_ascend_e2e.errors import ModelError
from pytest_ascend_e2e.models import architecture_of


@pytest.mark.parametrize(
    ("model_id", "architecture"),
    [
        ("Qwen/Qwen3-0.6B", "qwen3"),
        ("Qwen/Qwen3-8B", "qwen3"),
        ("Qwen/Qwen3-8B-Base", "qwen3"),
        ("Qwen/Qwen3-4B-Instruct-2507", "qwen3"),
        ("Qwen/Qwen3-30B-A3B", "qwen3_moe"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3_moe"),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507", "qwen3_moe"),
        ("Qwen/Qwen3-VL-2B-Instruct", "qwen3_vl"),
        ("Qwen/Qwen3-VL-8B-Instruct", "qwen3_vl"),
        ("/data/models/Qwen/Qwen3-8B", "qwen3"),
        ("/data/models/Qwen/Qwen3-VL-8B-Instruct/", "qwen3_vl"),
    ],
)
def test_name_tells_the_architecture(model_id: str, architecture: str) -> None:
    assert architecture_of(model_id) == architecture


@pytest.mark.parametrize(
    "model_id",
    [
        "Qwen/Qwen3.5-35B-A3B",
        "Qwen/Qwen2.5-0.5B-Instruct",
        "Qwen/Qwen3-VL-30B-A3B-Instruct",
        "Qwen/Qwen3-8B-FP8",
        "Qwen/Qwen3-Embedding-8B",
        "moonshotai/Moonlight-16B-A3B-Instruct",
        "someone/Qwen3-8B",
        "Qwen3-8B",
        "",
    ],
)
def test_other_architectures_are_refused_with_what_there_is(model_id: str) -> None:
    with pytest.raises(ModelError) as caught:
        architecture_of(model_id)

    assert str(caught.value).startswith(f"model {model_id!r}: no tiny model of this architecture can be made")
    assert "Qwen/Qwen3-8B" in str(caught.value)
    assert "Qwen/Qwen3-30B-A3B" in str(caught.value)
    assert "Qwen/Qwen3-VL-8B-Instruct" in str(caught.value)


@pytest.mark.parametrize(
    ("model_id", "reason"),
    [
        ("Qwen/Qwen3.5-35B-A3B", "gated delta net"),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct", "vision with experts"),
        ("Qwen/Qwen3-30B-A3B-FP8", "quantised"),
    ],
)
def test_refusal_says_why_where_that_is_known(model_id: str, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        architecture_of(model_id)
