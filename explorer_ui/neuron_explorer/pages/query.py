"""Query: SQL over the profile's tables, with a schema browser, saved queries, and results as charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from neuron_explorer.figures.query_chart import number_columns, query_figure
from neuron_explorer.grid_rows import Request, Source, read_request
from neuron_explorer.page import Page, Site, View
from neuron_explorer.parts.card import card
from neuron_explorer.parts.chart import chart_card
from neuron_explorer.parts.grid import grid_card, source_grid
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.tabs import tabs
from neuron_explorer.query_results import QUERY, QueryResult, result_rows
from neuron_explorer.sections import Need, Section
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.schema import TABLES

FIRST = """SELECT engine, opcode, count(*) AS instructions, sum(duration_ns) / 1e6 AS time_ms
FROM Instruction
GROUP BY ALL
ORDER BY time_ms DESC"""
SAMPLES = {
    "Time by engine and instruction": FIRST,
    "Longest operations": (
        "SELECT framework_name, layer, end_ts - start_ts AS duration_ns, source_file, source_line\n"
        "FROM FrameworkInstruction\nORDER BY duration_ns DESC\nLIMIT 100"
    ),
    "Bytes by DMA queue": (
        "SELECT queue_name, count(*) AS transfers, sum(transfer_bytes) AS bytes,\n"
        "    sum(transfer_bytes) / sum(duration_ns) AS gigabytes_per_second\n"
        "FROM DmaPacketAggregated\nGROUP BY ALL\nORDER BY bytes DESC"
    ),
    "What waits longest": (
        "SELECT opcode, source_file, source_line, sum(evt_wait_time_ns) AS waited_ns\n"
        "FROM Instruction\nGROUP BY ALL\nORDER BY waited_ns DESC\nLIMIT 50"
    ),
    "Host spans by name": (
        "SELECT name, count(*) AS calls, sum(duration_ns) / 1e6 AS time_ms\n"
        "FROM (SELECT name, duration_ns FROM HostSpan UNION ALL SELECT name, duration_ns FROM TraceSpan)\n"
        "GROUP BY ALL\nORDER BY time_ms DESC\nLIMIT 100"
    ),
}
CHARTS = {"": "Grid", "bar": "Bars", "line": "Lines", "points": "Points"}


def layout(view: View) -> list[Any]:
    """Components of the page; `sql` in the address is run, `chart` chooses how its result is drawn."""
    asked = view.address.get("sql")
    body = [
        _editor(view, asked),
        html.Div(RESULT.show(view) if asked else _hint(), id="query-result", className="section"),
    ]
    return [html.Div([_schema(view), html.Div(body, className="stack")], className="query-layout")]


def _hint() -> Any:
    return empty_state(
        "No query has run yet.", "Write SQL above and press Run, or Ctrl+Enter. The tables are read-only."
    )


def _editor(view: View, asked: str) -> Any:
    text = dcc.Textarea(id="query-text", value=asked or FIRST, rows=7, spellCheck=False, title="SQL")
    buttons = html.Div(
        [
            html.Button("Run", id="query-run", className="button primary", title="Ctrl+Enter"),
            html.Details([html.Summary("Saved and sample queries"), _saved(view)]),
            html.Label("Save as", htmlFor="query-name", className="spread"),
            dcc.Input(id="query-name", type="text", placeholder="name", style={"minWidth": "140px"}),
            html.Button("Save", id="query-save", className="button"),
            html.Span(id="query-saved", role="status"),
        ],
        className="bar",
    )
    label = html.Label("SQL over the tables of this profile", htmlFor="query-text", className="faint")
    return card("Query", html.Div([label, text, buttons], className="stack"))


def _saved(view: View) -> Any:
    saved = {**SAMPLES, **view.store.queries()}
    links = [
        html.Li(html.A(name, href=view.address.to("/query", sql=text), title=text))
        for name, text in saved.items()
    ]
    return html.Ul(links, className="plain")


def _schema(view: View) -> Any:
    counts = view.profile.tables()
    data = {
        name: [rows, [[field.name, field.type] for field in TABLES[name].fields]]
        for name, rows in counts.items()
    }
    body = [html.Div(id="schema-tree", className="schema"), dcc.Store(id="schema-data", data=data)]
    return card("Tables", body)


def _needs(view: View) -> Sequence[Need]:
    return [(QUERY, view.address.get("sql"))]


def _draw(view: View) -> Any:
    result: QueryResult = view.result(QUERY, view.address.get("sql"))
    chart = view.address.get("chart") if view.address.get("chart") in CHARTS else ""
    rows = result.table.num_rows
    told = (
        f"{rows:,} rows"
        if not result.is_cut
        else f"The first {rows:,} rows; the CSV file has up to a million."
    )
    href = view.address.to("/download/query", sql=view.address.get("sql"))
    actions = [
        html.Span(told, className="faint", role="status"),
        html.A("CSV", href=href, className="button quiet", download="", title="Save all rows as CSV"),
    ]
    choice = tabs(view, "chart", "Show as", CHARTS, chart)
    if chart and rows and number_columns(result.table):
        return [choice, chart_card("Result", query_figure(result.table, chart, view.theme))]
    if chart:
        return [choice, empty_state("There is no column of numbers to draw.")]
    if not rows:
        return [choice, card("Result", empty_state("The result has no rows."), actions=actions)]
    return [
        choice,
        grid_card(
            "Result",
            source_grid(_source(result), "query-grid", {}, filters=False, block=result.block_rows),
            actions=actions,
        ),
    ]


RESULT = Section("query/result", _needs, _draw)


def _source(result: QueryResult) -> Source:
    return Source("query", "Result", tuple(result.columns), "", "")


def register(app: Dash, site: Site) -> None:
    """Run and save queries, answer the grid, and build the schema browser in the browser."""

    @app.callback(
        Output("query-result", "children"),
        Input("query-run", "n_clicks"),
        State("query-text", "value"),
        State("address", "pathname"),
        State("address", "search"),
        prevent_initial_call=True,
    )
    def run(clicks: int | None, text: str | None, pathname: str, search: str) -> Any:
        if not clicks:
            return no_update
        if not (text or "").strip():
            return _hint()
        view = site.view(pathname, search)
        parameters = {**view.address.parameters, "sql": text or ""}
        return RESULT.show(replace(view, address=replace(view.address, parameters=parameters)))

    @app.callback(
        Output("query-saved", "children"),
        Input("query-save", "n_clicks"),
        State("query-name", "value"),
        State("query-text", "value"),
        prevent_initial_call=True,
    )
    def save(clicks: int | None, name: str | None, text: str | None) -> Any:
        try:
            site.store.save_query(name or "", text or "")
        except NeuronToolsError as error:
            return str(error)
        return (
            "Saved; it is in the list when the page is opened again." if (text or "").strip() else "Removed."
        )

    @app.callback(
        Output("query-grid", "getRowsResponse"),
        Input("query-grid", "getRowsRequest"),
        State({"type": "section-body", "name": "query/result", "at": ALL}, "id"),
    )
    def answer(asked: dict[str, Any] | None, places: list[dict[str, str]]) -> Any:
        if not asked or not places:
            return no_update
        path, _, search = places[0]["at"].partition("?")
        view = site.view(path, search)
        result: QueryResult = view.result(QUERY, view.address.get("sql"))
        request: Request = read_request(_source(result), {**asked, "filterModel": {}})
        sort = tuple((int(name[1:]), falling) for name, falling in request.sort)
        return {"rowData": result_rows(result, request, sort), "rowCount": result.table.num_rows}

    app.clientside_callback(
        ClientsideFunction("explorer", "show_schema"),
        Output("schema-data", "modified_timestamp"),
        Input("schema-data", "data"),
    )
    app.clientside_callback(
        ClientsideFunction("explorer", "keep_query"),
        Output("query-run", "title"),
        Input("query-run", "n_clicks"),
        State("query-text", "value"),
        prevent_initial_call=True,
    )


PAGE = Page("/query", "Query", layout, register, group="What to do")
