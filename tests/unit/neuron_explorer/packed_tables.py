"""The tables of a page as the browser builds them from their columns."""

from __future__ import annotations

import json
from typing import Any

Rows = list[list[tuple[str, dict[str, Any]]]]
"""Each cell's text, and what else it has by its short name."""


def tables_of(layout: Any) -> dict[str, Rows]:
    """The rows of each table below some components, by its caption."""
    found: dict[str, Rows] = {}

    def look(part: Any) -> Any:
        plain = part.to_plotly_json()
        if "data-table" in plain.get("props", {}):
            table = json.loads(plain["props"]["data-table"])
            found[table["caption"]] = rows_of(table["columns"])
        return plain

    json.dumps(layout, default=look)
    return found


def rows_of(columns: list[dict[str, Any]]) -> Rows:
    """The cells of each row."""
    return [list(row) for row in zip(*map(_cells, columns))]


def _cells(column: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    texts = column["texts"]
    named = {name: column[name] for name in "vnbchtmsl" if name in column}
    lists = {
        name: values if isinstance(values, list) else [values] * len(texts) for name, values in named.items()
    }
    cells = []
    for place, text in enumerate(texts):
        extras = {name: values[place] for name, values in lists.items() if values[place] is not None}
        if "h" in extras:
            extras["h"] = column.get("h0", "") + extras["h"] + column.get("h1", "")
        cells.append((text, extras))
    return cells
