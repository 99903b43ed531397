"""Operators: every operation and instruction, grouped or one by one, in a grid of any size."""

from __future__ import annotations

import json
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, html, no_update

from neuron_explorer.address import Address
from neuron_explorer.grid_rows import (
    REACHABLE,
    Request,
    Source,
    parts_of_filter,
    read_request,
    read_rows,
    table_rows,
)
from neuron_explorer.grid_sources import COUNT, GROUPS, KEYS, SOURCES, keyed_rows
from neuron_explorer.page import Page, Site, View
from neuron_explorer.parts.grid import grid_card, source_grid
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.tabs import tabs
from neuron_tools.errors import NeuronToolsError

NEEDS = {
    "opcode": ("Instruction",), "instructions": ("Instruction",), "operations": ("FrameworkInstruction",),
    "spans": ("HostSpan", "TraceSpan"), "names": ("HostSpan", "TraceSpan"),
}  # fmt: skip


def layout(view: View) -> list[Any]:
    """Components of the page; `by` in the address chooses the table, `grid` its order and filter."""
    present = view.profile.tables()
    usable = {
        name: source
        for name, source in SOURCES.items()
        if any(present.get(table) for table in NEEDS.get(name, ("HloInstruction",)))
    }
    if not usable:
        return [empty_state("This profile has no operations, instructions or spans to list.")]
    asked = view.address.get("by")
    source = usable[asked] if asked in usable else next(iter(usable.values()))
    choices = {name: entry.title for name, entry in usable.items()}
    download = html.Button(
        "CSV", className="button quiet", title="Save all rows of this filter as CSV",
        **{"data-action": "grid-download", "data-grid": "operators-grid", "data-source": source.name},
    )  # fmt: skip
    return [
        tabs(view, "by", "Show", choices, source.name),
        grid_card(
            _title(source),
            source_grid(source, "operators-grid", _state(view.address)),
            explains=(
                "Sort by a heading, filter in the row below it; times are filtered in ns. "
                f"The first {REACHABLE:,} rows of an order can be scrolled to; the CSV file has all."
            ),
            actions=[html.Span(id="operators-count", className="faint", role="status"), download],
        ),
    ]


def _title(source: Source) -> str:
    grouped = source.name not in ("operations", "instructions", "spans")
    return (
        f"By {source.title[0].lower() + source.title[1:]}"
        if grouped and source.name != "hlo"
        else source.title
    )


def _state(address: Address) -> dict[str, Any]:
    try:
        return parts_of_filter(json.loads(address.get("grid", "{}")))
    except ValueError:
        return {}


def register(app: Dash, site: Site) -> None:
    """Answer the grid's requests, and keep its order and filter in the address."""

    @app.callback(
        Output("operators-grid", "getRowsResponse"),
        Output("operators-count", "children"),
        Input("operators-grid", "getRowsRequest"),
        State("address", "pathname"),
        State("address", "search"),
    )
    def answer(asked: dict[str, Any] | None, pathname: str | None, search: str | None) -> tuple[Any, Any]:
        if not asked:
            return no_update, no_update
        try:
            return _block(site.view(pathname, search), asked)
        except NeuronToolsError as error:
            return {"rowData": [], "rowCount": 0}, str(error)

    app.clientside_callback(
        ClientsideFunction("explorer", "keep_grid_state"),
        Output("operators-grid", "id"),
        Input("operators-grid", "getRowsRequest"),
        prevent_initial_call=True,
    )


def _block(page: View, asked: dict[str, Any]) -> tuple[dict[str, Any], str]:
    present = page.profile.tables()
    name = page.address.get("by")
    if name not in SOURCES:
        name = next(
            key for key in SOURCES if any(present.get(table) for table in NEEDS.get(key, ("HloInstruction",)))
        )
    source = SOURCES[name]
    request = read_request(source, asked)
    if source.is_grouped:
        rows, total = table_rows(page.result(GROUPS, source.name), source, request)
    else:
        total = page.result(COUNT, source.name, json.dumps(asked.get("filterModel") or {}, sort_keys=True))
        rows = _rows(page, source, request, asked)
    return {"rowData": rows, "rowCount": min(total, REACHABLE)}, f"{total:,} rows"


def _rows(page: View, source: Source, request: Request, asked: dict[str, Any]) -> list[dict[str, Any]]:
    if not source.key:
        return read_rows(page.part, source, request)

    def keys_of(first: int, last: int) -> list[int]:
        wanted = {"startRow": first, "endRow": last, "sortModel": asked.get("sortModel") or [],
                  "filterModel": asked.get("filterModel") or {}}  # fmt: skip
        found: list[int] = page.result(KEYS, source.name, json.dumps(wanted, sort_keys=True))
        return found

    return keyed_rows(page.part, source, request, keys_of)


PAGE = Page("/operators", "Operators", layout, register, group="Where time goes")
