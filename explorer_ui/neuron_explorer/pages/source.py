"""The source page: a file with what each line cost in its gutter, and beside it what a line became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from neuron_explorer import results
from neuron_explorer.page import Page, Site, View
from neuron_explorer.pages.source_detail import DETAIL, asked_line
from neuron_explorer.parts.card import card
from neuron_explorer.parts.quantities import Cell, share_cell, time_cell
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import table_card
from neuron_explorer.sections import Need, Section, section
from neuron_explorer.source_costs import SOURCE_FILES, SOURCE_WORK, LineWork, opening_line, source_text
from neuron_explorer.theme import ENGINE_COLOURS, engine_colour
from neuron_profile.analysis.hotspots import LineCost
from neuron_profile.analysis.line_times import LineTimes
from neuron_profile.analysis.overview import Overview
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.reports.places import short_path
from neuron_profile.reports.quantities import duration, scaled

_TITLES = {"gpsimd": "GpSimd", "dma": "DMA"}
FILES, HOT_LINES = 100, 60
MOST_LINES, MOST_CHARACTERS = 1500, 60_000
"""Of a file, shown at once: around the chosen line."""


def layout(view: View) -> list[Any]:
    """Components of the page; `file` and `line` in the address choose what it shows."""
    return [SOURCE.show(view)]


@section("source/file", results.OVERVIEW, SOURCE_FILES)
def SOURCE(view: View) -> Any:
    """The list of costly lines, the file, and the details of the chosen line."""
    files: tuple[str, ...] = view.result(SOURCE_FILES)
    overview: Overview = view.result(results.OVERVIEW)
    if not files:
        return empty_state(
            "No row of this profile names a source line.",
            "A capture by neuron-profile has them; other traces where Python stacks were recorded.",
        )
    file = chosen_file(view, files, overview.hotspots.lines)
    if view.is_panel:
        return [_file_choice(view, files, file), FILE.show(_with_file(view, file))]
    return [
        html.Div(
            [_aside(view, files, file, overview), FILE.show(_with_file(view, file))],
            className="source-layout",
        ),
        dcc.Store(id="source-line", data=asked_line(view.address)),
        html.Div(id="source-detail", className="section"),
    ]


def chosen_file(view: View, files: Sequence[str], lines: Sequence[LineCost]) -> str:
    """The asked file if the profile names it; else the costliest. Any other path is never looked at."""
    asked = view.address.get("file")
    if asked in files:
        return asked
    return lines[0].place.file if lines else files[0]


def _with_file(view: View, file: str) -> View:
    parameters = {**view.address.parameters, "file": file}
    return replace(view, address=replace(view.address, parameters=parameters))


def _aside(view: View, files: Sequence[str], chosen: str, overview: Overview) -> Any:
    listed = card("Files", _file_links(view, files, chosen))
    return html.Div([listed, *_hot_lines(view, overview)], className="stack")


def _file_choice(view: View, files: Sequence[str], chosen: str) -> Any:
    """The file that a panel shows, and a list of the others that opens."""
    others = html.Div(_file_links(view, files, chosen), className="file-list")
    return html.Details([html.Summary(short_path(chosen), title=chosen), others], className="file-choice")


def _file_links(view: View, files: Sequence[str], chosen: str) -> list[Any]:
    links = [
        html.Li(
            html.A(
                short_path(file),
                href=view.address.to(file=file, line=None),
                title=file,
                className="nav-link",
                **({"aria-current": "true"} if file == chosen else {}),
            )
        )
        for file in list(files)[:FILES]
    ]
    hidden = len(files) - FILES
    more = [html.P(f"{hidden:,} further files are not listed.", className="explains")] if hidden > 0 else []
    return [html.Ul(links, className="plain"), *more]


def _hot_lines(view: View, overview: Overview) -> list[Any]:
    charged = [(row.place, row.function, row.cost.device_ns) for row in overview.hotspots.lines]
    inside = [(row.place, row.function, row.device_ns) for row in overview.kernel_lines]
    device_ns = overview.hotspots.device_ns
    tables = (("Costliest lines", charged), ("Costliest lines in kernels", inside))
    return [_line_table(view, title, rows, device_ns) for title, rows in tables if rows]


def _line_table(
    view: View, title: str, lines: Sequence[tuple[SourceLine, str, float]], whole_ns: float
) -> Any:
    several = len({place.file for place, _, _ in lines}) > 1
    rows = [
        (
            Cell(
                f"{place.line} · {place.file.rpartition('/')[2] if several else function}",
                href=view.address.to(file=place.file, line=place.line),
                title=f"{place.file} in {function}",
                select=f"line:{place.file}:{place.line}",
            ),
            share_cell(device_ns / whole_ns if whole_ns else None),
            time_cell(device_ns),
        )
        for place, function, device_ns in lines[:HOT_LINES]
    ]
    return table_card(title, ("Line", "Share", "Time"), rows)


def file_needs(view: View) -> Sequence[Need]:
    """What the lines of the file in the address and their costs wait for."""
    return [(results.OVERVIEW,), (SOURCE_WORK, view.address.get("file"))]


def _draw_file(view: View) -> Any:
    file = view.address.get("file")
    work: dict[int, LineWork] = view.result(SOURCE_WORK, file)
    overview: Overview = view.result(results.OVERVIEW)
    times = LineTimes.of(overview.hotspots, overview.kernel_lines, file)
    texts = source_text(view.profile, file)
    data = {"file": file, **file_data(texts, work, times, asked_line(view.address))}
    notes = []
    if not texts:
        notes.append(
            "The profile does not keep the text of this file: only the numbers of its lines are shown."
        )
    if data["first"] > 1 or data["last"] < len(texts):
        notes.append(f"Lines {data['first']:,} to {data['last']:,} of {len(texts):,} are shown.")
    if times.in_kernels:
        notes.append("Times inside a kernel are part of the time of the line that calls it.")
    body = [
        html.Div(_legend(), className="explains"),
        *(html.P(note, className="explains") for note in notes),
        html.Div(
            id="source-code",
            className="table-wrap",
            tabIndex=0,
            role="region",
            **{"aria-label": "Source code"},
        ),
        dcc.Store(id="source-data", data=data),
    ]
    if view.is_panel:
        return [*body, dcc.Store(id="source-line", data=asked_line(view.address))]
    button = html.Button("CSV", className="button quiet", title="Save as CSV", **{"data-action": "csv"})
    return card(
        short_path(file), body, actions=[button], name=f"source {file.rpartition('/')[2]}", flush=True
    )


FILE = Section("source/text", file_needs, _draw_file)


def _legend() -> Any:
    entries = [
        html.Span([html.I(style={"background": colour}), _TITLES.get(name, name.capitalize())])
        for name, colour in ENGINE_COLOURS.items()
        if name != "collectives"
    ]
    return html.Span(
        [*entries, html.Span("grey times: the host's, where nothing runs on the device")], className="legend"
    )


def file_data(
    texts: Sequence[str], work: Mapping[int, LineWork], times: LineTimes, line: int
) -> dict[str, Any]:
    """The lines to show as the browser builds them: compact, at most so many, around a line.

    Returns:
        `first`, `last`: numbers of the first and last line; `opened`: the line to begin with; `lines`: of
        each its text, time in ns, shown time, instructions, shown bytes, bytes, parts `[colour, percent,
        name]` of busy time by engine, and whether the time is the host's, as nothing of the line ran on the
        device.
    """
    on_device = times.shown
    count = max([len(texts), *work, *on_device], default=0)
    numbers: Sequence[int] = range(1, count + 1) if texts else sorted({*work, *on_device})
    opened = line or opening_line(times, work)
    shown = _window(texts, numbers, opened or 1)
    costliest = max(on_device.values(), default=0.0) or 1.0
    lines = [_line(number, texts, work.get(number), on_device.get(number, 0.0)) for number in shown]
    return {
        "first": shown[0] if shown else 0,
        "last": shown[-1] if shown else 0,
        "opened": opened,
        "costliest": round(costliest),
        "lines": lines,
    }


def _window(texts: Sequence[str], numbers: Sequence[int], line: int) -> Sequence[int]:
    """Numbers around a line, so many that lines and characters stay within the limits."""
    place = next((index for index, number in enumerate(numbers) if number >= line), 0)
    first = max(0, min(place - MOST_LINES // 2, len(numbers) - MOST_LINES))
    chosen = numbers[first : first + MOST_LINES]
    while len(chosen) > 1 and _characters(texts, chosen) > MOST_CHARACTERS:
        quarter = len(chosen) // 4 or 1
        chosen = chosen[quarter:] if line - chosen[0] > chosen[-1] - line else chosen[:-quarter]
    return chosen


def _characters(texts: Sequence[str], numbers: Sequence[int]) -> int:
    return sum(len(texts[number - 1]) + 8 for number in numbers if number <= len(texts))


def _line(number: int, texts: Sequence[str], work: LineWork | None, device_ns: float) -> list[Any]:
    text = texts[number - 1][:MOST_CHARACTERS] if number <= len(texts) else ""
    if work is None and not device_ns:
        return [number, text]
    work = work or LineWork()
    busy = work.busy_ns
    parts = [
        [engine_colour(engine), round(100 * time / busy), engine]
        for engine, time in sorted(work.engine_ns.items(), key=lambda item: -item[1])
        if busy and time
    ]
    time = device_ns or work.host_ns
    moved = work.transfer_bytes
    return [
        number, text, round(time), duration(time) if time else "", work.instructions or "",
        scaled(moved, "B") if moved else "", moved or "", parts, not device_ns,
    ]  # fmt: skip


def register(app: Dash, site: Site) -> None:
    """Build the file's table in the browser, and show the details of the line that is clicked."""
    app.clientside_callback(
        ClientsideFunction("explorer", "show_source"),
        Output("source-data", "modified_timestamp"),
        Input("source-data", "data"),
        State("source-line", "data"),
    )

    @app.callback(
        Output("source-detail", "children"),
        Input("source-line", "data"),
        State("address", "pathname"),
        State("address", "search"),
    )
    def show(line: int | None, pathname: str | None, search: str | None) -> Any:
        if not isinstance(line, int) or line < 1:
            return []
        view = site.view(pathname, search)
        address = view.address
        files = view.result(SOURCE_FILES)
        file = chosen_file(view, files, view.result(results.OVERVIEW).hotspots.lines) if files else ""
        if not file:
            return no_update
        parameters = {**address.parameters, "file": file, "line": str(line)}
        return DETAIL.show(replace(view, address=replace(address, parameters=parameters)))


PAGE = Page("/source", "Source", layout, register, group="Where time goes")
