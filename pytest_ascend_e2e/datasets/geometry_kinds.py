"""The kinds of geometry problem: each draws its numbers, and gives the question, the exact answer and the figure to these numbers.

Must not know: pixels, rows, files. A figure is drawn to the values of its problem, so that what is asked can be measured in it.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from .difficulty import Difficulty
from .plane import AngleLabel, Circle, Figure, LengthLabel, Point, triangle

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

T = TypeVar("T")

_TRIPLES = ((3, 4, 5), (6, 8, 10), (9, 12, 15), (5, 12, 13), (8, 15, 17))
_TRIES = 10_000
_TOLERANCE = 1e-6
_MOST_OF_TWO = 150  # degrees: what two angles of a triangle may take, for a third that can be seen
_LEAST_CORNER, _MOST_CORNER = 50, 130  # degrees, for the corners of a quadrilateral
_LEAST_SIDE = 0.45  # of the side AB


class Quantity(enum.Enum):
    """What kind of thing is asked."""

    ANGLE = "angle"
    LENGTH = "length"
    AREA = "area"
    PERIMETER = "perimeter"
    DISC_AREA = "area of a circle"
    CIRCUMFERENCE = "circumference"


@dataclass(frozen=True, kw_only=True, slots=True)
class GeometryProblem:
    r"""A question with its figure and its exact answer, in the notation of geometry3k (`60`, `2 \sqrt { 13 }`, `12 \pi`).

    `quantity` and `of` (letters of the figure: the angle, segment or polygon; centre and border point of a circle) say what is
    asked in terms of the figure; `is_stated` tells whether the text gives the values that the figure shows.
    """

    kind: str
    text: str
    answer: str
    figure: Figure
    quantity: Quantity
    of: str
    is_stated: bool = False


def _until(draw: Callable[[], T], accept: Callable[[T], bool]) -> T:
    for _ in range(_TRIES):
        drawn = draw()
        if accept(drawn):
            return drawn
    raise RuntimeError(f"no acceptable numbers in {_TRIES} draws: the conditions of this kind of problem contradict each other")


def _degrees(rng: Random, difficulty: Difficulty, low: int, high: int) -> int:
    """Draw an angle: tens in simple problems (`low` and `high` are tens), any whole degrees in full ones."""
    return rng.randrange(low, high + 1, 10 if difficulty is Difficulty.SIMPLE else 1)


def _two_angles(rng: Random, difficulty: Difficulty) -> tuple[int, int]:
    """Draw two angles of a triangle that leave at least 30 degrees for the third."""
    return _until(
        lambda: (_degrees(rng, difficulty, 30, 100), _degrees(rng, difficulty, 30, 100)),
        lambda pair: sum(pair) <= _MOST_OF_TWO,
    )


def root_text(square: int) -> str:
    r"""Return the square root of a whole number in geometry3k's notation: `6`, `\sqrt { 7 }`, `2 \sqrt { 13 }`."""
    outside = max(n for n in range(1, math.isqrt(square) + 1) if square % (n * n) == 0)
    inside = square // (outside * outside)
    if inside == 1:
        return str(outside)
    return rf"\sqrt {{ {inside} }}" if outside == 1 else rf"{outside} \sqrt {{ {inside} }}"


