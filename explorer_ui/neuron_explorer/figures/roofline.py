"""The roofline as a log-log scatter with the limits of chip and memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log10
from typing import Any

import plotly.graph_objects as go

from neuron_explorer.parts.chart import plain
from neuron_explorer.theme import BLUE, GREEN, ORANGE, PLUM, Theme
from neuron_profile.analysis.roofline import Point, Roofline
from neuron_profile.reports.quantities import duration, percent, scaled

_INTENSITIES = (0.1, 1000.0)
"""What is shown at least, in FLOPs per byte."""
NAMED, LONGEST_LABEL = 8, 32
"""So many of the longest points have their name beside them, with at most so many letters."""
APART = (0.9, 0.12)
"""Decades that names must be apart in one direction or the other."""
MOST_TICKS, MOST_PANEL_TICKS = 12, 5
"""Of an axis, and in a panel of the workspace."""
NAMES_TURN, PANEL_NAMES_TURN = 0.7, 0.5
"""Names of points beyond this part of the axis stand at their left; the same in a panel of the workspace."""
PANEL_LABEL, PANEL_APART = 11, (2.5, 0.6)
"""The longest name, and how far names must be apart, in a panel of the workspace."""
_COLOURS = {"f32": PLUM, "bf16": BLUE, "fp8": GREEN}


def roofline_figure(roofline: Roofline, theme: Theme, most: int, is_panel: bool = False) -> Any:
    """Points by intensity and rate, sized by their time; one roof per element type, dotted if throttled.

    Args:
        is_panel: Whether there is little room, for fewer and shorter names.
    """
    figure = go.Figure()
    points = [point for point in roofline.points if point.flops and point.hbm_bytes][:most]
    shown = _shown_intensities(points)
    turn = PANEL_NAMES_TURN if is_panel else NAMES_TURN
    ticks = MOST_PANEL_TICKS if is_panel else MOST_TICKS
    for dtype, peak in roofline.peak_flops.items():
        colour = _COLOURS.get(dtype, theme.faint)
        figure.add_trace(_roof(roofline, dtype, peak, colour, "solid", shown))
        throttled = roofline.throttled_flops.get(dtype)
        if throttled:
            figure.add_trace(_roof(roofline, f"{dtype}, throttled", throttled, colour, "dot", shown))
    longest = max((point.charged_ns for point in points), default=1)
    figure.add_trace(
        go.Scatter(
            x=[point.intensity for point in points],
            y=[point.flops_per_second for point in points],
            mode="markers+text",
            name=roofline.level,
            text=_labels(points, is_panel),
            customdata=[f"{roofline.level}:{point.name}" for point in points],
            textposition=[_side(point, shown, turn) for point in points],
            textfont={"size": 11, "color": theme.faint},
            marker={
                "size": [6 + 24 * (point.charged_ns / longest) ** 0.5 for point in points],
                "color": ORANGE,
                "line": {"color": theme.paper, "width": 0.5},
                "opacity": 0.8,
            },
            hovertext=[
                f"{plain(point.name)}<br>{duration(point.charged_ns)}, {percent(point.of_bound)} of "
                f"the bound ({point.bound}), {scaled(point.flops_per_second, 'FLOP/s')}"
                for point in points
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    figure.update_layout(
        theme.layout(
            height=480,
            margin={"t": 40},
            xaxis={
                "type": "log",
                "dtick": _decades_apart(shown, ticks),
                "title": {"text": "FLOPs per HBM byte"},
            },
            yaxis={
                "type": "log",
                "dtick": _decades_apart(_rates(figure), ticks),
                "tickformat": "~s",
                "title": {"text": "FLOP/s"},
            },
        )
    )
    return figure


def _decades_apart(values: Sequence[float], most: int) -> int:
    """Decades from one tick of an axis to the next, for so many ticks at most."""
    return max(1, ceil((log10(max(values)) - log10(min(values))) / most)) if values else 1


def _rates(figure: Any) -> list[float]:
    return [rate for trace in figure.data for rate in trace.y if rate]


def _shown_intensities(points: Sequence[Point]) -> tuple[float, float]:
    """The range of the axis: all points, and where the roofs bend."""
    found = [point.intensity for point in points]
    return min([_INTENSITIES[0], *(value / 3 for value in found)]), max(
        [_INTENSITIES[1], *(value * 3 for value in found)]
    )


def _side(point: Point, shown: tuple[float, float], turn: float) -> str:
    """The side of a point that has more room for its name."""
    first, last = log10(shown[0]), log10(shown[1])
    is_far = log10(point.intensity) > first + turn * (last - first)
    return "middle left" if is_far else "middle right"


def _labels(points: Sequence[Point], is_panel: bool) -> list[str]:
    """Names beside the longest points, as far as they do not run into each other; "" for the others."""
    apart, longest = (PANEL_APART, PANEL_LABEL) if is_panel else (APART, LONGEST_LABEL)
    taken: list[tuple[float, float]] = []
    texts = []
    for point in points:
        place = log10(point.intensity), log10(point.flops_per_second)
        is_free = all(abs(place[0] - x) > apart[0] or abs(place[1] - y) > apart[1] for x, y in taken)
        texts.append(f"  {_label(point.name, longest)}  " if is_free and len(taken) < NAMED else "")
        if texts[-1]:
            taken.append(place)
    return texts


def _label(name: str, longest: int) -> str:
    """The end of a name that tells it from others."""
    last = plain(name).rpartition("/")[2].rpartition("::")[2]
    return last if len(last) <= longest else f"{last[: longest - 1]}…"


def _roof(
    roofline: Roofline, name: str, peak: float, colour: str, dash: str, shown: tuple[float, float]
) -> Any:
    bandwidth = roofline.hbm_bytes_per_second
    ridge = peak / bandwidth
    x = [shown[0], ridge, max(shown[1], 3 * ridge)]
    return go.Scatter(
        x=x, y=[x[0] * bandwidth, peak, peak], mode="lines", name=name, line={"color": colour, "dash": dash},
        hoverinfo="skip",
    )  # fmt: skip
