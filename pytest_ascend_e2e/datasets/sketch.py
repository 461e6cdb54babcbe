"""Where the lines and texts of a figure stand in a picture of a given size, and whether all texts can be read there.

Pure arithmetic in pixels, y downwards. Must not know: image libraries, problems. Sizes of texts are those of Pillow's default font
of 10 pixels, so that which figure is legible does not depend on an installed version.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from .plane import AngleLabel, Circle, Figure, LengthLabel, Point

Size = tuple[int, int]
Stroke = tuple[Point, Point]

ARC_RADIUS = 9.0
_MARGIN = 15  # round the figure, for the names of points and lengths
_LETTER_WIDTH = 6.0
_LETTER_HEIGHT = 9.0
_TOO_SHORT = 1e-6
_HALF_TURN = 180.0  # degrees
_LEAST_PULL = 0.2  # length of the sum of unit vectors above which it has a direction


class Text(NamedTuple):
    """A text and its middle."""

    text: str
    at: Point

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom edge."""
        wide, high = _LETTER_WIDTH * len(self.text) / 2, _LETTER_HEIGHT / 2
        return (self.at.x - wide, self.at.y - high, self.at.x + wide, self.at.y + high)


@dataclass(frozen=True, kw_only=True, slots=True)
class Arc:
    """The arc inside an angle: middle, and from where to where, in degrees, clockwise from the x axis as seen in the picture."""

    at: Point
    start: float
    end: float


class Sketch:
    """A figure as large as fits into `size`: its `strokes`, `rings` (middle and radius), `arcs`, `dots` and `texts`."""

    def __init__(self, figure: Figure, size: Size) -> None:
        self.size = size
        self._figure = figure
        self._scale, self._at = _fitted(figure, size)
        points = list(self._at.values())
        self._centre = Point(sum(at.x for at in points) / len(points), sum(at.y for at in points) / len(points))
        self.rings = [(self._at[ring.centre], _radius(figure, ring) * self._scale) for ring in figure.circles]
        self.dots = [self._at[ring.centre] for ring in figure.circles]
        self.arcs = [self._arc(label.name) for label in figure.angles]
        self.strokes = [(self._at[name[0]], self._at[name[1]]) for name in figure.segments]
        self.strokes += [stroke for name in figure.ticks for stroke in self._tick(name)]
        self.strokes += [stroke for name in figure.parallels for stroke in self._arrow_head(name)]
        self.strokes += [stroke for name in figure.right_angles for stroke in self._square(name)]
        self.texts = [self._angle_text(label) for label in figure.angles]
        self.texts += [self._length_text(label) for label in figure.lengths]
        self.texts += [Text(name, moved(self._at[name], self._free_side(name), 8.0)) for name in self._at if name.isupper()]

    def is_legible(self) -> bool:
        """Tell whether every text lies in the picture, and touches neither another text nor a line."""
        boxes = [text.box for text in self.texts]
        inside = all(box[0] >= 0 and box[1] >= 0 and box[2] <= self.size[0] and box[3] <= self.size[1] for box in boxes)
        apart = all(not _overlap(one, other) for index, one in enumerate(boxes) for other in boxes[:index])
        return inside and apart and not any(_crosses(stroke, box) for stroke in self.strokes for box in boxes)

    def _tick(self, name: str) -> list[Stroke]:
        middle = self._at[name[0]].between(self._at[name[1]], 0.5)
        across = _across(unit(self._at[name[0]], self._at[name[1]]))
        return [(moved(middle, across, 4), moved(middle, across, -4))]

    def _arrow_head(self, name: str) -> list[Stroke]:
        tip, along = self._at[name[0]].between(self._at[name[1]], 0.9), unit(self._at[name[0]], self._at[name[1]])
        return [(tip, moved(moved(tip, along, -5), _across(along), side)) for side in (3, -3)]

    def _square(self, name: str) -> list[Stroke]:
        first, vertex, last = (self._at[letter] for letter in name)
        one, other = unit(vertex, first), unit(vertex, last)
        corner = moved(moved(vertex, one, 6), other, 6)
        return [(moved(vertex, one, 6), corner), (moved(vertex, other, 6), corner)]

    def _arc(self, name: str) -> Arc:
        first, vertex, last = (self._at[letter] for letter in name)
        start = math.degrees(math.atan2(first.y - vertex.y, first.x - vertex.x))
        turn = (math.degrees(math.atan2(last.y - vertex.y, last.x - vertex.x)) - start) % 360.0
        if turn > _HALF_TURN:  # inside the angle, not round it
            start, turn = start + turn, 360.0 - turn
        return Arc(at=vertex, start=start, end=start + turn)

    def _angle_text(self, label: AngleLabel) -> Text:
        first, vertex, last = (self._at[letter] for letter in label.name)
        one, other = unit(vertex, first), unit(vertex, last)
        inwards = unit(Point(0, 0), Point(one.x + other.x, one.y + other.y))
        half = math.radians(self._figure.angle(label.name)) / 2
        # The text must fit between the arms: the sharper the angle, the farther from its vertex.
        away = max(7.0 / math.sin(half) + 2.0 * len(label.text), ARC_RADIUS + 3.0 + 3.0 * len(label.text))
        return Text(label.text, moved(vertex, inwards, min(away, 34.0)))

    def _length_text(self, label: LengthLabel) -> Text:
        one, other = self._at[label.name[0]], self._at[label.name[1]]
        middle = one.between(other, 0.5)
        outwards = self._outwards(middle, _across(unit(one, other)))
        is_ticked = label.name in self._figure.ticks
        away = 7.0 + 2.5 * (len(label.text) - 1) * abs(outwards.x) + (4.0 if is_ticked else 0.0)
        return Text(label.text, moved(middle, outwards, away))

    def _free_side(self, name: str) -> Point:
        """Return the direction from a point that leads away from all lines that meet there."""
        units = [unit(self._at[name], self._at[pair.replace(name, "", 1)]) for pair in self._figure.segments if name in pair]
        away = Point(-sum(one.x for one in units), -sum(one.y for one in units))
        if math.hypot(*away) > _LEAST_PULL:  # else they cancel out: the point lies inside a straight line
            return unit(Point(0, 0), away)
        return self._outwards(self._at[name], _across(units[0]))

    def _outwards(self, at: Point, direction: Point) -> Point:
        outside = (at.x - self._centre.x) * direction.x + (at.y - self._centre.y) * direction.y >= 0
        return direction if outside else Point(-direction.x, -direction.y)


