"""The panels of the workspace: which page each shows, and what of the address it depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dash import html

from neuron_explorer import results
from neuron_explorer.page import View
from neuron_explorer.pages.source import file_needs
from neuron_explorer.pages.source_detail import DETAIL, asked_line
from neuron_explorer.parts.states import empty_state
from neuron_explorer.sections import Section, section
from neuron_explorer.source_costs import SOURCE_WORK, opening_line
from neuron_explorer.workspace.headline import HEADLINE
from neuron_profile.analysis.line_times import LineTimes
from neuron_tools.frozen import frozen


@frozen
class Panel:
    """A panel.

    Attributes:
        title: On its tab.
        path: The page whose content it shows; "" = its own.
        parameters: What of the address, besides profile and range, its content depends on.
        draw: Its own content.
        kept: Those of the parameters that it notes in the address by itself.
    """

    name: str
    title: str
    path: str = ""
    parameters: tuple[str, ...] = ()
    draw: Callable[[View], Any] | None = None
    kept: tuple[str, ...] = ()


def _headline(view: View) -> Any:
    return HEADLINE.show(view)


def _compiled(view: View) -> Any:
    """What the chosen line became, HLO operations and instructions; of the costliest where none is."""
    chosen = view.address.get("file") and asked_line(view.address)
    return (DETAIL if chosen else COSTLIEST).show(view)


@section("compiled/costliest", results.OVERVIEW)
def COSTLIEST(view: View) -> Any:
    """What the line with which Source begins became, in the file that is charged most."""
    lines = view.result(results.OVERVIEW).hotspots.lines
    if not lines:
        return empty_state("No line is chosen.", "Choose one in Source: here stands what it became.")
    return OPENED.show(_with(view, file=lines[0].place.file))


def _opened(view: View) -> Any:
    file = view.address.get("file")
    overview = view.result(results.OVERVIEW)
    times = LineTimes.of(overview.hotspots, overview.kernel_lines, file)
    return DETAIL.show(_with(view, line=str(opening_line(times, view.result(SOURCE_WORK, file)))))


OPENED = Section("compiled/opened", file_needs, _opened)


def _with(view: View, **parameters: str) -> View:
    return replace(view, address=replace(view.address, parameters={**view.address.parameters, **parameters}))


def _details(view: View) -> Any:
    """What is there until the timeline is; it brings the details of the chosen span or range with it."""
    return html.P("Choose a span on the timeline, or drag over a range with Shift.", className="faint")


PANELS = (
    Panel("headline", "Headline", parameters=("finding",), draw=_headline),
    Panel("timeline", "Timeline", "/timeline", ("compare",)),
    Panel("operators", "Operators", "/operators", ("by", "grid"), kept=("grid",)),
    Panel("source", "Source", "/source", ("file",)),
    Panel("advice", "Advice", "/advice"),
    Panel("details", "Details", draw=_details),
    Panel("overview", "Summary", "/overview"),
    Panel("hierarchy", "Hierarchy", "/hierarchy"),
    Panel("regions", "Regions", "/regions", ("regions",)),
    Panel("roofline", "Roofline", "/roofline", ("level",)),
    Panel("memory", "Memory", "/memory", ("program", "memory")),
    Panel("tensors", "Tensors", "/tensors", ("tensor",)),
    Panel("communication", "Communication", "/communication"),
    Panel("compiled", "Written and compiled", "", ("file", "line"), _compiled),
    Panel("diff", "Differences", "/diff", ("base",)),
    Panel("query", "SQL", "/query", ("sql", "chart"), kept=("sql", "chart")),
)


def panel_named(name: str) -> Panel | None:
    """The panel of a name."""
    return next((panel for panel in PANELS if panel.name == name), None)
