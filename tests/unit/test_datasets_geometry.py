"""Generated geometry problems: true figures, exact answers, pictures that can be read."""

from __future__ import annotations

import io
import itertools
import math
import re
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pytest_ascend_e2e.datasets import Difficulty, geometry_rows
from pytest_ascend_e2e.datasets.drawing import draw
from pytest_ascend_e2e.datasets.geometry_kinds import GeometryProblem, Quantity, root_text
from pytest_ascend_e2e.datasets.geometry_problems import KINDS, SIZES, geometry_problems
from pytest_ascend_e2e.datasets.plane import Figure, LengthLabel, Point
from pytest_ascend_e2e.datasets.sketch import Sketch

if TYPE_CHECKING:
    from collections.abc import Callable

    Kind = Callable[[Random, Difficulty], GeometryProblem]

EVERY_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
SEEDS = st.integers(min_value=0, max_value=2**32)
LEVELS = st.sampled_from(Difficulty)


def value_of(answer: str) -> float:
    """Read an answer in geometry3k's notation."""
    match = re.fullmatch(r"(?P<factor>\d+)?\s*(?:\\sqrt \{ (?P<root>\d+) \}|(?P<pi>\\pi))?", answer)
    assert match, answer
    assert any(match.groups()), answer
    return int(match["factor"] or 1) * math.sqrt(int(match["root"] or 1)) * (math.pi if match["pi"] else 1)


def measured_angle(figure: Figure, name: str) -> float:
    """Measure by the law of cosines, which the generator does not use."""
    first, vertex, last = (figure.points[letter] for letter in name)
    a, b, c = math.dist(vertex, first), math.dist(vertex, last), math.dist(first, last)
    return math.degrees(math.acos(max(-1.0, min(1.0, (a * a + b * b - c * c) / (2 * a * b)))))


def measured_area(figure: Figure, name: str) -> float:
    """Add up triangles by Heron's formula; the polygons are convex."""
    corners = [figure.points[letter] for letter in name]
    total = 0.0
    for second, third in itertools.pairwise(corners[1:]):
        a, b, c = math.dist(corners[0], second), math.dist(second, third), math.dist(third, corners[0])
        half = (a + b + c) / 2
        total += math.sqrt(max(0.0, half * (half - a) * (half - b) * (half - c)))
    return total


def measured(problem: GeometryProblem) -> float:
    """Measure in the figure what is asked."""
    figure, of = problem.figure, problem.of
    length = math.dist(figure.points[of[0]], figure.points[of[1]])
    by_quantity: dict[Quantity, Callable[[], float]] = {
        Quantity.ANGLE: lambda: measured_angle(figure, of),
        Quantity.LENGTH: lambda: length,
        Quantity.AREA: lambda: measured_area(figure, of),
        Quantity.PERIMETER: lambda: sum(
            math.dist(figure.points[a], figure.points[b]) for a, b in zip(of, of[1:] + of[0], strict=True)
        ),
        Quantity.DISC_AREA: lambda: math.pi * length**2,
        Quantity.CIRCUMFERENCE: lambda: 2 * math.pi * length,
    }
    return by_quantity[problem.quantity]()


def shown(problem: GeometryProblem) -> list[float]:
    """Return the numbers written in the figure."""
    texts = [label.text for label in problem.figure.angles] + [label.text for label in problem.figure.lengths]
    return [float(text) for text in texts if text != "x"]


def part_of_circle(text: str, radius: float) -> float:
    """Return what a question about a circle asks."""
    if "diameter" in text:
        return 2 * radius
    return 2 * math.pi * radius if "circumference" in text else math.pi * radius**2


def third_side(problem: GeometryProblem, one: float, other: float) -> float:
    """Return the third side of a right triangle; it is the longest one where x stands at AB."""
    is_longest = LengthLabel(name="AB", text="x") in problem.figure.lengths
    return math.sqrt(one * one + other * other if is_longest else abs(one * one - other * other))


