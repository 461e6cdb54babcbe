"""Plain-text tables: columns as wide as their widest cell, numbers to the right.

Must not know: what the cells mean.
"""

from __future__ import annotations

from collections.abc import Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Return the lines of a table; `right` holds the columns that are set to the right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = [cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        return "  ".join(cells).rstrip()

    return [line(header), "  ".join("-" * width for width in widths), *(line(row) for row in rows)]


def number(value: float | None) -> str:
    """Return a number as people compare it: four significant digits, `-` for none."""
    return "-" if value is None else f"{value:.4g}"
