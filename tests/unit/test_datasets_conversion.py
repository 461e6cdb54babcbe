"""Raw rows become rows as verl's own examples prepare them, or problems."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ascend_e2e.datasets.conversion import convert_geometry3k, convert_gsm8k, schema
from tests.fakes.raw_data import geometry_rows, picture, word_rows


def test_gsm8k_row_has_the_columns_and_the_prompt_of_verls_example() -> None:
    raw = word_rows(1, first=12)[0]

    row, problems = convert_gsm8k(raw, 3, "test")

    assert not problems
    assert row == {
        "data_source": "openai/gsm8k",
        "prompt": [
            {
                "role": "user",
                "content": 'What is 0 + 12? Let\'s think step by step and output the final answer after "####".',
            }
        ],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "12"},
        "extra_info": {"split": "test", "index": 3, "answer": raw["answer"], "question": raw["question"]},
    }


def test_geometry3k_row_has_the_columns_and_the_prompt_of_verls_example() -> None:
    raw = geometry_rows(1, first=60)[0]

    row, problems = convert_geometry3k(raw, 7, "train")

    assert not problems
    assert row == {
        "data_source": "hiyouga/geometry3k",
        "prompt": [
            {
                "role": "user",
                "content": "<image>Find side 60 of the figure. You FIRST think about the reasoning process as an internal "
                "monologue and then provide the final answer. The reasoning process MUST BE enclosed within <think> </think> tags. "
                "The final answer MUST BE put in \\boxed{}.",
            }
        ],
        "images": raw["images"],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "60"},
        "extra_info": {"split": "train", "index": 7, "answer": "60", "question": "<image>Find side 60 of the figure."},
    }


@pytest.mark.parametrize(
    ("converter", "raw", "columns"),
    [
        (convert_gsm8k, word_rows(1)[0], ("question", "answer")),
        (convert_geometry3k, geometry_rows(1)[0], ("problem", "answer", "images")),
    ],
)
def test_schema_names_the_columns_of_a_row_in_their_order(converter: Any, raw: dict[str, Any], columns: tuple[str, ...]) -> None:
    row, _ = converter(raw, 0, "train")

    assert schema(columns).names == list(row)


@pytest.mark.parametrize(
    ("answer", "truth"), [("so\n#### 1,234", "1234"), ("#### -5", "-5"), ("#### 2.5", "2.5"), ("5 #### 7\nmore", "7")]
)
def test_ground_truth_is_the_number_after_the_mark_without_commas(answer: str, truth: str) -> None:
    row, _ = convert_gsm8k({"question": "q", "answer": answer}, 0, "train")

    assert row["reward_model"]["ground_truth"] == truth


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"answer": "the answer is 5"}, "no number after '#### ' in the answer 'the answer is 5'"),
        ({"answer": "#### five"}, "no number after '#### '"),
        ({"answer": None}, "answer is None; expected a text"),
        ({"question": " "}, "question is empty"),
    ],
)
def test_unusable_gsm8k_row_is_one_problem(change: dict[str, Any], text: str) -> None:
    _, problems = convert_gsm8k({**word_rows(1)[0], **change}, 0, "train")

    assert len(problems) == 1
    assert text in problems[0]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"answer": ""}, "answer is empty"),
        ({"problem": None}, "problem is None; expected a text"),
        ({"problem": "Find x."}, "<image> stands 0 times in the problem, and there are 1 images"),
        ({"problem": "<image><image>Find x."}, "<image> stands 2 times in the problem, and there are 1 images"),
        ({"images": None}, "<image> stands 1 times in the problem, and there are 0 images"),
        (
            {"images": [{"bytes": b"no picture", "path": None}]},
            "image 0 cannot be used: UnidentifiedImageError",
        ),
        ({"images": [{"bytes": picture()[:60], "path": None}]}, "image 0 cannot be used"),
        # Pillow finds this one only when it decodes the pixels.
        ({"images": [{"bytes": picture(encoding="JPEG")[:-8], "path": None}]}, "image 0 cannot be used: OSError"),
        ({"images": [{"bytes": None, "path": "a.png"}]}, "image 0 cannot be used: it has no bytes"),
    ],
)
def test_unusable_geometry3k_row_is_one_problem(change: dict[str, Any], text: str) -> None:
    _, problems = convert_geometry3k({**geometry_rows(1)[0], **change}, 0, "train")

    assert len(problems) == 1
    assert text in problems[0]
    assert "0x" not in problems[0]


def test_all_problems_of_a_row_are_told() -> None:
    raw = {"problem": "Find x.", "answer": " ", "images": [{"bytes": b"broken", "path": None}]}

    _, problems = convert_geometry3k(raw, 0, "train")

    assert len(problems) == 3


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P"])
def test_every_mode_of_picture_is_accepted(mode: str) -> None:
    image = {"bytes": picture(mode=mode), "path": "x.png"}

    _, problems = convert_geometry3k({**geometry_rows(1)[0], "images": [image]}, 0, "train")

    assert not problems
