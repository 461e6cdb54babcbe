"""The kinds of geometry problem about lengths and areas: similar triangles, quadrilaterals with parallel sides, circles.

Must not know: pixels, rows, files; as in `geometry_kinds`, a figure is drawn to the values of its problem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .difficulty import Difficulty
from .geometry_kinds import GeometryProblem, Quantity
from .plane import Circle, Figure, LengthLabel, Point, triangle

if TYPE_CHECKING:
    from random import Random


def similar_triangles(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """A parallel to a side cuts a triangle; three lengths are labelled, and the side, x, is asked."""
    if difficulty is Difficulty.SIMPLE:
        part, ratio, cut = rng.randint(2, 4), rng.randint(2, 3), rng.randint(3, 6)
        rest, side = part * (ratio - 1), cut * ratio
    else:
        part, rest, unit = rng.randint(2, 9), rng.randint(2, 9), rng.randint(1, 3)
        cut, side = part * unit, (part + rest) * unit
    apex = Point(0, 0)
    down = 240.0 + rng.randrange(0, 21, 10)
    first, inner = apex.towards(down, part + rest), apex.towards(down, part)
    points = {
        "A": apex,
        "B": first,
        "C": Point(first.x + side, first.y),
        "D": inner,
        "E": Point(inner.x + cut, inner.y),
    }
    return GeometryProblem(
        kind="similar_triangles",
        text="DE is parallel to BC. Find x.",
        answer=str(side),
        figure=Figure(
            points=points,
            segments=("AD", "DB", "AE", "EC", "DE", "BC"),
            lengths=tuple(
                LengthLabel(name=name, text=text)
                for name, text in (("AD", str(part)), ("DB", str(rest)), ("DE", str(cut)), ("BC", "x"))
            ),
        ),
        quantity=Quantity.LENGTH,
        of="BC",
    )


def rectangle(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """Two sides of a rectangle are given; its area or perimeter is asked."""
    most = 6 if difficulty is Difficulty.SIMPLE else 20
    height = rng.randint(2, most // 2 + 1)
    width = rng.randint(height + 1, min(most, 3 * height) + 1)
    quantity = rng.choice((Quantity.AREA, Quantity.PERIMETER))
    answer = width * height if quantity is Quantity.AREA else 2 * (width + height)
    return GeometryProblem(
        kind="rectangle",
        text=f"Rectangle ABCD has AB = {width} and BC = {height}. Find the {quantity.value}.",
        answer=str(answer),
        figure=Figure(
            points={"A": Point(0, 0), "B": Point(width, 0), "C": Point(width, height), "D": Point(0, height)},
            segments=("AB", "BC", "CD", "DA"),
            lengths=(LengthLabel(name="AB", text=str(width)), LengthLabel(name="BC", text=str(height))),
            right_angles=("DAB", "ABC", "BCD", "CDA"),
        ),
        quantity=quantity,
        of="ABCD",
        is_stated=True,
    )


def parallelogram(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """Base and height of a parallelogram are labelled; its area is asked."""
    most = 6 if difficulty is Difficulty.SIMPLE else 20
    base = rng.randint(4, most)
    height = rng.randint(max(2, base // 2), base - 1)
    shift = base / rng.choice((2.5, 3.0))
    is_stated = difficulty is Difficulty.SIMPLE
    points = {
        "A": Point(0, 0),
        "B": Point(base, 0),
        "C": Point(base + shift, height),
        "D": Point(shift, height),
        "E": Point(shift, 0),
    }
    return GeometryProblem(
        kind="parallelogram",
        text=f"Parallelogram ABCD has CD = {base} and height DE = {height}. Find the area."
        if is_stated
        else "Find the area of the parallelogram.",
        answer=str(base * height),
        figure=Figure(
            points=points,
            segments=("AB", "BC", "CD", "DA", "DE"),
            # The base is labelled at its equal opposite side, where no height ends.
            lengths=(LengthLabel(name="CD", text=str(base)), LengthLabel(name="DE", text=str(height))),
            right_angles=("DEB",),
        ),
        quantity=Quantity.AREA,
        of="ABCD",
        is_stated=is_stated,
    )


def trapezoid(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """The parallel sides of a trapezoid are labelled; the middle line, x, is asked, or with the height the area."""
    most = 4 if difficulty is Difficulty.SIMPLE else 10
    top = rng.randint(2, most)
    bottom = top + 2 * rng.randint(1, 2 if difficulty is Difficulty.SIMPLE else 4)
    height = rng.randint(max(2, bottom // 3), max(3, bottom // 2 + 1))
    shift = (bottom - top) * rng.choice((0.3, 0.5))
    points = {"A": Point(0, 0), "B": Point(bottom, 0), "C": Point(shift + top, height), "D": Point(shift, height)}
    lengths = [LengthLabel(name="CD", text=str(top)), LengthLabel(name="AB", text=str(bottom))]
    asks_area = rng.choice((True, False))
    if asks_area:
        points["E"] = Point(shift, 0)
        lengths.append(LengthLabel(name="DE", text=str(height)))
    else:
        points["E"], points["F"] = points["A"].between(points["D"], 0.5), points["B"].between(points["C"], 0.5)
        lengths.append(LengthLabel(name="EF", text="x"))
    return GeometryProblem(
        kind="trapezoid",
        text="Find the area of the trapezoid." if asks_area else "Find the middle line x of the trapezoid.",
        answer=str((top + bottom) // 2 * height if asks_area else (top + bottom) // 2),
        figure=Figure(
            points=points,
            segments=("AB", "BC", "CD", "DA", "DE") if asks_area else ("AB", "BF", "FC", "CD", "DE", "EA", "EF"),
            lengths=tuple(lengths),
            right_angles=("DEB",) if asks_area else (),
        ),
        quantity=Quantity.AREA if asks_area else Quantity.LENGTH,
        of="ABCD" if asks_area else "EF",
    )


def circle(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """The radius of a circle is given; the diameter is asked, in full problems also circumference and area."""
    radius = rng.randint(2, 9) if difficulty is Difficulty.SIMPLE else rng.randint(2, 25)
    asked = {
        Quantity.LENGTH: ("diameter AB", str(2 * radius), "AB"),
        Quantity.CIRCUMFERENCE: ("circumference", rf"{2 * radius} \pi", "OA"),
        Quantity.DISC_AREA: ("area", rf"{radius * radius} \pi", "OA"),
    }
    quantity = Quantity.LENGTH if difficulty is Difficulty.SIMPLE else rng.choice(tuple(asked))
    name, answer, of = asked[quantity]
    return GeometryProblem(
        kind="circle",
        text=f"Circle O has radius OA = {radius}. Find the {name}.",
        answer=answer,
        figure=Figure(
            points={"O": Point(0, 0), "A": Point(-radius, 0), "B": Point(radius, 0)},
            segments=("AO", "OB"),
            lengths=(LengthLabel(name="OA", text=str(radius)),),
            circles=(Circle(centre="O", through="A"),),
        ),
        quantity=quantity,
        of=of,
        is_stated=True,
    )


def equilateral(rng: Random, difficulty: Difficulty) -> GeometryProblem:
    """Three sides of a triangle are marked as equal and one is labelled; the perimeter is asked."""
    side = rng.randint(2, 9 if difficulty is Difficulty.SIMPLE else 60)
    is_stated = difficulty is Difficulty.SIMPLE
    given = f"In triangle ABC, AB = {side}. " if is_stated else ""
    return GeometryProblem(
        kind="equilateral",
        text=f"{given}All sides are equal. Find the perimeter of the triangle.",
        answer=str(3 * side),
        figure=Figure(
            points=triangle("A", "B", "C", base=side, at_first=60, at_second=60),
            segments=("AB", "BC", "CA"),
            ticks=("AB", "BC", "CA"),
            lengths=(LengthLabel(name="AB", text=str(side)),),
        ),
        quantity=Quantity.PERIMETER,
        of="ABC",
        is_stated=is_stated,
    )
