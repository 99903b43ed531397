"""Pieces that several pages share: tables and the cells of a cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dash import html

from neuron_profile.analysis.hotspots import Cost
from neuron_profile.reports.quantities import duration, percent

COST_HEADINGS = ("Time", "Share", "Forward", "Backward", "Operations")


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, text_columns: int = 1) -> Any:
    """A table whose first columns are text and the others numbers."""
    head = html.Tr([html.Th(name, className=_kind(i, text_columns)) for i, name in enumerate(headings)])
    body = [
        html.Tr([html.Td(cell, className=_kind(number, text_columns)) for number, cell in enumerate(row)])
        for row in rows
    ]
    return html.Table([html.Thead(head), html.Tbody(body)], className="data")


def cost_cells(cost: Cost, device_ns: float) -> list[str]:
    """Cells under COST_HEADINGS."""
    return [
        duration(cost.device_ns),
        share(cost.device_ns, device_ns),
        duration(cost.forward_ns) if cost.forward_ns else "",
        duration(cost.backward_ns) if cost.backward_ns else "",
        f"{cost.count:,}",
    ]


def share(part_ns: float, device_ns: float) -> str:
    """A part of the device time in percent."""
    return percent(part_ns / device_ns) if device_ns else ""


def _kind(number: int, text_columns: int) -> str:
    return "text" if number < text_columns else "number"
