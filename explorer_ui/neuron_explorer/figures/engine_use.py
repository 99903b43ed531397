"""The engines' active time as a bar chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from neuron_profile.analysis.overview import EngineUse
from neuron_profile.reports.quantities import duration, percent

BAR_HEIGHT_PIXELS = 34
ACTIVE_COLOUR, FRAME_COLOUR = "#2a7de1", "#e6ebf2"


def engine_use_figure(engines: Sequence[EngineUse]) -> Any:
    """Active time of each engine as a part of the device time, the first engine on top."""
    rows = list(reversed(engines))
    names = [engine.name for engine in rows]
    shares = [100 * engine.of_device for engine in rows]
    texts = [f"{percent(engine.of_device)}  ({duration(engine.active_ns)})" for engine in rows]
    frame = go.Bar(y=names, x=[100] * len(rows), orientation="h", marker_color=FRAME_COLOUR, hoverinfo="skip")
    active = go.Bar(
        y=names,
        x=shares,
        orientation="h",
        marker_color=ACTIVE_COLOUR,
        text=texts,
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{text}<extra></extra>",
    )
    figure = go.Figure([frame, active])
    figure.update_layout(
        barmode="overlay",
        showlegend=False,
        height=60 + BAR_HEIGHT_PIXELS * max(len(rows), 1),
        margin={"l": 90, "r": 20, "t": 10, "b": 40},
        xaxis={"title": {"text": "% of device time"}, "range": [0, 100], "fixedrange": True},
        yaxis={"fixedrange": True},
        plot_bgcolor="white",
        bargap=0.3,
    )
    return figure
