"""Rows of the raw schemas to rows as verl's own examples prepare them.

Owns verl's column names and prompts. Must not know: files, where a row comes from. A row that cannot be used becomes problems.
"""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING, Any

from .libraries import import_arrow, import_pillow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Row = dict[str, Any]

# Both sentences are part of the interface: rewards and published results of verl's examples depend on them.
_GSM8K_INSTRUCTION = 'Let\'s think step by step and output the final answer after "####".'
_GEOMETRY_INSTRUCTION = (
    "You FIRST think about the reasoning process as an internal monologue and then provide the final answer. "
    "The reasoning process MUST BE enclosed within <think> </think> tags. "
    "The final answer MUST BE put in \\boxed{}."
)
_MEMORY_ADDRESS = re.compile(r" <[^>]* object at 0x[^>]*>")
_FINAL_NUMBER = re.compile(r"#### (-?[0-9.,]+)")


def convert_gsm8k(raw: Mapping[str, Any], index: int, split: str) -> tuple[Row, list[str]]:
    """Return the row for verl and the problems of a raw row (columns `question`, `answer`)."""
    problems = _not_text(raw, ("question", "answer"))
    if problems:
        return {}, problems
    final = _FINAL_NUMBER.search(raw["answer"])
    if final is None:
        return {}, [f"no number after '#### ' in the answer {_shortened(raw['answer'])}"]
    return {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content": f"{raw['question']} {_GSM8K_INSTRUCTION}"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": final[1].replace(",", "")},
        "extra_info": {"split": split, "index": index, "answer": raw["answer"], "question": raw["question"]},
    }, []


def convert_geometry3k(raw: Mapping[str, Any], index: int, split: str) -> tuple[Row, list[str]]:
    """Return the row for verl and the problems of a raw row (columns `problem`, `answer`, `images`)."""
    problems = _not_text(raw, ("problem", "answer"))
    images = raw["images"] if isinstance(raw["images"], list) else []
    if isinstance(raw["problem"], str) and (marks := raw["problem"].count("<image>")) != len(images):
        problems.append(f"<image> stands {marks} times in the problem, and there are {len(images)} images")
    for number, image in enumerate(images):
        flaw = _flaw(image)
        if flaw:
            problems.append(f"image {number} cannot be used: {flaw}")
    if problems:
        return {}, problems
    return {
        # Always this name, also for generated problems: verl picks its reward function by it.
        "data_source": "hiyouga/geometry3k",
        "prompt": [{"role": "user", "content": f"{raw['problem']} {_GEOMETRY_INSTRUCTION}"}],
        "images": [{"bytes": image["bytes"], "path": image.get("path")} for image in images],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": raw["answer"]},
        "extra_info": {"split": split, "index": index, "answer": raw["answer"], "question": raw["problem"]},
    }, []


def schema(columns: Sequence[str]) -> Any:
    """Return the Arrow schema of prepared rows; `images` is in it where it is among the raw columns."""
    pa = import_arrow()
    text = pa.string()
    image = [("images", pa.list_(pa.struct([("bytes", pa.binary()), ("path", text)])))] if "images" in columns else []
    return pa.schema(
        [
            ("data_source", text),
            ("prompt", pa.list_(pa.struct([("role", text), ("content", text)]))),
            *image,
            ("ability", text),
            ("reward_model", pa.struct([("style", text), ("ground_truth", text)])),
            ("extra_info", pa.struct([("split", text), ("index", pa.int64()), ("answer", text), ("question", text)])),
        ]
    )


def _not_text(raw: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    problems = []
    for column in columns:
        value = raw[column]
        if not isinstance(value, str):
            problems.append(f"{column} is {_shortened(value)}; expected a text")
        elif not value.strip():
            problems.append(f"{column} is empty")
    return problems


def _flaw(image: object) -> str:
    """Return what is wrong with an image, an empty text where nothing is."""
    content = image.get("bytes") if isinstance(image, dict) else None
    if not isinstance(content, bytes) or not content:
        return "it has no bytes; save the dataset with its images embedded"
    opened = import_pillow().Image.open
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # odd metadata of an image that can be shown all the same
        try:
            opened(io.BytesIO(content)).verify()
            opened(io.BytesIO(content)).load()
        except Exception as error:  # noqa: BLE001  # Pillow's decoders raise whatever broken data leads them to
            return f"{type(error).__name__}, {_MEMORY_ADDRESS.sub('', str(error))}"
    return ""


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}...{text[-15:]}"  # noqa: PLR2004  # one line of a terminal
