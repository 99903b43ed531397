"""The hierarchy: modules and operations as a tree table, and as an icicle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, dcc, html

from neuron_explorer import results
from neuron_explorer.figures.icicle import IciclePart, icicle_figure
from neuron_explorer.module_tree import OPERATION_WORK, TreeRow, count_nodes, make_tree, tree_rows
from neuron_explorer.page import Page, Site, View
from neuron_explorer.parts.card import card
from neuron_explorer.parts.chart import chart_card
from neuron_explorer.parts.states import empty_state
from neuron_explorer.sections import section
from neuron_profile.analysis.overview import Overview
from neuron_profile.reports.quantities import duration, percent, scaled

ROWS, CELLS = 700, 250
OPEN_DEPTH = 2  # deeper rows are folded at first
HEADINGS = (
    "Module or operation",
    "Time",
    "Share",
    "Forward",
    "Backward",
    "Own",
    "Calls",
    "HBM",
    "Instructions",
)


def layout(view: View) -> list[Any]:
    """Components of the page."""
    return [TREE.show(view)]


@section("hierarchy/tree", results.OVERVIEW, OPERATION_WORK)
def TREE(view: View) -> Any:
    """Icicle and table, or a sentence where nothing ran on the device."""
    overview: Overview = view.result(results.OVERVIEW)
    if not overview.hotspots.device_ns:
        return empty_state(
            "No device time belongs to modules or operations here.",
            "It needs framework operations; a trace of a host program has spans: see the timeline.",
        )
    root = make_tree(overview.hotspots.charges, view.result(OPERATION_WORK))
    rows = tree_rows(root, ROWS)
    hidden = count_nodes(root) - len(rows)
    note = f" The {hidden:,} cheapest rows are left out." if hidden else ""
    unattributed = percent(overview.hotspots.unattributed_ns / overview.hotspots.device_ns)
    button = html.Button("CSV", className="button quiet", title="Save as CSV", **{"data-action": "csv"})
    body = [
        html.Div(
            id="tree-table", className="table-wrap", tabIndex=0, role="region", **{"aria-label": "Hierarchy"}
        ),
        dcc.Store(id="tree-data", data=tree_data(view, rows)),
    ]
    return [
        chart_card(
            "Device time by module",
            icicle_figure([_part(row) for row in tree_rows(root, CELLS)], view.theme),
            explains="Height is time. Equal names have one colour, numbers none. Click a part to go into it.",
        ),
        card(
            "Modules and operations",
            body,
            actions=[button],
            explains=(
                "Backward time stands at the module whose forward operations it differentiates. "
                f"{unattributed} of the device time lies between the operations of graphs.{note}"
            ),
            name="hierarchy",
            flush=True,
        ),
    ]


def _part(row: TreeRow) -> IciclePart:
    """Parts of equal name, whatever number they have, are of one colour."""
    name = row.node.name
    return IciclePart(row.parent, name, row.node.device_ns, "" if name.isdigit() else name)


def tree_data(view: View, rows: Sequence[TreeRow]) -> dict[str, Any]:
    """The rows as the browser builds them.

    Returns:
        `headings`; `rows`: of each depth, name, path if it is a module, whether it is open, and cells
        `[shown, value]`.
    """
    total = rows[0].node.device_ns or 1.0
    return {
        "headings": HEADINGS,
        "link": view.address.to("/timeline"),
        "rows": [_row(row, total) for row in rows],
    }


def _row(row: TreeRow, total_ns: float) -> list[Any]:
    node = row.node
    forward_ns = node.device_ns - node.backward_ns
    times = [
        (duration(value) if value else "", round(value))
        for value in (forward_ns, node.backward_ns, node.own_ns)
    ]
    cells = [
        (duration(node.device_ns), round(node.device_ns)),
        (percent(node.device_ns / total_ns), round(node.device_ns / total_ns, 5)),
        *times,
        (f"{node.count:,}", node.count),
        (scaled(node.hbm_bytes, "B") if node.hbm_bytes else "", node.hbm_bytes),
        (f"{node.instructions:,}" if node.instructions else "", node.instructions),
    ]
    return [row.depth, node.name, node.path if node.kind == "module" else "", row.depth < OPEN_DEPTH, cells]


def register(app: Dash, site: Site) -> None:
    """Build the tree table in the browser."""
    app.clientside_callback(
        ClientsideFunction("explorer", "show_tree"),
        Output("tree-data", "modified_timestamp"),
        Input("tree-data", "data"),
    )


PAGE = Page("/hierarchy", "Hierarchy", layout, register, group="Where time goes")
