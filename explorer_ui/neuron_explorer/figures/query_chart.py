"""A query's result as a chart: the first column against the numbers behind it."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import pyarrow as pa

from neuron_explorer.parts.chart import plain, short
from neuron_explorer.theme import CATEGORICAL, Theme

POINTS, SERIES = 500, 5
HEIGHT = 380


def number_columns(table: pa.Table) -> list[int]:
    """Places of the columns of numbers."""
    return [
        place
        for place, field in enumerate(table.schema)
        if pa.types.is_integer(field.type)
        or pa.types.is_floating(field.type)
        or pa.types.is_decimal(field.type)
    ]


def query_figure(table: pa.Table, kind: str, theme: Theme) -> Any:
    """Bars, lines or points of the first rows.

    Args:
        kind: "bar", "line" or "points".
    """
    rows = table.slice(0, POINTS)
    numbers = number_columns(table)
    across = 0
    upward = [place for place in numbers if place != across or len(numbers) == 1][:SERIES]
    x = [_label(value) for value in rows.column(across).to_pylist()]
    figure = go.Figure([_trace(rows, place, x, kind, CATEGORICAL[n % 8]) for n, place in enumerate(upward)])
    figure.update_layout(
        theme.layout(
            height=HEIGHT,
            margin={"t": 36},
            showlegend=len(upward) > 1,
            xaxis={"title": {"text": plain(table.column_names[across])}},
            yaxis={"title": {"text": plain(table.column_names[upward[0]]) if len(upward) == 1 else ""}},
        )
    )
    return figure


def _trace(rows: pa.Table, place: int, x: list[Any], kind: str, colour: str) -> Any:
    y = [None if value is None else float(value) for value in rows.column(place).to_pylist()]
    name = short(rows.column_names[place])
    if kind == "bar":
        return go.Bar(x=x, y=y, name=name, marker={"color": colour, "line": {"width": 0}})
    mode = "lines" if kind == "line" else "markers"
    return go.Scatter(x=x, y=y, name=name, mode=mode, line={"color": colour}, marker={"color": colour})


def _label(value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return short("" if value is None else str(value), 40)
