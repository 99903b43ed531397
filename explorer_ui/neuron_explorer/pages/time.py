"""Where the time goes: each engine's window divided into busy time and the reasons for idle time."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from neuron_explorer.content import Content
from neuron_explorer.figures.engine_time import TITLES, engine_time_figure
from neuron_explorer.pages.parts import table
from neuron_profile.analysis.idle_reasons import PARTS, EngineTime
from neuron_profile.reports.quantities import duration


def time_page(content: Content) -> list[Any]:
    """Components of the page."""
    engines = content.engine_times
    if not engines:
        return [html.P("This profile has no instructions of executions, so idle time has no reasons here.")]
    return [
        html.P(
            "From the start of a core's first execution to the end of its last. An engine's parts add up "
            "to that window."
        ),
        dcc.Graph(figure=engine_time_figure(engines), config={"displayModeBar": False}),
        table(("Engine", "Window", *(TITLES[part] for part in PARTS)), [_row(engine) for engine in engines]),
    ]


def _row(engine: EngineTime) -> list[str]:
    name = f"{engine.engine} (process {engine.process}, core {engine.core})"
    return [name, duration(engine.window_ns), *(duration(getattr(engine, part)) for part in PARTS)]
