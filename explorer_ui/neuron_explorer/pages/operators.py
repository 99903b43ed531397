"""Operators: every operation and instruction, grouped or one by one, in a grid of any size."""

from __future__ import annotations

import json
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, html, no_update

from neuron_explorer import operator_times
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
from neuron_explorer.grid_sources import COUNT, KEYS, KEYS_AT_ONCE, SOURCES, keyed_rows
from neuron_explorer.page import Page, Site, View
from neuron_explorer.parts.grid import grid_card, source_grid
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.tabs import tabs
from neuron_explorer.sections import Need, Section
from neuron_tools.errors import NeuronToolsError

NEEDS = {
    "opcode": ("Instruction",), "instructions": ("Instruction",), "operations": ("FrameworkInstruction",),
    "spans": ("HostSpan", "TraceSpan"), "names": ("HostSpan", "TraceSpan"),
}  # fmt: skip
_CHARGED = (
    "Time is charged: where several ran at once, each has its share. The longest span is one HLO operation's "
    "from its first instruction to its last, whatever else ran meanwhile, so it may exceed the time. "
)
_OVERLAPPING = "Time is that in which one of them ran. "


def layout(view: View) -> list[Any]:
    """Components of the page; `by` in the address chooses the table, `grid` its order and filter."""
    usable = _usable(view)
    if not usable:
        return [empty_state("This profile has no operations, instructions or spans to list.")]
    chosen = _chosen(view).name
    summed = {name: source.title for name, source in usable.items() if source.is_grouped}
    single = {name: source.title for name, source in usable.items() if not source.is_grouped}
    choices = [
        tabs(view, "by", label, titles, chosen)
        for label, titles in (("Summed up by", summed), ("One by one", single))
        if titles
    ]
    return [html.Div(choices, className="bar"), GRID.show(view)]


def _usable(view: View) -> dict[str, Source]:
    """The sources that the profile has rows for."""
    present = view.profile.tables()
    return {
        name: source
        for name, source in SOURCES.items()
        if any(present.get(table) for table in NEEDS.get(name, ("HloInstruction",)))
    }


def _chosen(view: View) -> Source:
    usable = _usable(view)
    asked = view.address.get("by")
    return usable[asked] if asked in usable else next(iter(usable.values()))


def _needs(view: View) -> list[Need]:
    """What the first block of rows waits for."""
    source = _chosen(view)
    if source.is_grouped:
        return operator_times.needs(source.name)
    state = _state(view.address)
    state["sortModel"] = state.get("sortModel") or [{"colId": source.order, "sort": "desc"}]
    keys = [(KEYS, source.name, _asked_keys(state, 0, KEYS_AT_ONCE))] if source.key else []
    return [(COUNT, source.name, _asked_filter(state)), *keys]


def _draw(view: View) -> Any:
    source = _chosen(view)
    download = html.Button(
        "CSV", className="button quiet", title="Save all rows of this filter as CSV",
        **{"data-action": "grid-download", "data-grid": "operators-grid", "data-source": source.name},
    )  # fmt: skip
    about = (
        _CHARGED if source.name in operator_times.CHARGED else _OVERLAPPING if source.name == "hlo" else ""
    )
    card = grid_card(
        f"By {_lowered(source.title)}" if source.is_grouped else source.title,
        source_grid(source, "operators-grid", _state(view.address), filters=not view.is_panel),
        explains=(
            f"{about}Sort by a heading, filter in the row below it; times are filtered in ns. "
            f"The first {REACHABLE:,} rows of an order can be scrolled to; the CSV file has all."
        ),
        actions=[html.Span(id="operators-count", className="faint", role="status"), download],
    )
    return html.Div(card, **{"data-grid-kind": source.name})


GRID = Section("operators/grid", _needs, _draw)


def _lowered(title: str) -> str:
    return title if title.startswith("HLO") else title[0].lower() + title[1:]


def _asked_filter(asked: dict[str, Any]) -> str:
    return json.dumps(asked.get("filterModel") or {}, sort_keys=True)


def _asked_keys(asked: dict[str, Any], first: int, last: int) -> str:
    wanted = {"startRow": first, "endRow": last, "sortModel": asked.get("sortModel") or [],
              "filterModel": asked.get("filterModel") or {}}  # fmt: skip
    return json.dumps(wanted, sort_keys=True)


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


def _block(view: View, asked: dict[str, Any]) -> tuple[dict[str, Any], str]:
    source = _chosen(view)
    request = read_request(source, asked)
    if source.is_grouped:
        rows, total = table_rows(operator_times.grouped_rows(view, source.name), source, request)
    else:
        total = view.result(COUNT, source.name, _asked_filter(asked))
        rows = _rows(view, source, request, asked)
    return {"rowData": rows, "rowCount": min(total, REACHABLE)}, f"{total:,} rows"


def _rows(view: View, source: Source, request: Request, asked: dict[str, Any]) -> list[dict[str, Any]]:
    if not source.key:
        return read_rows(view.part, source, request)

    def keys_of(first: int, last: int) -> list[int]:
        found: list[int] = view.result(KEYS, source.name, _asked_keys(asked, first, last))
        return found

    return keyed_rows(view.part, source, request, keys_of)


PAGE = Page("/operators", "Operators", layout, register, group="Where time goes")
