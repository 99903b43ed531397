"""The Dash application: one frame with a theme, around the page of this machine or of a fleet."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from neuron_monitor.dashboard.collector import Collector
from neuron_monitor.dashboard.fleet import FleetSource
from neuron_monitor.dashboard.fleet_page import add_fleet_callbacks, fleet_controls, fleet_layout
from neuron_monitor.dashboard.local_page import add_callbacks, local_controls, local_layout


def make_local_app(collector: Collector, period_s: float, host_name: str) -> Dash:
    """The page of this machine."""
    app = _make_app(host_name)
    app.layout = _frame(host_name, local_controls(), local_layout(period_s))
    add_callbacks(app, collector)
    _add_theme(app)
    return app


def make_fleet_app(source: FleetSource) -> Dash:
    """The page of the hosts that a Prometheus server knows."""
    app = _make_app("fleet")
    app.layout = _frame(f"Fleet at {source.url}", fleet_controls(), fleet_layout())
    add_fleet_callbacks(app, source)
    _add_theme(app)
    return app


def _make_app(title: str) -> Dash:
    return Dash(
        "neuron_monitor",
        title=f"{escape(title)} - Neuron Monitor",
        update_title="",
        serve_locally=True,
        assets_folder=str(Path(__file__).parent / "assets"),
        suppress_callback_exceptions=True,
    )


def _frame(title: str, controls: list[Any], content: list[Any]) -> Any:
    return html.Div(
        [
            dcc.Store(id="theme", data="light"),
            html.Header(
                [
                    html.H1(["Neuron Monitor ", html.Span(title)]),
                    html.Div([*controls, html.Button("Theme", id="toggle-theme")], className="controls"),
                ]
            ),
            html.Main(content),
        ]
    )


def _add_theme(app: Dash) -> None:
    app.clientside_callback(
        ClientsideFunction("neuron_monitor", "theme"),
        Output("theme", "data"),
        Input("toggle-theme", "n_clicks"),
        State("theme", "data"),
    )
