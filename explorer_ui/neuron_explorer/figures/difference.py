"""Changes between two profiles as bars to the left (faster) and to the right (slower)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from neuron_explorer.parts.chart import short
from neuron_explorer.theme import BLUE, VERMILION, Theme
from neuron_profile.analysis.comparison.difference import Delta
from neuron_profile.reports.difference_text import signed

BAR_HEIGHT_PIXELS, LABEL_PIXELS = 24, 330


def difference_figure(deltas: Sequence[Delta], theme: Theme) -> Any:
    """One bar per operation, the largest change on top."""
    rows = list(reversed(deltas))
    figure = go.Figure(
        go.Bar(
            y=list(range(len(rows))),
            x=[delta.delta_ns / 1e3 for delta in rows],
            orientation="h",
            marker={
                "color": [VERMILION if delta.delta_ns > 0 else BLUE for delta in rows],
                "line": {"width": 0},
            },
            text=[signed(delta.delta_ns) for delta in rows],
            textposition="auto",
            hovertext=[_label(delta) for delta in rows],
            hovertemplate="%{hovertext}: %{text}<extra></extra>",
        )
    )
    figure.update_layout(
        theme.layout(
            height=70 + BAR_HEIGHT_PIXELS * max(len(rows), 1),
            margin={"t": 8, "l": LABEL_PIXELS, "r": 20},
            xaxis={"title": {"text": "change in µs of device time"}},
            yaxis={
                "automargin": False,
                "showgrid": False,
                "tickvals": list(range(len(rows))),
                "ticktext": [_label(delta) for delta in rows],
            },
        )
    )
    return figure


def _label(delta: Delta) -> str:
    direction = " (backward)" if delta.key.backward else ""
    return short(f"{delta.key.module} {delta.key.operation}{direction}".strip(), 48)
