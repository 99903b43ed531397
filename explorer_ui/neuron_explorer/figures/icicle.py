"""A tree as an icicle: height is time, one column of depth after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from neuron_explorer.parts.chart import plain, short
from neuron_explorer.theme import Theme
from neuron_profile.reports.quantities import duration, percent
from neuron_tools.frozen import frozen

HEIGHT = 420
SMALLEST_TEXT = 9
LETTERS = 170
"""So many fit beside each other in a page's width, in all columns together."""
LOW = 0.12
"""Parts of less of the height have one line: more would not fit, and all be left out."""
SEPARATOR = " · "
"""Between what stands on lines of their own in the name of a part."""
NEUTRAL = "#dde3ea"
TINTS = ("#9ccbe8", "#f3cf86", "#9fdcc4", "#e8c0d8", "#f2b48c", "#c3cbf0", "#eee69a", "#c9d3a8")
"""Okabe and Ito's colours, so light that dark text can be read on all of them."""


@frozen
class IciclePart:
    """A part of an icicle.

    Attributes:
        parent: Position of the part that it is in; -1 of the first.
        time_ns: With all that is in it.
        family: Parts of one family have one colour; "" is neutral.
        note: What pointing at it tells besides its name and time.
    """

    parent: int
    name: str
    time_ns: float
    family: str = ""
    note: str = ""


def icicle_figure(parts: Sequence[IciclePart], theme: Theme, depth: int = 5) -> Any:
    """Parts, each behind the one that it is in; `depth` columns of them are shown at once."""
    total = parts[0].time_ns or 1.0
    figure = go.Figure(
        go.Icicle(
            ids=[str(place) for place in range(len(parts))],
            labels=[plain(part.name) for part in parts],
            parents=["" if part.parent < 0 else str(part.parent) for part in parts],
            values=_own_parts(parts),
            branchvalues="remainder",  # totals would have to agree to the last bit
            text=[f"{duration(part.time_ns)} · {percent(part.time_ns / total)}" for part in parts],
            texttemplate="%{customdata[1]}",
            customdata=[[plain(part.note), label] for part, label in zip(parts, _labels(parts, depth))],
            hovertemplate="%{label}<br>%{text}<br>%{customdata[0]}<extra></extra>",
            marker={
                "colors": _colours(parts),
                "line": {"color": theme.paper, "width": 1},
            },
            textfont={"color": "#15202b"},
            tiling={"orientation": "h"},
            pathbar={"thickness": 24, "textfont": {"color": "#15202b"}},
            maxdepth=depth,
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


def _labels(parts: Sequence[IciclePart], depth: int) -> list[str]:
    """What stands on each part: cut to its column, as text that does not fit is left out as a whole."""
    depths: list[int] = []
    for part in parts:
        depths.append(depths[part.parent] + 1 if part.parent >= 0 else 1)
    letters = LETTERS // min(depth, max(depths))
    total = parts[0].time_ns or 1.0
    labels = []
    for part in parts:
        share = part.time_ns / total
        lines = [*part.name.split(SEPARATOR), f"{duration(part.time_ns)} · {percent(share)}"]
        shown = lines if share >= LOW else lines[:1]
        labels.append("<br>".join(short(line, letters) for line in shown))
    return labels


def _own_parts(parts: Sequence[IciclePart]) -> list[float]:
    """Of each part, what those in it do not cover."""
    rest = [part.time_ns for part in parts]
    for part in parts:
        if part.parent >= 0:
            rest[part.parent] -= part.time_ns
    return [round(max(0.0, time_ns), 1) for time_ns in rest]


def _colours(parts: Sequence[IciclePart]) -> list[str]:
    """Of each part the colour of its family: the families with the most time are told apart first."""
    times: dict[str, float] = {}
    for part in parts[1:]:
        if part.family:
            times[part.family] = max(times.get(part.family, 0.0), part.time_ns)
    ordered = sorted(times, key=lambda family: -times[family])
    colours = {family: TINTS[place % len(TINTS)] for place, family in enumerate(ordered)}
    return [colours.get(part.family, NEUTRAL) if part.parent >= 0 else NEUTRAL for part in parts]