def angle_at_parallel(problem: GeometryProblem, given: float) -> float:
    """Return the sharp or the blunt one of the two angles at a parallel: the picture says which, by the angle that x stands in."""
    return (min if measured_angle(problem.figure, problem.of) < 90 else max)(given, 180 - given)


# The theorem of each kind, from nothing but the text and the numbers written in the figure.
THEOREMS: dict[str, Callable[..., float]] = {
    "triangle_sum": lambda _, a, b: 180 - a - b,
    "quadrilateral_sum": lambda _, a, b, c: 360 - a - b - c,
    "exterior_angle": lambda _, a, b: a + b,
    "inscribed_angle": lambda _, a: a / 2,
    "isosceles": lambda problem, a: (180 - a) / 2 if "angle A is" in problem.text else 180 - 2 * a,
    "right_triangle": third_side,
    "parallel_lines": angle_at_parallel,
    "similar_triangles": lambda _, upper, lower, cut: cut * (upper + lower) / upper,
    "rectangle": lambda problem, a, b: a * b if "area" in problem.text else 2 * (a + b),
    "parallelogram": lambda _, base, height: base * height,
    "trapezoid": lambda _, top, bottom, height=1: (top + bottom) / 2 * height,
    "circle": lambda problem, radius: part_of_circle(problem.text, radius),
    "equilateral": lambda _, side: 3 * side,
}


def drawn(kind: Kind, seed: int, difficulty: Difficulty) -> GeometryProblem:
    """Return a problem of a kind."""
    return kind(Random(seed), difficulty)  # noqa: S311  # repeatable, not secret


@EVERY_KIND
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, difficulty=LEVELS)
def test_answer_is_what_the_figure_measures(kind: Kind, seed: int, difficulty: Difficulty) -> None:
    problem = drawn(kind, seed, difficulty)

    assert value_of(problem.answer) == pytest.approx(measured(problem), rel=1e-6)


@EVERY_KIND
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, difficulty=LEVELS)
def test_answer_follows_from_the_numbers_shown(kind: Kind, seed: int, difficulty: Difficulty) -> None:
    problem = drawn(kind, seed, difficulty)

    assert value_of(problem.answer) == pytest.approx(THEOREMS[problem.kind](problem, *shown(problem)), rel=1e-9)


@EVERY_KIND
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, difficulty=LEVELS, turn=st.floats(-90, 90), mirrored=st.booleans())
def test_figure_is_drawn_to_its_labels(kind: Kind, seed: int, difficulty: Difficulty, turn: float, *, mirrored: bool) -> None:
    figure = drawn(kind, seed, difficulty).figure.turned(turn, mirrored=mirrored)

    for label in figure.angles:
        if label.text != "x":
            assert measured_angle(figure, label.name) == pytest.approx(float(label.text), abs=1e-6)
    for mark in figure.lengths:
        if mark.text != "x":
            assert math.dist(figure.points[mark.name[0]], figure.points[mark.name[1]]) == pytest.approx(float(mark.text))
    for name in figure.right_angles:
        assert measured_angle(figure, name) == pytest.approx(90)
    assert len({round(figure.length(name), 6) for name in figure.ticks}) <= 1


@EVERY_KIND
@pytest.mark.parametrize("difficulty", Difficulty)
def test_text_states_the_values_exactly_where_it_claims_to(kind: Kind, difficulty: Difficulty) -> None:
    problem = drawn(kind, 1, difficulty)

    numbers = {float(number) for number in re.findall(r"\d+", problem.text)}

    assert numbers == (set(shown(problem)) if problem.is_stated else set())


@pytest.mark.parametrize(("difficulty", "least"), [(Difficulty.FULL, 8), (Difficulty.SIMPLE, 4)])
def test_most_kinds_and_some_simple_ones_cannot_be_solved_without_the_figure(difficulty: Difficulty, least: int) -> None:
    problems = [drawn(kind, 2, difficulty) for kind in KINDS]

    assert sum(not problem.is_stated for problem in problems) >= least


