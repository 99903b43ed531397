"""Small tables: sortable by their headings, with a CSV button. Large ones are grids (`grid`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dash import html

from neuron_explorer.parts.card import card
from neuron_explorer.parts.quantities import Cell

Row = Sequence[Any]


def table(headings: Sequence[str], rows: Iterable[Row], caption: str) -> Any:
    """A bare table.

    Args:
        headings: One per column; a column stands on the right where its first row's cell is a number.
        rows: Cells, texts or components.
        caption: What the table is, for screen readers.
    """
    body = [list(map(_as_cell, row)) for row in rows]
    numbers = [cell.is_number for cell in body[0]] if body else [False] * len(headings)
    head = [_heading(text, is_number=number) for text, number in zip(headings, numbers)]
    return html.Table(
        [
            html.Caption(caption, className="visually-hidden"),
            html.Thead(html.Tr(head)),
            html.Tbody([html.Tr([_drawn(cell, first=not n) for n, cell in enumerate(row)]) for row in body]),
        ],
        className="data",
    )


def table_card(
    title: str, headings: Sequence[str], rows: Sequence[Row], *, explains: str = "", name: str = ""
) -> Any:
    """A table in a card with its title and a CSV button.

    Args:
        explains: A sentence above the table.
        name: Of the CSV file; the title by default.
    """
    button = html.Button("CSV", className="button quiet", title="Save as CSV", **{"data-action": "csv"})
    scrolled = html.Div(
        table(headings, rows, title),
        className="table-wrap",
        tabIndex=0,
        role="region",
        **{"aria-label": title},
    )
    return card(title, scrolled, actions=[button], explains=explains, name=name or title, flush=True)


def _as_cell(value: Any) -> Cell:
    return value if isinstance(value, Cell) else Cell(value)


def _heading(text: str, *, is_number: bool) -> Any:
    if not text:
        return html.Td("")
    button = html.Button(text, className="sort", **{"data-action": "sort"})
    return html.Th(button, className="number" if is_number else "", scope="col")


def _drawn(cell: Cell, *, first: bool) -> Any:
    classes = " ".join(filter(None, ("number" if cell.is_number else "", cell.style)))
    attributes = {} if cell.value is None else {"data-value": str(cell.value)}
    shown = cell.shown
    if cell.share is not None:
        bar = html.Span(
            className="share-bar", style={"--share": f"{cell.share:.4f}"}, **{"aria-hidden": "true"}
        )
        shown = [bar, shown]
    if first:
        return html.Th(shown, scope="row", className=classes, **attributes)
    return html.Td(shown, className=classes, **attributes)
