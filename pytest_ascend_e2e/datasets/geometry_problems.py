"""A stream of geometry problems with pictures, in the raw schema of geometry3k.

Must not know: files, prompts for training.
"""

from __future__ import annotations

import zlib
from random import Random
from typing import TYPE_CHECKING, Any

from . import geometry_kinds as angles
from . import geometry_measures as measures
from .difficulty import Difficulty
from .drawing import draw
from .sketch import Size, Sketch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .geometry_kinds import GeometryProblem

KINDS = (
    angles.triangle_sum,
    angles.isosceles,
    angles.right_triangle,
    angles.parallel_lines,
    angles.inscribed_angle,
    angles.exterior_angle,
    angles.quadrilateral_sum,
    measures.similar_triangles,
    measures.rectangle,
    measures.parallelogram,
    measures.trapezoid,
    measures.circle,
    measures.equilateral,
)

# Multiples of 32, one visual token of Qwen-VL models (patches of 16, merged 2 by 2): 9, 12 or 16 tokens a picture.
SIZES: tuple[Size, ...] = ((96, 96), (128, 96), (96, 128), (128, 128))

_LARGEST_TURN = 12.0  # degrees
_TURNS = 20  # how many are tried for one problem before it is dropped as illegible
_TEST_SHARE = 8  # one problem in so many belongs to the test split


def geometry_problems(
    split: str, *, seed: int = 0, difficulty: Difficulty = Difficulty.SIMPLE
) -> Iterator[tuple[GeometryProblem, Sketch]]:
    """Yield problems without end, each with a legible sketch of its figure; a sketch of the split "test" is in no other split."""
    rng = Random(f"geometry {split} {seed} {difficulty.value}")  # noqa: S311  # repeatable, not secret
    while True:
        problem = rng.choice(KINDS)(rng, difficulty)
        sketch = _legible(problem, rng)
        if sketch is not None and (_fingerprint(problem, sketch) % _TEST_SHARE == 0) == (split == "test"):
            yield problem, sketch


def geometry_rows(split: str, *, seed: int = 0, difficulty: Difficulty = Difficulty.SIMPLE) -> Iterator[dict[str, Any]]:
    """Yield rows in geometry3k's raw schema without end: `problem` (begins with `<image>`), `answer`, `images` (one PNG)."""
    for problem, sketch in geometry_problems(split, seed=seed, difficulty=difficulty):
        yield {
            "problem": f"<image>{problem.text}",
            "answer": problem.answer,
            "images": [{"bytes": draw(sketch), "path": None}],
        }


def _legible(problem: GeometryProblem, rng: Random) -> Sketch | None:
    for _ in range(_TURNS):
        turned = problem.figure.turned(rng.uniform(-_LARGEST_TURN, _LARGEST_TURN), mirrored=bool(rng.getrandbits(1)))
        sketch = Sketch(turned, rng.choice(SIZES))
        if sketch.is_legible():
            return sketch
    return None


def _fingerprint(problem: GeometryProblem, sketch: Sketch) -> int:
    strokes = [round(edge, 3) for stroke in sketch.strokes for at in stroke for edge in at]
    texts = sorted(text.text for text in sketch.texts)
    return zlib.crc32(repr((problem.text, problem.answer, sketch.size, strokes, texts)).encode())
