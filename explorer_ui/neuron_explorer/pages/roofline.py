"""The roofline: achieved rate against intensity, with the limits of the chip."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from dash import dcc, html

from neuron_explorer.content import Content
from neuron_explorer.figures.roofline import roofline_figure
from neuron_explorer.pages.parts import table
from neuron_profile.analysis.roofline import LEVELS
from neuron_profile.reports.quantities import duration, percent, scaled

ROWS = 200
_HEADINGS = ("Name", "Time", "Rate", "FLOPs per byte", "Bound by", "Of the bound")


def roofline_page(content: Content, search: str) -> list[Any]:
    """Components of the page.

    Args:
        search: Query part of the address: `?level=line` chooses what a point is.
    """
    asked = parse_qs(search.lstrip("?")).get("level", [""])[0]
    level = asked if asked in LEVELS else "operation"
    links = [dcc.Link(name, href=f"/roofline?level={name}", className="tab") for name in LEVELS]
    roofline = content.roofline(level)
    if not roofline.points:
        return [html.P("This profile has no HLO operations to draw.")]
    rows = [
        (
            point.name or "(none)",
            duration(point.span_ns),
            scaled(point.flops_per_second, "FLOP/s"),
            f"{point.intensity:.3g}",
            point.bound,
            percent(point.of_bound),
        )
        for point in roofline.points[:ROWS]
    ]
    return [
        html.Div(links, className="levels"),
        dcc.Graph(figure=roofline_figure(roofline)),
        table(_HEADINGS, rows),
    ]
