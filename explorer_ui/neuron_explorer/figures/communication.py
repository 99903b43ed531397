"""Collectives: how much of their time computing hides, and how their bandwidth follows their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from neuron_explorer.collective_waits import RankWait
from neuron_explorer.parts.chart import axis_unit, plain
from neuron_explorer.theme import BLUE, CATEGORICAL, ORANGE, VERMILION, Theme
from neuron_profile.analysis.communication import CollectiveKind, Communication
from neuron_profile.reports.quantities import duration, scaled

HEIGHT, BAR_HEIGHT_PIXELS = 260, 24
MOST_RANKS = 256


def overlap_figure(communication: Communication, theme: Theme) -> Any:
    """Time in which a collective moved, divided into what computing hid and what it did not."""
    figure = go.Figure()
    factor, unit = axis_unit(communication.busy_ns)
    parts = (("Hidden", communication.hidden_ns, BLUE), ("Exposed", communication.exposed_ns, VERMILION))
    for name, time, colour in parts:
        figure.add_trace(
            go.Bar(
                x=[time / factor], y=["Collectives"], orientation="h", name=name,
                marker={"color": colour, "line": {"width": 0}},
                text=[duration(time)], textposition="inside",
                hovertemplate="%{text}<extra>" + name + "</extra>",
            )
        )  # fmt: skip
    figure.update_layout(
        theme.layout(
            height=HEIGHT,
            barmode="stack",
            bargap=0.6,
            margin={"t": 36},
            xaxis={"title": {"text": unit}},
            yaxis={"showgrid": False},
            legend={"traceorder": "normal"},
        )
    )
    return figure


def rank_figure(ranks: Sequence[RankWait], theme: Theme) -> Any:
    """Two stacked bars for each rank, the first on top."""
    shown = list(reversed(ranks[:MOST_RANKS]))
    factor, unit = axis_unit(max((rank.moving_ns + rank.waiting_ns for rank in shown), default=0))
    names = [f"rank {rank.rank}" for rank in shown]
    parts = (
        ("Moving", [rank.moving_ns for rank in shown], BLUE),
        ("Waiting", [rank.waiting_ns for rank in shown], ORANGE),
    )
    bars = [
        go.Bar(
            x=[time / factor for time in times], y=names, orientation="h", name=name,
            marker={"color": colour, "line": {"width": 0}},
            text=[duration(time) for time in times], textposition="none",
            hovertemplate="%{y}: %{text}<extra>" + name + "</extra>",
        )
        for name, times, colour in parts
    ]  # fmt: skip
    figure = go.Figure(bars)
    height = 110 + BAR_HEIGHT_PIXELS * max(len(shown), 2)
    figure.update_layout(
        theme.layout(
            height=height, barmode="stack", margin={"t": 36}, bargap=0.3,
            xaxis={"title": {"text": unit}}, yaxis={"showgrid": False}, legend={"traceorder": "normal"},
        )
    )  # fmt: skip
    return figure


def bandwidth_figure(kinds: Sequence[CollectiveKind], theme: Theme) -> Any:
    """Bus bandwidth against bytes, one colour per operation."""
    figure = go.Figure()
    for number, operation in enumerate(dict.fromkeys(kind.operation for kind in kinds)):
        same = [kind for kind in kinds if kind.operation == operation]
        chosen = [kind for kind in same if kind.input_bytes and kind.bus_bandwidth]
        figure.add_trace(
            go.Scatter(
                x=[kind.input_bytes for kind in chosen], y=[kind.bus_bandwidth for kind in chosen],
                mode="markers", name=plain(operation),
                marker={"size": 9, "color": CATEGORICAL[number % len(CATEGORICAL)]},
                text=[
                    f"{scaled(kind.input_bytes or 0, 'B')}, {scaled(kind.bus_bandwidth or 0, 'B/s')}, "
                    f"{kind.calls:,} calls"
                    for kind in chosen
                ],
                hovertemplate="%{text}<extra>" + plain(operation) + "</extra>",
            )
        )  # fmt: skip
    figure.update_layout(
        theme.layout(
            height=HEIGHT, margin={"t": 36}, showlegend=True,
            xaxis={"type": "log", "title": {"text": "bytes of a rank"}},
            yaxis={"title": {"text": "bus bandwidth"}, "tickformat": "~s", "ticksuffix": "B/s",
                   "rangemode": "tozero"},
        )
    )  # fmt: skip
    return figure
