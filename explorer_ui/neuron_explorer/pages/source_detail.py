"""What a source line became: the source, its HLO operations and its instructions, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import html

from neuron_explorer.address import Address
from neuron_explorer.page import View
from neuron_explorer.parts.card import card
from neuron_explorer.parts.quantities import Cell, count_cell, time_cell
from neuron_explorer.parts.table import table_card
from neuron_explorer.sections import Need, Section
from neuron_explorer.source_costs import LINE_WORK, LineDetail, source_text
from neuron_profile.reports.places import short_path

AROUND = 4  # lines of the source before and after the chosen one
LONGEST_OPERANDS = 80


def asked_line(address: Address) -> int:
    """The line that an address names; 0 = none."""
    text = address.get("line")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def _needs(view: View) -> Sequence[Need]:
    return [(LINE_WORK, view.address.get("file"), str(asked_line(view.address)))]


def _draw(view: View) -> Any:
    file, line = view.address.get("file"), asked_line(view.address)
    detail: LineDetail = view.result(LINE_WORK, file, str(line))
    timeline = view.address.to("/timeline", search=f"source_line={line}")
    show = html.A("Its spans on the timeline", href=timeline, className="button")
    title = html.H2(f"Line {line} of {file.rpartition('/')[2]}, side by side")
    cards = [_source(view, file, line), _hlo(detail), _instructions(detail)]
    return [
        html.Div([title, show], className="bar"),
        html.Div(cards, className="side-by-side"),
        *_libraries(view.address, detail),
    ]


def _source(view: View, file: str, line: int) -> Any:
    texts = source_text(view.profile, file)
    shown = range(max(1, line - AROUND), min(len(texts), line + AROUND) + 1)
    numbered = [f"{'▸' if number == line else ' '}{number:5}  {texts[number - 1]}" for number in shown]
    text = "\n".join(numbered) or "The profile does not keep the text of this file."
    return card("Source", html.Pre(text, tabIndex=0))


def _hlo(detail: LineDetail) -> Any:
    rows = [
        (
            row["hlo_name"] or "",
            row["opcode"] or "",
            row["shape"] or "",
            count_cell(row["calls"]),
            time_cell(row["span_ns"]),
        )
        for row in detail.hlo
    ]
    if not rows:
        return card("HLO operations", "None.")
    return table_card("HLO operations", ("Name", "Opcode", "Shape", "Calls", "Time"), rows, short=True)


def _instructions(detail: LineDetail) -> Any:
    title = "Instructions of its first execution"
    rows = [
        (
            row["engine"] or "",
            row["opcode"] or "",
            Cell((row["operands"] or "")[:LONGEST_OPERANDS], row["operands"], is_code=True),
            row["hlo"],
            time_cell(row["duration_ns"]),
        )
        for row in detail.instructions
    ]
    if not rows:
        return card(title, "None.")
    return table_card(title, ("Engine", "Instruction", "Operands", "HLO", "Time"), rows, short=True)


def _libraries(address: Address, detail: LineDetail) -> list[Any]:
    """The lines of libraries that the line had work done at, each a link to that line."""
    rows = [
        (
            Cell(
                f"{short_path(row['file'])}:{row['line']}",
                href=address.to(file=row["file"], line=row["line"]),
                title=row["file"],
            ),
            count_cell(row["calls"]),
            time_cell(row["span_ns"]),
        )
        for row in detail.libraries
    ]
    return [table_card("Inside libraries", ("Line", "Calls", "Time"), rows, short=True)] if rows else []


DETAIL = Section("source/detail", _needs, _draw)
