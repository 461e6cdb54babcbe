"""Figures as PNG pictures.

Owns what Pillow draws. Must not know: problems, or where anything stands; a sketch says that.
"""

from __future__ import annotations

import io
from typing import Any

from .sketch import ARC_RADIUS, Sketch

_INK = (0, 0, 0)
_PAPER = (255, 255, 255)
_FINE = 3  # lines are drawn this many times larger and then reduced, which smooths them
_DOT_RADIUS = 1.5


def draw(sketch: Sketch) -> bytes:
    """Return the picture of a sketch as PNG."""
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415  # only who draws needs Pillow

    fine = Image.new("RGB", (sketch.size[0] * _FINE, sketch.size[1] * _FINE), _PAPER)
    _draw_lines(ImageDraw.Draw(fine), sketch)
    image = fine.reduce(_FINE)
    pen, font = ImageDraw.Draw(image), ImageFont.load_default()
    for text, at in sketch.texts:
        left, top, right, bottom = pen.textbbox((0, 0), text, font=font)
        pen.text((round(at.x - (left + right) / 2), round(at.y - (top + bottom) / 2)), text, font=font, fill=_INK)
    png = io.BytesIO()
    image.save(png, "PNG", compress_level=1)
    return png.getvalue()


def _draw_lines(pen: Any, sketch: Sketch) -> None:
    for at, radius in sketch.rings:
        pen.ellipse(_box(at, radius), outline=_INK, width=_FINE)
    for at in sketch.dots:
        pen.ellipse(_box(at, _DOT_RADIUS), fill=_INK)
    for arc in sketch.arcs:
        pen.arc(_box(arc.at, ARC_RADIUS), arc.start, arc.end, fill=_INK, width=_FINE - 1)
    for start, end in sketch.strokes:
        pen.line([edge * _FINE for edge in (*start, *end)], fill=_INK, width=_FINE)


def _box(at: tuple[float, float], radius: float) -> list[float]:
    return [edge * _FINE for edge in (at[0] - radius, at[1] - radius, at[0] + radius, at[1] + radius)]
