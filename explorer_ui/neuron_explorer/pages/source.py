"""The source page: costly lines on the left, the chosen file with each line's time on the right."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlencode

from dash import dcc, html

from neuron_explorer.content import Content
from neuron_explorer.pages.parts import share, table
from neuron_profile.analysis.hotspots import Cost, LineCost
from neuron_profile.reports.places import place, short_path
from neuron_profile.reports.quantities import duration

LINE_ROWS = 200
FILE_LINES = 20_000
HEAT_STEPS = 5  # background classes heat-1 .. heat-5 of the style sheet


def source_page(content: Content, search: str) -> list[Any]:
    """Components of the page.

    Args:
        search: Query part of the address: `?file=PATH` chooses the file, else the costliest is shown.
    """
    if not content.lines:
        return [html.P("No device time of this profile has a source line.")]
    file = _chosen_file(content, search)
    return [html.Div([_line_table(content), _file_view(content, file)], className="beside")]


def _chosen_file(content: Content, search: str) -> str:
    """The asked file if the profile has time in it; any other path is never looked at."""
    known = [file for file, _ in content.files()]
    asked = parse_qs(search.lstrip("?")).get("file", [""])[0]
    return asked if asked in known else known[0]


def _line_table(content: Content) -> Any:
    device_ns = content.overview.hotspots.device_ns
    rows = [
        (_link(row), duration(row.cost.device_ns), share(row.cost.device_ns, device_ns))
        for row in content.lines[:LINE_ROWS]
    ]
    return html.Div([html.H2("Costliest lines"), table(("Line", "Time", "Share"), rows)], className="lines")


def _link(row: LineCost) -> Any:
    target = f"/source?{urlencode({'file': row.place.file})}"
    return dcc.Link(place(row.place), href=target, title=f"{row.place.file} in {row.function}")


def _file_view(content: Content, file: str) -> Any:
    texts, costs = content.overview.texts.lines(file), content.line_costs(file)
    heading = html.H2(short_path(file), title=file)
    if not texts:
        unknown = "The text of this file is not in the profile and cannot be read here."
        return html.Div([heading, html.P(unknown), _bare_lines(costs)], className="file")
    costliest = max((cost.device_ns for cost in costs.values()), default=0.0)
    rows = [
        _source_line(number, text, costs.get(number), costliest)
        for number, text in enumerate(texts[:FILE_LINES], start=1)
    ]
    return html.Div([heading, html.Table(html.Tbody(rows), className="code")], className="file")


def _source_line(number: int, text: str, cost: Cost | None, costliest_ns: float) -> Any:
    time = duration(cost.device_ns) if cost else ""
    return html.Tr(
        [html.Td(time, className="time"), html.Td(str(number), className="number"), html.Td(html.Pre(text))],
        className=_heat(cost, costliest_ns),
    )


def _heat(cost: Cost | None, costliest_ns: float) -> str:
    if cost is None or not costliest_ns:
        return ""
    return f"heat-{max(1, round(HEAT_STEPS * cost.device_ns / costliest_ns))}"


def _bare_lines(costs: dict[int, Cost]) -> Any:
    rows = [(str(number), duration(cost.device_ns)) for number, cost in sorted(costs.items())]
    return table(("Line", "Time"), rows)
