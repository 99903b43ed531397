"""The first page: what ran, how long, what bound it, and how the engines were used."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from neuron_explorer.content import Content
from neuron_explorer.figures.engine_use import engine_use_figure
from neuron_explorer.pages.parts import COST_HEADINGS, cost_cells, table
from neuron_profile.reports.summary_text import notices, total_rows, verdict_text

OPERATION_ROWS = 20


def overview_page(content: Content) -> list[Any]:
    """Components of the page."""
    overview, hotspots = content.overview, content.overview.hotspots
    return [
        *(html.P(notice, className="notice") for notice in notices(content.identity)),
        html.P(verdict_text(overview.occupancy), className="verdict"),
        html.H2("Totals"),
        table(("", ""), total_rows(overview), text_columns=2),
        html.H2("Engines"),
        _engines(content),
        html.H2("Operations"),
        table(
            ("Operation", *COST_HEADINGS),
            [
                (row.name or "(unnamed)", *cost_cells(row.cost, hotspots.device_ns))
                for row in hotspots.operations[:OPERATION_ROWS]
            ],
        ),
        *_warnings(content),
    ]


def _engines(content: Content) -> Any:
    if not content.overview.engines:
        return html.P("No engine was active.")
    figure = engine_use_figure(content.overview.engines)
    return dcc.Graph(figure=figure, config={"displayModeBar": False})


def _warnings(content: Content) -> list[Any]:
    rows = content.overview.warnings
    if not rows:
        return []
    cells = [(row.category, row.message, f"{row.count:,}") for row in rows]
    return [html.H2("Warnings"), table(("Kind", "Message", "Times"), cells, text_columns=2)]