def triangle_sum(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """Two angles of a triangle are labelled; the third is asked."""
    a, b = _two_angles(rng, difficulty)
    is_stated = difficulty is Difficulty.SIMPLE
    figure = Figure(
        points=triangle("A", "B", "C", base=1, at_first=a, at_second=b),
        segments=("AB", "BC", "CA"),
        angles=(AngleLabel(name="BAC", text=str(a)), AngleLabel(name="ABC", text=str(b))),
    )
    return GeometryProblem(
        kind="triangle_sum",
        text=f"In triangle ABC, angle A is {a} and angle B is {b}. Find angle C." if is_stated else "Find angle C of the triangle.",
        answer=str(180 - a - b),
        figure=figure,
        quantity=Quantity.ANGLE,
        of="ACB",
        is_stated=is_stated,
    )


def isosceles(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """Two sides are marked as equal; from the angle at the top one at the base is asked, or the other way round."""
    base = _degrees(rng, difficulty, 30, 70)
    top = 180 - 2 * base
    points = triangle("B", "C", "A", base=1, at_first=base, at_second=base)
    asks_base = rng.choice((True, False))
    given, value, wanted, answer = ("A", top, "B", base) if asks_base else ("B", base, "A", top)
    names = {"A": "BAC", "B": "ABC"}
    return GeometryProblem(
        kind="isosceles",
        text=f"In triangle ABC, AB = AC and angle {given} is {value}. Find angle {wanted}.",
        answer=str(answer),
        figure=Figure(
            points=points,
            segments=("AB", "BC", "CA"),
            ticks=("AB", "AC"),
            angles=(AngleLabel(name=names[given], text=str(value)),),
        ),
        quantity=Quantity.ANGLE,
        of=names[wanted],
        is_stated=True,
    )


def right_triangle(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """Two sides of a right triangle are labelled; the third, x, is asked."""
    if difficulty is Difficulty.SIMPLE:
        leg, other, slant = rng.choice(_TRIPLES)
        squares = (leg * leg, other * other, slant * slant)
        wanted = rng.choice((1, 2))
    else:
        leg, other = _until(lambda: (rng.randint(2, 15), rng.randint(2, 15)), lambda legs: max(legs) <= 3 * min(legs))
        squares = (leg * leg, other * other, leg * leg + other * other)
        wanted = 2
    sides = ("AC", "BC", "AB")
    texts = [str(math.isqrt(square)) for square in squares]
    texts[wanted] = "x"
    figure = Figure(
        points={"C": Point(0, 0), "A": Point(0, leg), "B": Point(other, 0)},
        segments=sides,
        lengths=tuple(LengthLabel(name=name, text=text) for name, text in zip(sides, texts, strict=True)),
        right_angles=("ACB",),
    )
    return GeometryProblem(
        kind="right_triangle",
        text="Find x in the right triangle.",
        answer=root_text(squares[wanted]),
        figure=figure,
        quantity=Quantity.LENGTH,
        of=sides[wanted],
    )


def parallel_lines(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """A line crosses two parallels; one angle is labelled, and one at the other crossing, x, is asked."""
    slope = _degrees(rng, difficulty, 40, 140)
    upper, lower = Point(0, 0), Point(0, 0).towards(slope, -1.0)
    points = {
        "e": upper,
        "f": lower,
        "a": Point(-0.8, upper.y),
        "b": Point(0.8, upper.y),
        "c": Point(lower.x - 0.8, lower.y),
        "d": Point(lower.x + 0.8, lower.y),
        "g": upper.towards(slope, 0.7),
        "h": lower.towards(slope, -0.7),
    }
    given, wanted, is_equal = rng.choice((("geb", "efd", True), ("aef", "efd", True), ("bef", "efd", False), ("gea", "efd", False)))
    value = slope if is_equal else 180 - slope
    return GeometryProblem(
        kind="parallel_lines",
        text="Two lines are parallel. Find x.",
        answer=str(slope),
        figure=Figure(
            points=points,
            segments=("ae", "eb", "cf", "fd", "ge", "ef", "fh"),
            parallels=("ab", "cd"),
            angles=(AngleLabel(name=given, text=str(value)), AngleLabel(name=wanted, text="x")),
        ),
        quantity=Quantity.ANGLE,
        of=wanted,
    )


def inscribed_angle(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """The angle at the centre of a circle is labelled; the one on the circle over the same arc is asked."""
    half = _degrees(rng, difficulty, 30, 70)
    is_stated = difficulty is Difficulty.SIMPLE
    centre = Point(0, 0)
    lean = rng.randrange(-30, 31, 10)
    points = {
        "O": centre,
        "A": centre.towards(270 - half, 1),
        "B": centre.towards(270 + half, 1),
        "C": centre.towards(90 + lean, 1),
    }
    return GeometryProblem(
        kind="inscribed_angle",
        text=f"In circle O, angle AOB is {2 * half}. Find angle C." if is_stated else "Find angle C in circle O.",
        answer=str(half),
        figure=Figure(
            points=points,
            segments=("OA", "OB", "CA", "CB"),
            circles=(Circle(centre="O", through="A"),),
            angles=(AngleLabel(name="AOB", text=str(2 * half)),),
        ),
        quantity=Quantity.ANGLE,
        of="ACB",
        is_stated=is_stated,
    )


def exterior_angle(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """Two angles of a triangle are labelled; the one outside at the third corner is asked."""
    a, b = _two_angles(rng, difficulty)
    is_stated = difficulty is Difficulty.SIMPLE
    given = f"In triangle ABC, angle A is {a} and angle B is {b}. " if is_stated else ""
    points = triangle("B", "C", "A", base=1, at_first=b, at_second=180 - a - b)
    points["D"] = Point(1.4, 0)
    return GeometryProblem(
        kind="exterior_angle",
        text=f"{given}Find angle ACD outside the triangle.",
        answer=str(a + b),
        figure=Figure(
            points=points,
            segments=("AB", "BC", "CA", "CD"),
            angles=(AngleLabel(name="BAC", text=str(a)), AngleLabel(name="ABC", text=str(b))),
        ),
        quantity=Quantity.ANGLE,
        of="ACD",
        is_stated=is_stated,
    )


def quadrilateral_sum(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """Three angles of a quadrilateral are labelled; the fourth is asked."""

    def drawn() -> tuple[tuple[int, int, int], Figure]:
        a, b, c = (_degrees(rng, difficulty, 60, 130) for _ in range(3))
        points = _quadrilateral(a, b, 360 - a - b - c, side=rng.uniform(0.5, 1.1))
        labels = tuple(AngleLabel(name=name, text=str(value)) for name, value in (("DAB", a), ("ABC", b), ("BCD", c)))
        return (a, b, c), Figure(points=points, segments=("AB", "BC", "CD", "DA"), angles=labels)

    (a, b, c), figure = _until(drawn, lambda draw: _is_roomy(draw[1], 360 - sum(draw[0])))
    return GeometryProblem(
        kind="quadrilateral_sum",
        text=f"In quadrilateral ABCD, angle A is {a}, angle B is {b} and angle C is {c}. Find angle D.",
        answer=str(360 - a - b - c),
        figure=figure,
        quantity=Quantity.ANGLE,
        of="CDA",
        is_stated=True,
    )


def _is_roomy(figure: Figure, last_angle: int) -> bool:
    """Tell whether the drawn quadrilateral has the labelled angles (else two sides cross) and room for its labels."""
    if not _LEAST_CORNER <= last_angle <= _MOST_CORNER:
        return False
    is_true = all(abs(figure.angle(label.name) - int(label.text)) < _TOLERANCE for label in figure.angles)
    return is_true and min(figure.length(name) for name in figure.segments) > _LEAST_SIDE


def _quadrilateral(a: int, b: int, d: int, *, side: float) -> dict[str, Point]:
    """Return the corners to the angles at A, B and D with AB = 1 and AD = `side`: C is where the rays from B and D meet."""
    start, end = Point(0, 0), Point(1, 0)
    corner = start.towards(a, side)
    from_corner, from_end = math.radians(a - 180 + d), math.radians(180 - b)
    across = math.sin(from_end - from_corner)
    if abs(across) < _TOLERANCE:  # the rays are parallel: no quadrilateral
        return {"A": start, "B": end, "C": end, "D": corner}
    reach = ((end.x - corner.x) * math.sin(from_end) - (end.y - corner.y) * math.cos(from_end)) / across
    return {"A": start, "B": end, "C": corner.towards(a - 180 + d, reach), "D": corner}
