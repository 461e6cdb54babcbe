"""Figures of plane geometry as data: named points, what is drawn between them, and what is written beside it.

Coordinates are in the unit of the problem (a side labelled 5 is 5 long), y points up. Must not know: pixels, problems, texts.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Point(NamedTuple):
    """A point, or the vector to it."""

    x: float
    y: float

    def towards(self, direction_deg: float, length: float) -> Point:
        """Return the point `length` away in a direction, counted anticlockwise from the x axis."""
        angle = math.radians(direction_deg)
        return Point(self.x + length * math.cos(angle), self.y + length * math.sin(angle))

    def between(self, other: Point, share: float) -> Point:
        """Return the point at a share (0 here, 1 there) of the way to another."""
        return Point(self.x + (other.x - self.x) * share, self.y + (other.y - self.y) * share)


@dataclass(frozen=True, kw_only=True, slots=True)
class AngleLabel:
    """A text inside the angle `name`: three letters, the vertex in the middle."""

    name: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthLabel:
    """A text beside the segment `name`: two letters."""

    name: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Circle:
    """A circle round the point `centre` through the point `through`."""

    centre: str
    through: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """What is to be drawn.

    Points have one letter; those with a capital are shown by name. `segments`, `ticks` (marks of equal length) and `parallels`
    (arrow heads) are pairs of letters; `right_angles` are three letters, the vertex in the middle.
    """

    points: Mapping[str, Point]
    segments: Sequence[str]
    angles: Sequence[AngleLabel] = ()
    lengths: Sequence[LengthLabel] = ()
    right_angles: Sequence[str] = ()
    ticks: Sequence[str] = ()
    parallels: Sequence[str] = ()
    circles: Sequence[Circle] = ()

    def turned(self, degrees: float, *, mirrored: bool) -> Figure:
        """Return the same figure turned round the origin, after mirroring at the y axis where `mirrored`."""
        sign = -1.0 if mirrored else 1.0
        cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        points = {name: Point(sign * at.x * cos - at.y * sin, sign * at.x * sin + at.y * cos) for name, at in self.points.items()}
        return dataclasses.replace(self, points=points)

    def length(self, name: str) -> float:
        """Return the length of the segment `name`."""
        return math.dist(self.points[name[0]], self.points[name[1]])

    def angle(self, name: str) -> float:
        """Return the angle `name` in degrees, 0 to 180."""
        first, vertex, last = (self.points[letter] for letter in name)
        one = math.atan2(first.y - vertex.y, first.x - vertex.x)
        other = math.atan2(last.y - vertex.y, last.x - vertex.x)
        turn = abs(math.degrees(one - other)) % 360.0
        return min(turn, 360.0 - turn)

    def area(self, name: str) -> float:
        """Return the area of the polygon with the corners `name`, in the order of the letters."""
        corners = [self.points[letter] for letter in name]
        following = corners[1:] + corners[:1]
        return abs(sum(a.x * b.y - b.x * a.y for a, b in zip(corners, following, strict=True))) / 2.0

    def perimeter(self, name: str) -> float:
        """Return the length of the border of the polygon with the corners `name`."""
        return sum(self.length(a + b) for a, b in zip(name, name[1:] + name[:1], strict=True))


def triangle(first: str, second: str, third: str, *, base: float, at_first: float, at_second: float) -> dict[str, Point]:
    """Return the corners of a triangle from its base and the two angles on it, in degrees; the base lies on the x axis."""
    apex = 180.0 - at_first - at_second
    side = base * math.sin(math.radians(at_second)) / math.sin(math.radians(apex))
    start = Point(0.0, 0.0)
    return {first: start, second: Point(base, 0.0), third: start.towards(at_first, side)}
