"""Small tables: sortable by their headings, with a CSV button. Large ones are grids (`grid`).

A table goes to the browser as compact columns and is built there (`assets/table_view.js`): as components it
would be several times as large, and take seconds to draw.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from dash import html

from neuron_explorer.parts.card import card
from neuron_explorer.parts.quantities import Cell

Row = Sequence[Cell | str]


def table(headings: Sequence[str], rows: Iterable[Row], caption: str, *, short: bool = False) -> Any:
    """A table in a frame that scrolls.

    Args:
        headings: One per column; a column stands on the right where its rows' cells are numbers.
        caption: What the table is, for screen readers.
        short: Whether the frame is low.
    """
    cells = [[_as_cell(value) for value in row] for row in rows]
    columns = list(zip(*cells)) or [()] * len(headings)
    data = {
        "caption": caption,
        "columns": [_packed(text, column) for text, column in zip(headings, columns)],
    }
    return html.Div(
        className="table-wrap short" if short else "table-wrap",
        tabIndex=0,
        role="region",
        **{
            "aria-label": f"{caption}, table",
            "data-table": json.dumps(data, ensure_ascii=False, separators=(",", ":")),
        },
    )


def table_card(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Row],
    *,
    explains: str = "",
    name: str = "",
    short: bool = False,
) -> Any:
    """A table in a card with its title and a CSV button.

    Args:
        explains: A sentence above the table.
        name: Of the CSV file; the title by default.
        short: Whether the table's frame is low.
    """
    button = html.Button("CSV", className="button quiet", title="Save as CSV", **{"data-action": "csv"})
    body = table(headings, rows, title, short=short)
    return card(title, body, actions=[button], explains=explains, name=name or title, flush=True)


def _as_cell(value: Cell | str) -> Cell:
    return value if isinstance(value, Cell) else Cell(value)


def _packed(heading: str, cells: Sequence[Cell]) -> dict[str, Any]:
    """A column as the browser builds it: texts, and of whatever else its cells have a list each.

    What all cells have alike stands once, and so does what all links begin and end with.
    """
    packed: dict[str, Any] = {
        "heading": heading,
        "isNumber": any(cell.is_number for cell in cells),
        "texts": [cell.shown for cell in cells],
    }
    for name, values in zip(_EXTRAS, zip(*map(_extras, cells))):
        if any(value is not None for value in values):
            packed[name] = values[0] if len(set(values)) == 1 and name != "l" else values
    if isinstance(packed.get("h"), tuple):
        packed |= _packed_links(packed["h"])
    return packed


def _packed_links(links: Sequence[str | None]) -> dict[str, Any]:
    """Links without what all of them begin and end with, which stands once."""
    begin = _common([link for link in links if link])
    end = _common([link[len(begin) :][::-1] for link in links if link])[::-1]
    return {"h0": begin, "h": [link and link[len(begin) : len(link) - len(end)] for link in links], "h1": end}


def _common(texts: Sequence[str]) -> str:
    """What all of them begin with."""
    return "".join(first for first, *_ in takewhile(lambda each: len(set(each)) == 1, zip(*texts)))


_EXTRAS = ("v", "n", "b", "c", "h", "t", "m", "s", "l")
"""Value, number, bar, CSS class, link, title, code, selection, links behind the text."""


def _extras(cell: Cell) -> tuple[Any, ...]:
    return (
        _short(cell.value),
        cell.is_number or None,
        None if cell.share is None else round(cell.share, 4),
        cell.style or None,
        cell.href or None,
        cell.title or None,
        cell.is_code or None,
        cell.select or None,
        tuple((link.text, link.href, link.style, link.label) for link in cell.links) or None,
    )


def _short(value: float | int | str | None) -> float | int | str | None:
    """Without the ".0" of a whole number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
