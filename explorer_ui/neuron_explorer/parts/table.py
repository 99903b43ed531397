"""Small tables: sortable by their headings, with a CSV button. Large ones are grids (`grid`).

A table goes to the browser as compact data and is built there (`assets/table_view.js`): as components it
would be several times as large, and take seconds to draw.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
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
    numbers = [any(column) for column in zip(*([cell.is_number for cell in row] for row in cells))]
    numbers += [False] * (len(headings) - len(numbers))
    data = {
        "caption": caption,
        "headings": [[text, number] for text, number in zip(headings, numbers)],
        "rows": [[_packed(cell) for cell in row] for row in cells],
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


def _packed(cell: Cell) -> Any:
    """A cell as the browser builds it: its text, or a text with whatever else it has."""
    extras = {
        "v": cell.value,
        "n": cell.is_number or None,
        "b": None if cell.share is None else round(cell.share, 4),
        "c": cell.style or None,
        "h": cell.href or None,
        "t": cell.title or None,
        "m": cell.is_code or None,
        "s": cell.select or None,
        "l": [[link.text, link.href, link.style, link.label] for link in cell.links] or None,
    }
    kept = {name: value for name, value in extras.items() if value is not None}
    return [cell.shown, kept] if kept else cell.shown
