"""Communication: collectives by kind and size, how fast they were, and what of them computing hides."""

from __future__ import annotations

from typing import Any

from dash import html

from neuron_explorer import results
from neuron_explorer.figures.communication import bandwidth_figure, overlap_figure
from neuron_explorer.page import Page, View
from neuron_explorer.parts.chart import chart_card
from neuron_explorer.parts.quantities import bytes_cell, count_cell, rate_cell, time_cell
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import table_card
from neuron_explorer.sections import section
from neuron_profile.analysis.communication import CollectiveKind, Communication

ROWS = 300
HEADINGS = (
    "Operation", "Algorithm", "Calls", "Sent by a rank", "Got by a rank", "Time", "Shortest", "Waiting",
    "Algorithm bandwidth", "Bus bandwidth",
)  # fmt: skip


def layout(view: View) -> list[Any]:
    """Components of the page."""
    return [COLLECTIVES.show(view)]


@section("communication/collectives", results.COMMUNICATION)
def COLLECTIVES(view: View) -> Any:
    """Charts and table, or a sentence where there are no collectives."""
    found: Communication = view.result(results.COMMUNICATION)
    if not found.kinds:
        return empty_state(
            "There are no collectives in this profile.",
            "They appear where several NeuronCores work together: all-reduce, all-gather and the like.",
        )
    return [
        html.Div(
            [
                chart_card("Hidden behind computing, and not", overlap_figure(found, view.theme)),
                chart_card("Bandwidth by size", bandwidth_figure(found.kinds, view.theme)),
            ],
            className="grid-2",
        ),
        table_card("Collectives", HEADINGS, [_row(kind) for kind in found.kinds[:ROWS]]),
    ]


def _row(kind: CollectiveKind) -> list[Any]:
    return [
        kind.operation, kind.algorithm, count_cell(kind.calls), bytes_cell(kind.input_bytes),
        bytes_cell(kind.output_bytes), time_cell(kind.duration_ns), time_cell(kind.shortest_ns),
        time_cell(kind.wait_ns), rate_cell(kind.algorithm_bandwidth, "B/s"),
        rate_cell(kind.bus_bandwidth, "B/s"),
    ]  # fmt: skip


PAGE = Page("/communication", "Communication", layout, group="Limits")
