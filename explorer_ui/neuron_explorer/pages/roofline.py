"""The roofline: achieved rate against intensity, with the limits of the chip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_explorer import results
from neuron_explorer.figures.roofline import roofline_figure
from neuron_explorer.page import Page, View
from neuron_explorer.parts.chart import chart_card, fitted_chart
from neuron_explorer.parts.quantities import Cell, rate_cell, share_cell, time_cell
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import table_card
from neuron_explorer.parts.tabs import tabs
from neuron_explorer.sections import Need, Section
from neuron_profile.analysis.roofline import LEVELS, Point, Roofline

ROWS, POINTS = 200, 400
_HEADINGS = ("Name", "Time", "Rate", "FLOPs per byte", "Bound by", "Of the bound")


def layout(view: View) -> list[Any]:
    """Components of the page; `level` in the address chooses what a point is."""
    choices = {name: name.upper() if name == "hlo" else name.capitalize() for name in LEVELS}
    label = "Points" if view.is_panel else "One point per"
    return [tabs(view, "level", label, choices, _level(view)), CHART.show(view)]


def _level(view: View) -> str:
    asked = view.address.get("level")
    return asked if asked in LEVELS else "operation"


def _needs(view: View) -> Sequence[Need]:
    return [(results.ROOFLINE, _level(view))]


def _draw(view: View) -> Any:
    roofline: Roofline = view.result(results.ROOFLINE, _level(view))
    if not roofline.points:
        return empty_state(
            "There is no work to relate to bytes.",
            "A roofline needs HLO operations with FLOPs and bytes, or a torch.profiler trace with shapes "
            "(record_shapes=True) of a device whose peaks are known; this profile has neither.",
        )
    if view.is_panel:
        figure = roofline_figure(roofline, view.theme, POINTS, is_panel=True)
        return fitted_chart(figure, "Roofline of one NeuronCore")
    rows = [_row(point, roofline.level) for point in roofline.points[:ROWS]]
    return [
        chart_card(
            f"Roofline of {roofline.device}", roofline_figure(roofline, view.theme, POINTS),
            explains=(
                "A point's size is its time. Roofs are the chip's limits, dotted while it is throttled. "
                "What computes no FLOPs of the model stands in the table only."
            ),
        ),
        table_card("The same in numbers", _HEADINGS, rows, name=f"roofline {roofline.level}"),
    ]  # fmt: skip


def _row(point: Point, level: str) -> list[Any]:
    return [
        Cell(point.name or "(none)", select=f"{level}:{point.name}"),
        time_cell(point.charged_ns),
        rate_cell(point.flops_per_second or None, "FLOP/s"),
        Cell(f"{point.intensity:.3g}" if point.flops else "", point.intensity, True),
        point.bound,
        share_cell(point.of_bound, bar=True),
    ]


CHART = Section("roofline/chart", _needs, _draw)
PAGE = Page("/roofline", "Roofline", layout, group="Limits")
