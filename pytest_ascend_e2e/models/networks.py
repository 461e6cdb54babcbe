"""The networks of the tiny models: configurations of Qwen's architectures that a CPU trains in seconds, and their processor files.

Runs in the child process only. Must not know: datasets, training.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)
from typing_extensions import assert_never

from . import tokens
from .architectures import Architecture, tiny_sizes

_HIDDEN = tiny_sizes("qwen3")["hidden_size"]
_PATCH, _MERGE, _FRAMES = 16, 2, 2
# One to four image tokens a figure: (side / (patch x merge)) squared. More would cost more than a network of this size can see.
_PIXELS = {"shortest_edge": (_PATCH * _MERGE) ** 2, "longest_edge": (2 * _PATCH * _MERGE) ** 2}


def build_network(architecture: Architecture, tokenizer: PreTrainedTokenizerFast, *, seed: int) -> PreTrainedModel:
    """Return a network of this architecture with random float32 weights, a function of the seed."""
    torch.manual_seed(seed)
    match architecture:
        case "qwen3":
            network: PreTrainedModel = Qwen3ForCausalLM(Qwen3Config(**_text(tokenizer, architecture)))
        case "qwen3_moe":
            network = Qwen3MoeForCausalLM(Qwen3MoeConfig(**_text(tokenizer, architecture), norm_topk_prob=True))
        case "qwen3_vl":
            network = Qwen3VLForConditionalGeneration(_vision_config(tokenizer))
        case _:
            assert_never(architecture)
    return network.to(torch.float32)


def image_processor_settings() -> Mapping[str, Any]:
    """Return the settings of the image processor of the tiny vision model."""
    return {
        "patch_size": _PATCH,
        "temporal_patch_size": _FRAMES,
        "merge_size": _MERGE,
        "size": dict(_PIXELS),
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }


def write_processors(directory: Path) -> None:
    """Write what `AutoProcessor` needs beside the tokenizer of a vision model: image and video processor, and their owner."""
    owner = "Qwen3VLProcessor"
    image = {"image_processor_type": "Qwen2VLImageProcessor", "processor_class": owner, **image_processor_settings()}
    video = {"video_processor_type": "Qwen3VLVideoProcessor", "processor_class": owner, **image_processor_settings()}
    (directory / "preprocessor_config.json").write_text(json.dumps(image, indent=1), encoding="utf-8")
    (directory / "video_preprocessor_config.json").write_text(json.dumps(video, indent=1), encoding="utf-8")
    settings_path = directory / "tokenizer_config.json"
    settings = {**json.loads(settings_path.read_text(encoding="utf-8")), "processor_class": owner}
    settings_path.write_text(json.dumps(settings, indent=1), encoding="utf-8")


def _text(tokenizer: PreTrainedTokenizerFast, architecture: Architecture) -> dict[str, Any]:
    return {
        **tiny_sizes(architecture),
        "vocab_size": len(tokenizer),
        "intermediate_size": 4 * _HIDDEN,
        "tie_word_embeddings": False,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
    }


def _vision_config(tokenizer: PreTrainedTokenizerFast) -> Qwen3VLConfig:
    # The sections share the 16 rotated pairs of a head of 32 among time, height and width.
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [6, 5, 5], "mrope_interleaved": True}
    vision = {
        "depth": 2,
        "hidden_size": _HIDDEN,
        "intermediate_size": 2 * _HIDDEN,
        "num_heads": 2,
        "out_hidden_size": _HIDDEN,
        "patch_size": _PATCH,
        "spatial_merge_size": _MERGE,
        "temporal_patch_size": _FRAMES,
        "deepstack_visual_indexes": [0],
        "num_position_embeddings": 64,
    }
    return Qwen3VLConfig(
        text_config={**_text(tokenizer, "qwen3_vl"), "rope_parameters": rope},
        vision_config=vision,
        image_token_id=tokenizer.convert_tokens_to_ids(tokens.IMAGE),
        video_token_id=tokenizer.convert_tokens_to_ids(tokens.VIDEO),
        vision_start_token_id=tokenizer.convert_tokens_to_ids(tokens.VISION_START),
        vision_end_token_id=tokenizer.convert_tokens_to_ids(tokens.VISION_END),
        tie_word_embeddings=False,
    )
