"""The engines' active time as a bar chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from neuron_explorer.theme import Theme, engine_colour
from neuron_profile.analysis.overview import EngineUse
from neuron_profile.reports.quantities import duration, percent

BAR_HEIGHT_PIXELS = 28
TICKS = (0, 20, 40, 60, 80, 100)


def engine_use_figure(engines: Sequence[EngineUse], theme: Theme, *, of_total: bool = False) -> Any:
    """Active time of each engine as a part of the device time, the first engine on top.

    Args:
        of_total: Whether the whole profile is device time: one that has no executions.
    """
    rows = list(reversed(engines))
    names = [engine.name for engine in rows]
    parts = [engine.of_total if of_total else engine.of_device for engine in rows]
    shares = [100 * part for part in parts]
    texts = [f"{percent(part)}  ({duration(engine.active_ns)})" for part, engine in zip(parts, rows)]
    frame = go.Bar(
        y=names, x=[100] * len(rows), orientation="h", marker=_plain(theme.empty), hoverinfo="skip"
    )
    active = go.Bar(
        y=names,
        x=shares,
        orientation="h",
        marker=_plain([engine_colour(name) for name in names]),
        text=texts,
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{text}<extra></extra>",
    )
    figure = go.Figure([frame, active])
    figure.update_layout(
        theme.layout(
            barmode="overlay",
            showlegend=False,
            height=60 + BAR_HEIGHT_PIXELS * max(len(rows), 1),
            margin={"t": 8},
            xaxis={
                "title": {"text": "% of device time"},
                "range": [0, 118],
                "tickvals": TICKS,
                "fixedrange": True,
            },
            yaxis={"fixedrange": True, "showgrid": False},
            bargap=0.3,
        )
    )
    return figure


def _plain(colour: str | list[str]) -> dict[str, Any]:
    return {"color": colour, "line": {"width": 0}}
