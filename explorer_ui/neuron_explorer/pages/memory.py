"""Memory: what HBM held over time, how full SBUF and PSUM were, where tiles stood, tensors and spills."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dash import html

from neuron_explorer.figures.memory import address_figure, fill_figure, hbm_figure
from neuron_explorer.memory_use import (
    FILL_SERIES,
    HBM_SERIES,
    MEMORY,
    PROGRAMS,
    FillSeries,
    HbmSeries,
    ProgramEntry,
    address_map,
    has_tiles,
)
from neuron_explorer.page import Page, View
from neuron_explorer.parts.card import card
from neuron_explorer.parts.chart import chart_card
from neuron_explorer.parts.quantities import Cell, bytes_cell, share_cell, time_cell
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import table_card
from neuron_explorer.parts.tabs import tabs
from neuron_explorer.sections import section
from neuron_profile.analysis.advice.context import ProgramUse
from neuron_profile.analysis.memory import MemoryUse
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.reports.places import place
from neuron_profile.reports.quantities import duration

CHOICES, SPILLS, HOLDERS = 12, 200, 300
MEMORIES = {"SBUF": "SBUF", "PSUM": "PSUM"}


def layout(view: View) -> list[Any]:
    """Components of the page; `program` and `memory` in the address choose the address map."""
    return [OVER_TIME.show(view), ADDRESSES.show(view), TENSORS.show(view)]


@section("memory/over-time", HBM_SERIES, FILL_SERIES)
def OVER_TIME(view: View) -> Any:
    """Charts of what was held."""
    hbm: tuple[HbmSeries, ...] = view.result(HBM_SERIES)
    fill: tuple[FillSeries, ...] = view.result(FILL_SERIES)
    charts = [
        chart_card(f"HBM of NeuronCore {series.device} by category", hbm_figure(series, view.theme))
        for series in hbm
        if series.bytes_by_category
    ]
    if fill:
        charts.append(chart_card("Greatest fill of SBUF and PSUM", fill_figure(fill, view.theme)))
    if not charts:
        return empty_state(
            "This profile has no samples of memory.",
            "A capture by neuron-profile has them, and so have AWS's system profiles.",
        )
    return html.Div(charts, className="grid-2")


@section("memory/addresses", PROGRAMS)
def ADDRESSES(view: View) -> Any:
    """The address map of one program, in a profile that holds its programs."""
    found: tuple[tuple[ProgramEntry, ProgramUse], ...] = view.result(PROGRAMS)
    if not found:
        return []
    memory = view.address.get("memory") if view.address.get("memory") in MEMORIES else "SBUF"
    asked = [item for item in found if item[0].key == view.address.get("program")]
    filled = [item for item in found if has_tiles(item[1], memory)]
    chosen = next(iter([*asked, *filled, *found]))
    tiles = address_map(chosen[1], memory)
    names = {entry.key: label for label, entry in _different(entry for entry, _ in found).items()}
    names = dict(list(names.items())[:CHOICES]) | {chosen[0].key: _label(chosen[0])}
    hidden = f" The {tiles.hidden:,} smallest tiles are left out." if tiles.hidden else ""
    chart = (
        chart_card(
            f"{memory} addresses over one execution",
            address_figure(tiles, view.theme),
            explains=f"A rectangle is a tile from first write to last use, coloured by operation.{hidden}",
        )
        if len(tiles.address)
        else card(f"{memory} addresses over one execution", "This program has no tiles there.")
    )
    return [
        tabs(view, "program", "Program", names, chosen[0].key),
        tabs(view, "memory", "Memory", MEMORIES, memory),
        chart,
    ]


def _label(entry: ProgramEntry) -> str:
    return f"{entry.name or entry.key} · {duration(entry.duration_ns)} × {entry.count:,}"


def _different(entries: Iterable[ProgramEntry]) -> dict[str, ProgramEntry]:
    """Programs by label; of those that every rank ran alike, the first."""
    found: dict[str, ProgramEntry] = {}
    for entry in entries:
        found.setdefault(_label(entry), entry)
    return found


@section("memory/tensors", MEMORY)
def TENSORS(view: View) -> Any:
    """Peaks and who holds them, tensors and spills in numbers."""
    use: MemoryUse = view.result(MEMORY)
    parts = (
        _fill_table(use), _held_table(use), _holder_table(view, use), _tensor_table(use),
        _spill_table(view, use),
    )  # fmt: skip
    return [part for part in parts if part]


def _fill_table(use: MemoryUse) -> Any:
    rows: list[Sequence[Cell | str]] = [
        (f"{row.memory} (process {row.process}, core {row.core})", share_cell(row.peak, bar=True),
         share_cell(row.mean), time_cell(row.peak_at_ns), bytes_cell(None))
        for row in use.on_chip
    ]  # fmt: skip
    rows += [
        (f"HBM of NeuronCore {peak.device_idx}", Cell("", "", True), Cell("", "", True),
         time_cell(peak.time_ns),
         bytes_cell(peak.peak_bytes))
        for peak in use.peaks
    ]  # fmt: skip
    return table_card("Peaks", ("Memory", "Peak", "Mean", "Reached after", "Bytes"), rows) if rows else None


def _held_table(use: MemoryUse) -> Any:
    rows = [
        (row.category, f"NeuronCore {row.core}", f"{row.tensors:,}", bytes_cell(row.byte_count),
         share_cell(row.of_peak, bar=True))
        for row in use.held
    ]  # fmt: skip
    headings = ("Category", "Of", "Tensors", "Size", "Of the peak")
    return table_card("HBM at its peak by category", headings, rows) if rows else None


def _holder_table(view: View, use: MemoryUse) -> Any:
    rows = [
        (
            row.tensor or row.operation,
            row.category,
            row.layer,
            _line_cell(view, row.file, row.line),
            f"{row.tensors:,}",
            bytes_cell(row.byte_count),
        )
        for row in use.holders[:HOLDERS]
    ]
    headings = ("Tensor or operation", "Category", "Module", "Line", "Tensors", "Size")
    return table_card("Who holds HBM at its peak", headings, rows) if rows else None


def _line_cell(view: View, file: str, line: int) -> Cell:
    if not file:
        return Cell("")
    return Cell(place(SourceLine(file, line)), href=view.address.to("/source", file=file, line=line))


def _tensor_table(use: MemoryUse) -> Any:
    rows = [
        (row.name, row.kind, row.dtype, row.shape, bytes_cell(row.byte_count),
         Cell(f"{row.loads:.3g}" if row.loads else "", row.loads, True))
        for row in use.tensors
    ]  # fmt: skip
    headings = ("Tensor", "Kind", "Type", "Shape", "Size", "Loads per execution")
    return table_card("Largest tensors", headings, rows) if rows else None


def _spill_table(view: View, use: MemoryUse) -> Any:
    rows = [
        (
            _line_cell(view, row.file, row.line),
            row.operation,
            bytes_cell(row.saved_bytes),
            bytes_cell(row.reloaded_bytes),
        )
        for row in use.spills[:SPILLS]
    ]
    return table_card("Spills", ("Line", "HLO operation", "Saved", "Loaded back"), rows) if rows else None


PAGE = Page("/memory", "Memory", layout, group="Limits")
