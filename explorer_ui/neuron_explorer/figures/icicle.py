"""The hierarchy as an icicle: height is device time, one column of depth after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from neuron_explorer.module_tree import TreeRow
from neuron_explorer.parts.chart import plain
from neuron_explorer.theme import Theme
from neuron_profile.reports.quantities import duration, percent

HEIGHT = 420
SMALLEST_TEXT = 9
NEUTRAL = "#dde3ea"
TINTS = ("#9ccbe8", "#f3cf86", "#9fdcc4", "#e8c0d8", "#f2b48c", "#c3cbf0", "#eee69a", "#c9d3a8")
"""Okabe and Ito's colours, so light that dark text can be read on all of them."""


def icicle_figure(rows: Sequence[TreeRow], theme: Theme) -> Any:
    """Rows of the tree; parts of equal name, whatever number they have, are of one colour."""
    total = rows[0].node.device_ns or 1.0
    figure = go.Figure(
        go.Icicle(
            ids=[str(place) for place in range(len(rows))],
            labels=[plain(row.node.name) for row in rows],
            parents=["" if row.parent < 0 else str(row.parent) for row in rows],
            values=_own_parts(rows),
            branchvalues="remainder",  # totals would have to agree to the last bit
            text=[f"{duration(row.node.device_ns)} · {percent(row.node.device_ns / total)}" for row in rows],
            textinfo="label+text",
            hovertemplate="%{label}<br>%{text}<extra></extra>",
            marker={
                "colors": _colours(rows),
                "line": {"color": theme.paper, "width": 1},
            },
            textfont={"color": "#15202b"},
            tiling={"orientation": "h"},
            pathbar={"thickness": 24, "textfont": {"color": "#15202b"}},
            maxdepth=5,
            sort=False,
        )
    )
    figure.update_layout(
        theme.layout(
            height=HEIGHT,
            margin={"l": 4, "r": 4, "t": 30, "b": 4},
            uniformtext={"minsize": SMALLEST_TEXT, "mode": "hide"},
        )
    )
    return figure


def _own_parts(rows: Sequence[TreeRow]) -> list[float]:
    """Of each row, what its own rows below do not cover."""
    parts = [row.node.device_ns for row in rows]
    for row in rows:
        if row.parent >= 0:
            parts[row.parent] -= row.node.device_ns
    return [round(max(0.0, part), 1) for part in parts]


def _colours(rows: Sequence[TreeRow]) -> list[str]:
    """Of each row the colour of its name: the names with the most time are told apart first."""
    times: dict[str, float] = {}
    for row in rows[1:]:
        name = row.node.name
        if not name.isdigit():
            times[name] = max(times.get(name, 0.0), row.node.device_ns)
    ordered = sorted(times, key=lambda name: -times[name])
    colours = {name: TINTS[place % len(TINTS)] for place, name in enumerate(ordered)}
    return [colours.get(row.node.name, NEUTRAL) if row.parent >= 0 else NEUTRAL for row in rows]
