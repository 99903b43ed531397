"""The roofline as a log-log scatter with the limits of chip and memory."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from neuron_explorer.parts.chart import plain
from neuron_explorer.theme import BLUE, GREEN, ORANGE, PINK, Theme
from neuron_profile.analysis.roofline import Roofline
from neuron_profile.reports.quantities import duration, percent, scaled

_INTENSITIES = (0.01, 10_000.0)
_COLOURS = {"f32": PINK, "bf16": BLUE, "fp8": GREEN}


def roofline_figure(roofline: Roofline, theme: Theme, most: int) -> Any:
    """Points by intensity and rate, sized by their time; one roof per element type, dotted if throttled."""
    figure = go.Figure()
    for dtype, peak in roofline.peak_flops.items():
        colour = _COLOURS.get(dtype, theme.faint)
        figure.add_trace(_roof(roofline, dtype, peak, colour, "solid"))
        figure.add_trace(
            _roof(roofline, f"{dtype}, throttled", roofline.throttled_flops[dtype], colour, "dot")
        )
    points = [point for point in roofline.points if point.flops and point.hbm_bytes][:most]
    longest = max((point.span_ns for point in points), default=1)
    figure.add_trace(
        go.Scatter(
            x=[point.intensity for point in points],
            y=[point.flops_per_second for point in points],
            mode="markers",
            name=roofline.level,
            marker={
                "size": [6 + 24 * (point.span_ns / longest) ** 0.5 for point in points],
                "color": ORANGE,
                "line": {"color": theme.paper, "width": 0.5},
                "opacity": 0.8,
            },
            text=[
                f"{plain(point.name)}<br>{duration(point.span_ns)}, {percent(point.of_bound)} of the bound "
                f"({point.bound}), {scaled(point.flops_per_second, 'FLOP/s')}"
                for point in points
            ],
            hovertemplate="%{text}<extra></extra>",
        )
    )
    figure.update_layout(
        theme.layout(
            height=480,
            margin={"t": 40},
            xaxis={"type": "log", "dtick": 1, "title": {"text": "FLOPs per HBM byte"}},
            yaxis={"type": "log", "dtick": 1, "title": {"text": "FLOP/s"}},
        )
    )
    return figure


def _roof(roofline: Roofline, name: str, peak: float, colour: str, dash: str) -> Any:
    bandwidth = roofline.hbm_bytes_per_second
    ridge = peak / bandwidth
    x = [_INTENSITIES[0], ridge, max(_INTENSITIES[1], 10 * ridge)]
    return go.Scatter(
        x=x, y=[x[0] * bandwidth, peak, peak], mode="lines", name=name, line={"color": colour, "dash": dash},
        hoverinfo="skip",
    )  # fmt: skip
