"""Warms up a tiny model: a short supervised training on lessons, and the reward that it then has at sampling temperature 1.

Runs in the child process only. Must not know: where models are kept.
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from transformers import PreTrainedModel, PreTrainedTokenizerFast, Qwen2VLImageProcessorPil

from . import networks, tokens
from .lessons import Lesson

_LEARNING_RATE = 4e-3
_RAMP_STEPS = 20
_BARE_SHARE = 2 / 3
_EXAM_SIZE = 96
_EXAM_TOKENS = 64
_NO_TARGET = -100


@dataclass(frozen=True, kw_only=True)
class _Prompt:
    """A lesson whose prompt is tokens, and whose images are patches with their grid of (frames, rows, columns)."""

    lesson: Lesson
    ids: list[int]
    patches: torch.Tensor | None
    grid: torch.Tensor | None


class Pupil:
    """A network with its tokenizer, and what is done with both: prepare prompts, learn, be examined."""

    def __init__(self, network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
        self._network = network
        self._tokenizer = tokenizer
        self._image_id: int = tokenizer.convert_tokens_to_ids(tokens.IMAGE)
        self._image_processor = Qwen2VLImageProcessorPil(**networks.image_processor_settings())

    def learn(self, lessons: Sequence[Lesson], *, steps: int, batch_size: int, seed: int) -> Iterator[float]:
        """Train for `steps` batches; yield the loss of each.

        The first two thirds are bare questions: figures and instructions cost most of the time and say least about the answer.
        """
        rng = random.Random(seed)  # noqa: S311  # an order of lessons, no secret
        bare, whole = [self._question(lesson) for lesson in lessons], [self._prompt(lesson) for lesson in lessons]
        optimizer = torch.optim.AdamW(self._network.parameters(), lr=_LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0)
        self._network.train()
        order: list[int] = []
        for step in range(steps):
            if len(order) < batch_size:
                order = rng.sample(range(len(lessons)), len(lessons)) + order
            prompts = bare if step < _BARE_SHARE * steps else whole
            batch = [prompts[order.pop()] for _ in range(min(batch_size, len(order)))]
            rate = _LEARNING_RATE * min((step + 1) / _RAMP_STEPS, 1 - step / steps)
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss = self._loss(batch, rng)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self._network.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            yield loss.item()

    @torch.no_grad()  # type: ignore[untyped-decorator]  # torch is not followed
    def examine(self, lessons: Sequence[Lesson], *, seed: int) -> tuple[list[float], list[str]]:
        """Return the rewards of one response for each of up to 96 lessons, sampled at temperature 1, and the responses."""
        chosen = [self._prompt(lesson) for lesson in lessons[:_EXAM_SIZE]]
        width = max(len(prompt.ids) for prompt in chosen)
        pad = self._tokenizer.pad_token_id
        ids = torch.tensor([[pad] * (width - len(prompt.ids)) + prompt.ids for prompt in chosen])
        mask = torch.tensor([[0] * (width - len(prompt.ids)) + [1] * len(prompt.ids) for prompt in chosen])
        self._network.eval()
        torch.manual_seed(seed)
        output = self._network.generate(
            ids,
            attention_mask=mask,
            **self._image_inputs(chosen, ids),
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            max_new_tokens=_EXAM_TOKENS,
        )
        responses = [self._tokenizer.decode(row, skip_special_tokens=True) for row in output[:, width:]]
        return [prompt.lesson.reward(response) for prompt, response in zip(chosen, responses, strict=True)], responses

    def _question(self, lesson: Lesson) -> _Prompt:
        return _Prompt(lesson=lesson, ids=self._encode(self._chat(lesson.question)), patches=None, grid=None)

    def _chat(self, content: str) -> str:
        text: str = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
        )
        return text

    def _prompt(self, lesson: Lesson) -> _Prompt:
        text = self._chat(lesson.prompt)
        patches = grid = None
        if lesson.images:
            figures = [Image.open(io.BytesIO(image)).convert("RGB") for image in lesson.images]
            features = self._image_processor(figures, return_tensors="pt")
            patches, grid = features["pixel_values"], features["image_grid_thw"]
            for count in (grid.prod(dim=1) // self._image_processor.merge_size**2).tolist():
                text = text.replace("<image>", f"{tokens.VISION_START}{tokens.IMAGE * count}{tokens.VISION_END}", 1)
        return _Prompt(lesson=lesson, ids=self._encode(text), patches=patches, grid=grid)

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def _loss(self, batch: Sequence[_Prompt], rng: random.Random) -> torch.Tensor:
        answers = [self._encode(prompt.lesson.answer(rng) + tokens.END) for prompt in batch]
        width = max(len(prompt.ids) + len(answer) for prompt, answer in zip(batch, answers, strict=True))
        ids = torch.full((len(batch), width), self._tokenizer.pad_token_id)
        targets = torch.full_like(ids, _NO_TARGET)
        for row, (prompt, answer) in enumerate(zip(batch, answers, strict=True)):
            end = len(prompt.ids) + len(answer)
            ids[row, :end] = torch.tensor(prompt.ids + answer)
            targets[row, len(prompt.ids) - 1 : end - 1] = torch.tensor(answer)
        hidden = self._network.base_model(input_ids=ids, use_cache=False, **self._image_inputs(batch, ids)).last_hidden_state
        taught = targets != _NO_TARGET
        return torch.nn.functional.cross_entropy(self._network.lm_head(hidden[taught]), targets[taught])

    def _image_inputs(self, batch: Sequence[_Prompt], ids: torch.Tensor) -> dict[str, Any]:
        patches = [prompt.patches for prompt in batch if prompt.patches is not None]
        grids = [prompt.grid for prompt in batch if prompt.grid is not None]
        if not patches:
            return {}
        return {
            "pixel_values": torch.cat(patches),
            "image_grid_thw": torch.cat(grids),
            "mm_token_type_ids": (ids == self._image_id).int(),
        }
