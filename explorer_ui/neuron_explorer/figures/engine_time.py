"""Busy time of each engine and the reasons of its idle time, as stacked bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from neuron_explorer.theme import BLUE, GREY, ORANGE, PLUM, SKY, Theme
from neuron_profile.analysis.idle_reasons import PARTS, EngineTime
from neuron_profile.reports.quantities import duration, percent

BAR_HEIGHT_PIXELS = 30
TITLES = {
    "busy_ns": "Busy",
    "dma_ns": "Waiting for DMA",
    "engine_ns": "Waiting for an engine",
    "other_ns": "Other delays",
    "finished_ns": "Finished early",
    "host_ns": "Waiting for the host",
}
_COLOURS = {"busy_ns": BLUE, "dma_ns": ORANGE, "engine_ns": SKY, "other_ns": PLUM}


def _colour(part: str, theme: Theme) -> str:
    return _COLOURS.get(part) or (GREY if part == "finished_ns" else theme.empty)


def engine_time_figure(engines: Sequence[EngineTime], theme: Theme) -> Any:
    """One bar per engine, the first on top; parts as shares of the window."""
    rows = list(reversed(engines))
    several = len({(engine.process, engine.core) for engine in rows}) > 1
    names = [
        f"{engine.engine} · p{engine.process} c{engine.core}" if several else engine.engine for engine in rows
    ]
    bars = [_bar(names, rows, part, _colour(part, theme)) for part in PARTS]
    figure = go.Figure(bars)
    figure.update_layout(
        theme.layout(
            barmode="stack",
            height=110 + BAR_HEIGHT_PIXELS * max(len(rows), 1),
            margin={"t": 40},
            xaxis={"title": {"text": "% of the window"}, "range": [0, 100], "fixedrange": True},
            yaxis={"fixedrange": True, "showgrid": False},
            legend={"traceorder": "normal"},
            bargap=0.3,
        )
    )
    return figure


def _bar(names: list[str], rows: Sequence[EngineTime], part: str, colour: str) -> Any:
    times = [getattr(engine, part) for engine in rows]
    shares = [time / engine.window_ns if engine.window_ns else 0.0 for time, engine in zip(times, rows)]
    return go.Bar(
        y=names,
        x=[100 * share for share in shares],
        orientation="h",
        name=TITLES[part],
        marker={"color": colour, "line": {"width": 0}},
        text=[f"{duration(time)} ({percent(share)})" for time, share in zip(times, shares)],
        textposition="none",
        hovertemplate="%{y}: %{text}<extra>" + TITLES[part] + "</extra>",
    )