def _fitted(figure: Figure, size: Size) -> tuple[float, dict[str, Point]]:
    """Return pixels per unit, and the points in pixels."""
    spans = [(at, 0.0) for at in figure.points.values()]
    spans += [(figure.points[ring.centre], _radius(figure, ring)) for ring in figure.circles]
    left, right = min(at.x - r for at, r in spans), max(at.x + r for at, r in spans)
    low, high = min(at.y - r for at, r in spans), max(at.y + r for at, r in spans)
    scale = min((size[0] - 2 * _MARGIN) / (right - left), (size[1] - 2 * _MARGIN) / (high - low))
    x, y = (left + right) / 2, (low + high) / 2
    return scale, {
        name: Point(size[0] / 2 + (at.x - x) * scale, size[1] / 2 - (at.y - y) * scale) for name, at in figure.points.items()
    }


def unit(start: Point, end: Point) -> Point:
    """Return the vector of length 1 that leads from one point to another."""
    length = max(math.dist(start, end), _TOO_SHORT)
    return Point((end.x - start.x) / length, (end.y - start.y) / length)


def moved(start: Point, direction: Point, length: float) -> Point:
    """Return the point that is `length` times `direction` away."""
    return Point(start.x + direction.x * length, start.y + direction.y * length)


def _across(direction: Point) -> Point:
    return Point(-direction.y, direction.x)


def _radius(figure: Figure, ring: Circle) -> float:
    return figure.length(ring.centre + ring.through)


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _crosses(stroke: Stroke, box: tuple[float, float, float, float]) -> bool:
    """Tell whether a line has a part inside a box (clipping by Liang and Barsky); a box is a pixel larger than its letters."""
    start, end = stroke
    enters, leaves = 0.0, 1.0
    for at, step, low, high in (
        (start.x, end.x - start.x, box[0] + 1, box[2] - 1),
        (start.y, end.y - start.y, box[1] + 1, box[3] - 1),
    ):
        if abs(step) < _TOO_SHORT:
            if not low < at < high:
                return False
            continue
        first, last = sorted(((low - at) / step, (high - at) / step))
        enters, leaves = max(enters, first), min(leaves, last)
    return enters < leaves
