"""Elements of a page: built as a tree, so that every text is escaped where it is written out, whatever it holds.

Must not know: what a page shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, tostring


def node(tag: str, *children: Element | str, **attributes: str) -> Element:
    """Return an element; `class_` and `data_x` become the attributes class and data-x."""
    element = Element(tag, {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()})
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            element.append(child)
            last = child
        elif last is None:
            element.text = (element.text or "") + child
        else:
            last.tail = (last.tail or "") + child
    return element


def html_text(element: Element) -> str:
    """Return an element as HTML; what stands in a script or a style is written as it is and must be ours."""
    return tostring(element, encoding="unicode", method="html")


def facts(pairs: Iterable[tuple[str, Element | str]]) -> Element:
    """Return a list of names with their values; pairs without a value are left out."""
    rows = [node("div", node("dt", name), node("dd", value)) for name, value in pairs if not isinstance(value, str) or value]
    return node("dl", *rows, class_="facts")


def table(caption: str, header: Sequence[str], rows: Iterable[Element], *, numeric: Sequence[int] = (), kind: str = "") -> Element:
    """Return a table that scrolls in itself, also by keyboard.

    `numeric` are the columns that are set to the right; of the `kind` "cards", each row is a card on a narrow screen.
    """
    heads = [node("th", name, scope="col", **({"class": "n"} if i in numeric else {})) for i, name in enumerate(header)]
    content = node("table", node("caption", caption), node("thead", node("tr", *heads)), node("tbody", *rows), class_=kind)
    return node("div", content, class_="scroll", role="region", tabindex="0", aria_label=caption)


def row(header: Sequence[str], cells: Sequence[Element | str], *, numeric: Sequence[int] = (), **attributes: str) -> Element:
    """Return a row for `table`: its first cell names it; each cell carries its column's name for narrow screens."""
    made = []
    for i, (name, cell) in enumerate(zip(header, cells, strict=True)):
        classes = {"class": "n"} if i in numeric else {}
        made.append(node("td" if i else "th", cell, data_label=name, **({} if i else {"scope": "row"}), **classes))
    return node("tr", *made, **attributes)
