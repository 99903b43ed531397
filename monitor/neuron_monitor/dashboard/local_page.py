"""The page of this machine: its frame, and the callbacks that keep it up to date."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from dash import Dash, Input, Output, State, ctx, dcc, html, no_update

from neuron_monitor.dashboard import parts
from neuron_monitor.dashboard.charts import CHARTS, GRAPH_CONFIG, make_extension, make_figure
from neuron_monitor.dashboard.collector import Collector
from neuron_monitor.dashboard.history import History, Row
from neuron_monitor.dashboard.ticks import one_question_at_a_time

WINDOWS_S = (60, 300, 900, 3600)


def local_layout(period_s: float) -> list[Any]:
    """The frame; what is in it comes by the first callback."""
    charts = [
        html.Section(
            [html.H2(chart.title), dcc.Graph(id=f"chart-{chart.key}", config=GRAPH_CONFIG)], className="chart"
        )
        for chart in CHARTS
    ]
    return [
        dcc.Interval(id="tick", interval=max(200, round(period_s * 1000))),
        dcc.Store(id="shown", data={"next": 0, "range": None}),
        dcc.Store(id="range", data=None),
        dcc.Download(id="download"),
        html.Div(id="notices", className="notices"),
        html.Div(id="figures", className="figures"),
        html.Div(id="devices", className="devices"),
        html.Div(charts, className="charts"),
        html.Section([html.H2("Processes"), html.Div(id="processes")], className="processes"),
    ]


def local_controls() -> list[Any]:
    """The controls in the page's header."""
    return [
        html.Span(id="range-text", className="quiet"),
        html.Button("Whole history", id="clear", className="hidden"),
        parts.window_choice(WINDOWS_S, 300),
        html.Button("Pause", id="pause"),
        html.Button("CSV", id="csv", title="Rows of the selected range, or of the window"),
    ]


def add_callbacks(app: Dash, collector: Collector) -> None:
    """Everything that changes the page."""
    graphs = [Output(f"chart-{chart.key}", "figure") for chart in CHARTS]
    growth = [Output(f"chart-{chart.key}", "extendData") for chart in CHARTS]
    moment = [Output(name, "children") for name in ("figures", "devices", "processes", "notices")]

    def refresh(
        ticks: int | None, window_s: int, theme: str, selected: list[float] | None, shown: dict[str, Any]
    ) -> list[Any]:
        history = collector.history
        is_whole = (
            ctx.triggered_id != "tick" or shown["next"] == 0 or shown.get("columns") != len(history.columns)
        )
        rows = _rows(history, window_s, selected) if is_whole else history.since(shown["next"])
        return _answer(collector, rows, is_whole=is_whole, theme=theme, window_s=window_s)

    app.callback(
        *graphs,
        *growth,
        *moment,
        Output("shown", "data"),
        Input("tick", "n_intervals"),
        Input("window", "value"),
        Input("theme", "data"),
        Input("range", "data"),
        State("shown", "data"),
        running=one_question_at_a_time("tick"),
    )(refresh)

    app.callback(
        Output("tick", "disabled"),
        Output("pause", "children"),
        Input("pause", "n_clicks"),
        Input("range", "data"),
        prevent_initial_call=True,
    )(_pause)

    app.callback(
        Output("range", "data"),
        Output("range-text", "children"),
        Output("clear", "className"),
        *[Input(f"chart-{chart.key}", "relayoutData") for chart in CHARTS],
        Input("clear", "n_clicks"),
        prevent_initial_call=True,
    )(_select)

    def download(clicks: int | None, window_s: int, selected: list[float] | None) -> Any:
        history = collector.history
        content = history.as_csv(_rows(history, window_s, selected))
        return {"content": content, "filename": "neuron-monitor.csv", "type": "text/csv"}

    app.callback(
        Output("download", "data"),
        Input("csv", "n_clicks"),
        State("window", "value"),
        State("range", "data"),
        prevent_initial_call=True,
    )(download)


def _answer(collector: Collector, rows: list[Row], *, is_whole: bool, theme: str, window_s: int) -> list[Any]:
    """The values of all outputs of a refresh."""
    history, view = collector.history, collector.view
    count = len(CHARTS)
    if view is None or (not rows and not is_whole):
        return [no_update] * (2 * count + 5)
    if is_whole:
        drawn = [make_figure(chart, history, rows, theme) for chart in CHARTS] + [no_update] * count
    else:
        most = _most_points(rows, window_s, history)
        drawn = [no_update] * count + [make_extension(chart, history, rows, most) for chart in CHARTS]
    newest = history.newest()
    recording = collector.recording
    now = [
        parts.figures(view, history, newest) if newest else no_update,
        parts.device_grid(view),
        parts.process_table(view),
        parts.notices(view, recording.error if recording else ""),
    ]
    following = newest.number + 1 if newest else 0
    return [*drawn, *now, {"next": following, "columns": len(history.columns)}]


def _rows(history: History, window_s: int, selected: list[float] | None) -> list[Row]:
    if selected:
        return history.between(selected[0], selected[1])
    newest = history.newest()
    return history.between(newest.time_ms - window_s * 1000, newest.time_ms) if newest else []


def _most_points(rows: list[Row], window_s: int, history: History) -> int:
    """How many points a window holds, by the time between the last rows."""
    last = history.since(rows[-1].number - 1)
    step_ms = max(1, last[-1].time_ms - last[0].time_ms) if len(last) > 1 else 1000
    return max(2, round(window_s * 1000 / step_ms))


def _pause(clicks: int | None, selected: list[float] | None) -> tuple[bool, str]:
    """The button toggles; a selected range pauses, its end goes on."""
    is_paused = bool(selected) if ctx.triggered_id == "range" else bool((clicks or 0) % 2)
    return is_paused, "Go on" if is_paused else "Pause"


def _select(*told: Any) -> tuple[Any, Any, Any]:
    """The range that was dragged over in some chart, for all of them."""
    if ctx.triggered_id == "clear":
        return None, "", "hidden"
    change = ctx.triggered[0]["value"] or {}
    if change.get("xaxis.autorange"):
        return None, "", "hidden"
    ends = [change.get(f"xaxis.range[{end}]") for end in (0, 1)]
    if None in ends:
        return no_update, no_update, no_update
    moments = [parse_moment(str(end)) for end in ends]
    text = f"{moments[0]:%H:%M:%S} – {moments[1]:%H:%M:%S} UTC"
    return [moment.timestamp() * 1000 for moment in moments], text, ""


def parse_moment(text: str) -> datetime:
    """A moment as Plotly writes it: with any number of digits behind the second, or cut off before."""
    whole, _, fraction = text.replace("T", " ").partition(".")
    form = "%Y-%m-%d %H:%M:%S" if whole.count(":") == 2 else "%Y-%m-%d %H:%M" if ":" in whole else "%Y-%m-%d"
    moment = datetime.strptime(whole, form).replace(tzinfo=timezone.utc)
    return moment + timedelta(microseconds=int(fraction[:6].ljust(6, "0") or 0))
