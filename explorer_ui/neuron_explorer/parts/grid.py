"""Grids: tables of any size, a block of rows at a time, sorted and filtered by the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_ag_grid as dag
from dash import html

from neuron_explorer.grid_rows import BLOCK, Column, Source
from neuron_explorer.parts.card import card

_FORMATTERS = {
    "time": "neuronTime(params.value)",
    "bytes": "neuronBytes(params.value)",
    "count": "neuronCount(params.value)",
    "share": "neuronShare(params.value)",
    "number": "neuronNumber(params.value)",
}
_FILTER_HINTS = {"time": " (ns)", "bytes": " (bytes)", "share": " (0 to 1)"}
HEIGHT = "66vh"
_LEAST_WIDTHS = {"bytes": 88, "time": 80, "number": 84}
"""Pixels in which any figure of a kind is seen whole."""
NARROW = 0.72
"""Widths of columns without filters, as a part of those with them."""


def source_grid(
    source: Source, identity: Any, state: Mapping[str, Any], *, filters: bool = True, block: int = BLOCK
) -> Any:
    """A grid that asks for its rows as they come into sight.

    Args:
        state: `sortModel` and `filterModel` to begin with.
        filters: Whether there is a row of filters; without, rows are lower and columns narrower.
        block: Rows that are asked for at once.
    """
    sort = {entry.get("colId"): entry.get("sort") for entry in state.get("sortModel", ())}
    return dag.AgGrid(
        id=identity,
        rowModelType="infinite",
        columnDefs=[
            _column(column, sort or {source.order: "desc"}, 1.0 if filters else NARROW)
            for column in source.columns
        ],
        defaultColDef={
            "resizable": True,
            "sortable": True,
            "floatingFilter": filters,
            "suppressHeaderMenuButton": True,
            "suppressHeaderFilterButton": True,
        },
        filterModel=dict(state.get("filterModel", {})),
        dashGridOptions={
            "rowHeight": 28 if filters else 24,
            "headerHeight": 32 if filters else 26,
            "cacheBlockSize": block,
            "maxBlocksInCache": 20,
            "rowBuffer": 0,
            "suppressCellFocus": False,
            "tabToNextCell": {"function": "neuronLeaveGrid(params)"},
            "enableCellTextSelection": True,
            "ensureDomOrder": True,
            "animateRows": False,
            "infiniteInitialRowCount": 1,
        },
        className="ag-theme",
        style={"height": HEIGHT},
    )


def grid_card(title: str, grid: Any, *, explains: str = "", actions: Any = ()) -> Any:
    """A grid in a card."""
    return card(title, html.Div(grid), explains=explains, actions=actions, flush=True)


def _column(column: Column, sort: Mapping[Any, Any], widths: float) -> dict[str, Any]:
    definition: dict[str, Any] = {
        "field": column.name,
        "headerName": column.title,
        "headerTooltip": column.title + _FILTER_HINTS.get(column.kind, ""),
        "filter": "agTextColumnFilter" if column.kind == "text" else "agNumberColumnFilter",
        "filterParams": {"maxNumConditions": 2, "buttons": ["reset"], "debounceMs": 400},
        "sortingOrder": ["desc", "asc", None],
        "hide": column.is_hidden,
    }
    if column.kind != "text":
        definition["type"] = "rightAligned"
        definition["cellClass"] = "number"
        definition["valueFormatter"] = {"function": _FORMATTERS[column.kind]}
    if column.width:
        definition["width"] = max(round(column.width * widths), _LEAST_WIDTHS.get(column.kind, 0))
    if sort.get(column.name):
        definition["sort"] = sort[column.name]
    return definition
