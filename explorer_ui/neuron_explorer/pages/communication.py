"""Communication: collectives by kind, rank and line, how fast they were, what computing hides, who waits."""

from __future__ import annotations

from typing import Any

from dash import html

from neuron_explorer import results
from neuron_explorer.collective_waits import COLLECTIVE_WAITS, CollectiveWaits, LineWait, RankWait
from neuron_explorer.figures.communication import bandwidth_figure, overlap_figure, rank_figure
from neuron_explorer.page import Page, View
from neuron_explorer.parts.chart import chart_card
from neuron_explorer.parts.quantities import Cell, bytes_cell, count_cell, rate_cell, time_cell
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import table_card
from neuron_explorer.sections import section
from neuron_profile.analysis.communication import CollectiveKind, Communication
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.reports.places import place

ROWS = 300
HEADINGS = (
    "Operation", "Algorithm", "Calls", "Sent by a rank", "Got by a rank", "Time", "Shortest", "Waiting",
    "Algorithm bandwidth", "Bus bandwidth",
)  # fmt: skip
RANK_HEADINGS = ("Rank", "Machine", "Calls", "Moving", "Waiting", "Came last")
LINE_HEADINGS = ("Line", "Operation", "Calls", "Moving", "Waiting")


def layout(view: View) -> list[Any]:
    """Components of the page."""
    return [COLLECTIVES.show(view)]


@section("communication/collectives", results.COMMUNICATION, COLLECTIVE_WAITS)
def COLLECTIVES(view: View) -> Any:
    """Charts and table, or a sentence where there are no collectives."""
    found: Communication = view.result(results.COMMUNICATION)
    if not found.kinds:
        return empty_state(
            "There are no collectives in this profile.",
            "They appear where several NeuronCores or other devices work together: all-reduce, all-gather "
            "and the like.",
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
        *_waits(view, view.result(COLLECTIVE_WAITS)),
    ]


def _waits(view: View, waits: CollectiveWaits) -> list[Any]:
    """Charts and tables of ranks and lines; a rank alone waits for nobody."""
    parts = []
    if len(waits.ranks) > 1:
        ranks = [_rank_row(rank) for rank in waits.ranks[:ROWS]]
        parts += [
            chart_card(
                "Moving and waiting by rank",
                rank_figure(waits.ranks, view.theme),
                explains="A rank waits until the last one is ready: who waits least holds the others up.",
            ),
            table_card("By rank", RANK_HEADINGS, ranks),
        ]
    lines = [_line_row(view, line) for line in waits.lines[:ROWS] if line.file]
    return [*parts, *([table_card("By source line", LINE_HEADINGS, lines)] if lines else [])]


def _rank_row(rank: RankWait) -> list[Any]:
    return [
        Cell(f"rank {rank.rank}", rank.rank), rank.host, count_cell(rank.calls), time_cell(rank.moving_ns),
        time_cell(rank.waiting_ns), count_cell(rank.late),
    ]  # fmt: skip


def _line_row(view: View, line: LineWait) -> list[Any]:
    return [
        Cell(
            place(SourceLine(line.file, line.line)),
            href=view.address.to("/source", file=line.file, line=line.line),
            title=line.file,
        ),
        line.operation, count_cell(line.calls), time_cell(line.moving_ns), time_cell(line.waiting_ns),
    ]  # fmt: skip


def _row(kind: CollectiveKind) -> list[Any]:
    return [
        kind.operation, kind.algorithm, count_cell(kind.calls), bytes_cell(kind.input_bytes),
        bytes_cell(kind.output_bytes), time_cell(kind.duration_ns), time_cell(kind.shortest_ns),
        time_cell(kind.wait_ns), rate_cell(kind.algorithm_bandwidth, "B/s"),
        rate_cell(kind.bus_bandwidth, "B/s"),
    ]  # fmt: skip


PAGE = Page("/communication", "Communication", layout, group="Limits")
