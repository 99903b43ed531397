"""The module table: the model's tree with the device time of each module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dash import html

from neuron_explorer.content import Content
from neuron_explorer.pages.parts import COST_HEADINGS, cost_cells, share, table
from neuron_profile.analysis.hotspots import ModuleNode
from neuron_profile.reports.quantities import duration

ROWS = 1000


def modules_page(content: Content) -> list[Any]:
    """Components of the page."""
    hotspots = content.overview.hotspots
    nodes = list(_walk(hotspots.modules))
    rows = [_row(depth, node, hotspots.device_ns) for depth, node in nodes[:ROWS]]
    hidden = len(nodes) - len(rows)
    unattributed = share(hotspots.unattributed_ns, hotspots.device_ns)
    return [
        html.P(
            "Device time of each module with everything inside it; backward time stands at the module whose "
            f"forward operations it differentiates. {unattributed} lies between the operations of graphs."
        ),
        table(("Module", *COST_HEADINGS, "Own time"), rows),
        html.P(f"{hidden:,} further modules are not shown." if hidden else ""),
    ]


def _walk(node: ModuleNode, depth: int = 0) -> Iterator[tuple[int, ModuleNode]]:
    yield depth, node
    for child in node.children:
        yield from _walk(child, depth + 1)


def _row(depth: int, node: ModuleNode, device_ns: float) -> list[Any]:
    name = "(whole program)" if not depth else node.name
    label = html.Span(name, style={"paddingLeft": f"{1.2 * depth}em"}, title=node.path)
    return [label, *cost_cells(node.cost, device_ns), duration(node.own_ns) if node.own_ns else ""]
