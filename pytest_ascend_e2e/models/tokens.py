"""Trains the tokenizer of a tiny model: byte-level BPE that splits and names its special tokens as Qwen's does.

Runs in the child process only. Must not know: networks, or what the texts are about.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

VOCABULARY_SIZE = 768
PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
VISION_START, VISION_END, VISION_PAD, IMAGE, VIDEO = (
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
_SPECIAL = (PAD, START, END, VISION_START, VISION_END, VISION_PAD, IMAGE, VIDEO)
# Part of the text for the decoder, so that a reward function sees them.
_THOUGHT = ("<think>", "</think>")
# Words with at most one sign before them, single digits, runs of other signs, line ends, spaces.
_PIECES = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
_ROLES = "\n".join(["system\nuser\nassistant\n"] * 100)


def train_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Return a tokenizer of at most `VOCABULARY_SIZE` tokens trained on these texts, with a chat template without tools."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE - len(_THOUGHT),
        special_tokens=list(_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator([*texts, _ROLES], trainer)
    bpe.add_tokens([AddedToken(token, special=False, normalized=False) for token in _THOUGHT])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=[token for token in _SPECIAL if token not in (PAD, END)],
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = (Path(__file__).parent / "chat_template.jinja").read_text(encoding="utf-8")
    return tokenizer
