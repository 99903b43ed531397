"""The page of a fleet: a row a host, those that do not answer marked, and how busy they were over time."""

from __future__ import annotations

import time
from typing import Any

from dash import Dash, Input, Output, dcc, html, no_update

from neuron_monitor.dashboard import parts
from neuron_monitor.dashboard.charts import COLOURS, GRAPH_CONFIG, Chart, make_layout
from neuron_monitor.dashboard.fleet import MOST_LINES, FleetHost, FleetSource
from neuron_monitor.dashboard.ticks import one_question_at_a_time
from neuron_monitor.errors import PrometheusQueryError
from neuron_monitor.units import ABSENT, metric, percent, seconds

INTERVAL_MS = 5000
# The rest is found by its name.
MOST_ROWS = 100
WINDOWS_S = (900, 3600, 6 * 3600, 24 * 3600)
CHARTS = (
    Chart("utilization", "NeuronCores in use, mean of each host", (), ".0%", is_share=True),
    Chart("memory", "Device memory in use", (), ".0%", is_share=True),
    Chart("executions", "Executions a second", ()),
    Chart("errors", "Errors a second", ()),
)
_HEADINGS = (
    "host",
    "state",
    "instance",
    "devices",
    "cores in use",
    "idle over 5 min",
    "utilisation",
    "memory",
    "executions/s",
    "errors/s",
    "p99",
)


def fleet_layout() -> list[Any]:
    """The frame; what is in it comes by the first callback."""
    charts = [
        html.Section(
            [html.H2(chart.title), dcc.Graph(id=f"fleet-{chart.key}", config=GRAPH_CONFIG)], className="chart"
        )
        for chart in CHARTS
    ]
    return [
        dcc.Interval(id="tick", interval=INTERVAL_MS),
        html.Div(id="notices", className="notices"),
        html.Section([html.H2(id="count"), html.Div(id="hosts")], className="processes"),
        html.Div(charts, className="charts"),
    ]


def fleet_controls() -> list[Any]:
    """The controls in the page's header."""
    return [
        html.Label(["Find ", dcc.Input(id="find", type="search", debounce=True)]),
        parts.window_choice(WINDOWS_S, 3600),
        html.Button("Pause", id="pause"),
    ]


def add_fleet_callbacks(app: Dash, source: FleetSource) -> None:
    """Everything that changes the page."""

    def refresh(ticks: int | None, window_s: int, theme: str, wanted: str | None) -> list[Any]:
        try:
            hosts = source.hosts()
            is_spread = len(hosts) > MOST_LINES
            figures = [_figure(source, chart, window_s, theme, is_spread=is_spread) for chart in CHARTS]
        except PrometheusQueryError as error:
            return [[html.P(str(error))], no_update, no_update, *[no_update] * len(CHARTS)]
        down = sum(not host.is_up for host in hosts)
        found = matching(hosts, wanted)
        shown = "" if len(found) <= MOST_ROWS else f"; the {MOST_ROWS} worst of {len(found)} are shown"
        heading = f"Hosts: {len(hosts)}, of which {down} do not answer{shown}"
        return [[], heading, _host_table(found[:MOST_ROWS]), *figures]

    app.callback(
        Output("notices", "children"),
        Output("count", "children"),
        Output("hosts", "children"),
        *[Output(f"fleet-{chart.key}", "figure") for chart in CHARTS],
        Input("tick", "n_intervals"),
        Input("window", "value"),
        Input("theme", "data"),
        Input("find", "value"),
        running=one_question_at_a_time("tick"),
    )(refresh)

    def pause(clicks: int | None) -> tuple[bool, str]:
        is_paused = bool((clicks or 0) % 2)
        return is_paused, "Go on" if is_paused else "Pause"

    app.callback(
        Output("tick", "disabled"),
        Output("pause", "children"),
        Input("pause", "n_clicks"),
        prevent_initial_call=True,
    )(pause)


def matching(hosts: list[FleetHost], wanted: str | None) -> list[FleetHost]:
    """The hosts whose name, type or id has a text in it."""
    text = (wanted or "").strip().lower()
    return [host for host in hosts if text in f"{host.instance} {host.type} {host.id}".lower()]


def _host_table(hosts: list[FleetHost]) -> Any:
    if not hosts:
        return html.P(
            "Prometheus knows no neuron-monitor: look at its scrape configuration.", className="quiet"
        )
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(heading) for heading in _HEADINGS])),
            html.Tbody([_host_row(host) for host in hosts]),
        ]
    )


def _host_row(host: FleetHost) -> Any:
    values = host.values
    allocated, cores = values.get("allocated", 0), values.get("cores", 0)
    cells: list[Any] = [
        host.instance,
        "up" if host.is_up else f"down, last seen {_ago(host.last_seen_s)}",
        " ".join(filter(None, (host.type, host.id))),
        *(
            [ABSENT] * 8
            if not host.is_up
            else [
                f"{values.get('devices', 0):.0f}",
                f"{allocated:.0f} of {cores:.0f}",
                f"{values.get('idle', 0):.0f}",
                percent(values.get("utilization", 0.0)),
                percent(values["memory"]) if "memory" in values else ABSENT,
                metric(values.get("executions", 0.0)),
                metric(values.get("errors", 0.0)),
                seconds(values.get("latency")),
            ]
        ),
    ]
    return html.Tr([html.Td(cell) for cell in cells], className="" if host.is_up else "down")


def _figure(
    source: FleetSource, chart: Chart, window_s: int, theme: str, *, is_spread: bool
) -> dict[str, Any]:
    lines = source.series(chart.key, window_s, is_spread=is_spread)
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": instance,
            "x": [at * 1000 for at, _ in points],
            "y": [value if value == value else None for _, value in points],
            "line": {"width": 1.4, "color": COLOURS[number % len(COLOURS)]},
        }
        for number, (instance, points) in enumerate(sorted(lines.items()))
    ]
    return {"data": traces, "layout": {**make_layout(chart, theme), "showlegend": len(traces) <= 12}}


def _ago(moment_s: float | None) -> str:
    if moment_s is None:
        return "over a day ago"
    minutes = max(0.0, time.time() - moment_s) / 60
    return f"{minutes:.0f} min ago" if minutes < 120 else f"{minutes / 60:.0f} h ago"