@pytest.mark.parametrize("difficulty", Difficulty)
def test_stream_offers_every_kind_and_only_legible_pictures(difficulty: Difficulty) -> None:
    problems = list(itertools.islice(geometry_problems("train", seed=3, difficulty=difficulty), 250))

    kinds = Counter(problem.kind for problem, _ in problems)

    assert set(kinds) == {kind.__name__ for kind in KINDS}
    assert min(kinds.values()) >= 2
    assert all(sketch.is_legible() for _, sketch in problems)
    assert {sketch.size for _, sketch in problems} == set(SIZES)


def test_text_on_a_line_is_not_legible() -> None:
    crowded = Figure(
        points={"A": Point(0, 0), "B": Point(10, 0), "C": Point(0, 1), "D": Point(10, 1)},
        segments=("AB", "CD"),
        lengths=(LengthLabel(name="AB", text="10"),),
    )

    free = Figure(points={"A": Point(0, 0), "B": Point(10, 0), "c": Point(5, 8)}, segments=("AB",), lengths=crowded.lengths)

    assert not Sketch(crowded, (96, 96)).is_legible()
    assert Sketch(free, (96, 96)).is_legible()


@pytest.mark.parametrize(("text", "is_legible"), [("12345", True), ("12345678901234567890", False)])
def test_text_outside_the_picture_is_not_legible(text: str, *, is_legible: bool) -> None:
    figure = Figure(
        points={"A": Point(0, 0), "B": Point(10, 0), "c": Point(5, 8)},
        segments=("AB",),
        lengths=(LengthLabel(name="AB", text=text),),
    )

    assert Sketch(figure, (96, 96)).is_legible() == is_legible


def test_picture_is_ink_where_the_sketch_has_lines() -> None:
    _, sketch = next(geometry_problems("train", seed=5))

    image = Image.open(io.BytesIO(draw(sketch))).convert("L")

    assert image.size == sketch.size
    for start, end in sketch.strokes:
        middle = start.between(end, 0.5)
        around = image.crop((round(middle.x) - 2, round(middle.y) - 2, round(middle.x) + 2, round(middle.y) + 2))
        assert around.getextrema()[0] < 160


def test_rows_have_the_raw_schema_of_geometry3k() -> None:
    row = next(geometry_rows("train", seed=6))

    assert set(row) == {"problem", "answer", "images"}
    assert row["problem"].startswith("<image>")
    assert set(row["images"][0]) == {"bytes", "path"}
    assert Image.open(io.BytesIO(row["images"][0]["bytes"])).format == "PNG"


def test_same_seed_makes_the_same_rows_and_another_one_others() -> None:
    first, again, other = (list(itertools.islice(geometry_rows("train", seed=seed), 5)) for seed in (7, 7, 8))

    assert first == again
    assert first != other


def test_test_rows_are_no_train_rows() -> None:
    train = {str(row) for row in itertools.islice(geometry_rows("train", seed=0), 80)}
    test = {str(row) for row in itertools.islice(geometry_rows("test", seed=0), 20)}

    assert not train & test


def test_simple_problems_have_few_answers_and_whole_numbers() -> None:
    answers = {problem.answer for problem, _ in itertools.islice(geometry_problems("train", seed=0), 400)}

    assert len(answers) <= 40
    assert all(re.fullmatch(r"[1-9]\d{0,2}", answer) for answer in answers)


def test_full_problems_have_roots_and_pi() -> None:
    problems = itertools.islice(geometry_problems("train", seed=0, difficulty=Difficulty.FULL), 100)

    answers = " ".join(problem.answer for problem, _ in problems)

    assert r"\sqrt" in answers
    assert r"\pi" in answers


@pytest.mark.parametrize(
    ("square", "text"),
    [(36, "6"), (7, r"\sqrt { 7 }"), (52, r"2 \sqrt { 13 }"), (1, "1"), (72, r"6 \sqrt { 2 }"), (12, r"2 \sqrt { 3 }")],
)
def test_roots_are_reduced(square: int, text: str) -> None:
    assert root_text(square) == text
