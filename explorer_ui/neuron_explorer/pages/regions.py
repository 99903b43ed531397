"""Regions that were found by themselves: layers, programs and collectives, and any of them side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from neuron_explorer.analyses import analysis
from neuron_explorer.page import Page, View
from neuron_explorer.parts.quantities import (
    Cell,
    CellLink,
    bytes_cell,
    count_cell,
    rate_cell,
    share_cell,
    time_cell,
)
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import table_card
from neuron_explorer.sections import section
from neuron_explorer.theme import engine_place
from neuron_profile.analysis.regions import COLLECTIVE, LAYER, PROGRAM, Region, find_regions
from neuron_tools.profile.reader import Profile

REGIONS = "regions"
CHOSEN = "regions"
"""Parameter of the address: keys of the regions that stand side by side, as JSON."""
MOST_ROWS, MOST_CHOSEN = 300, 12
NS_PER_S = 1e9
TITLES = {LAYER: "Layers", PROGRAM: "Compiled programs", COLLECTIVE: "Collectives"}
EXPLAINS = {
    LAYER: "A layer is a module up to its number. Of median: against the other layers of its kind.",
    PROGRAM: "Time from the start of each execution to its end.",
    COLLECTIVE: "Time in which data moves.",
}
COUNTS = {LAYER: "Operations", PROGRAM: "Executions", COLLECTIVE: "Calls"}


@analysis(REGIONS, "Finding layers, programs and collectives")
def regions_of(profile: Profile) -> tuple[Region, ...]:
    """The regions of a profile or a range."""
    return find_regions(profile)


def layout(view: View) -> list[Any]:
    """Components of the page."""
    return [TABLES.show(view)]


@section("regions/tables", REGIONS)
def TABLES(view: View) -> Any:
    """What was chosen side by side, then all regions by kind."""
    regions: Sequence[Region] = view.result(REGIONS)
    if not regions:
        return empty_state(
            "No regions were found here.", "Layers, compiled programs and collectives are regions."
        )
    chosen = chosen_regions(view, regions)
    parts = [_side_by_side(chosen)] if chosen else []
    for kind, title in TITLES.items():
        own = [region for region in regions if region.kind == kind]
        if own:
            rows = [_row(view, region, chosen, own) for region in own[:MOST_ROWS]]
            parts.append(table_card(title, _headings(kind), rows, explains=EXPLAINS[kind]))
    return parts


def chosen_regions(view: View, regions: Sequence[Region]) -> list[Region]:
    """The regions that the address names, in its order."""
    by_key = {f"{region.kind}:{region.key}": region for region in regions}
    return [by_key[name] for name in _asked(view) if name in by_key]


def _asked(view: View) -> list[str]:
    try:
        found = json.loads(view.address.get(CHOSEN) or "[]")
    except (ValueError, RecursionError):
        return []
    names = [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
    return list(dict.fromkeys(names))[:MOST_CHOSEN]


def _headings(kind: str) -> list[str]:
    common = ["Region", "Compare", "Time", "Share", COUNTS[kind]]
    return [*common, "Of median", "Backward", "Moved", "FLOP/s"] if kind == LAYER else common


def _row(view: View, region: Region, chosen: Sequence[Region], own: Sequence[Region]) -> list[Any]:
    total_ns = sum(each.device_ns for each in own) or 1.0
    is_layer = region.kind == LAYER
    cells: list[Any] = [
        Cell(region.name, is_code=is_layer, select=f"module:{region.key}" if is_layer else ""),
        _toggle(view, region, region in chosen),
        time_cell(region.device_ns),
        share_cell(region.device_ns / total_ns, bar=True),
        count_cell(region.count),
    ]
    if is_layer:
        cells += [
            _multiple(region.of_median),
            time_cell(region.backward_ns),
            bytes_cell(region.moved_bytes),
            rate_cell(_rate(region.flops, region), "FLOP/s"),
        ]
    return cells


def _toggle(view: View, region: Region, is_chosen: bool) -> Cell:
    """A link that puts a region beside the chosen ones, or takes it away."""
    name = f"{region.kind}:{region.key}"
    left = [other for other in _asked(view) if other != name]
    names = left if is_chosen else [*left, name]
    href = view.address.to("/regions", **{CHOSEN: json.dumps(names) if names else None})
    text, label = ("remove", "remove from") if is_chosen else ("add", "add to")
    return Cell("", links=(CellLink(text, href, "", f"{label} the comparison: {region.name}"),))


def _side_by_side(chosen: Sequence[Region]) -> Any:
    """The measures of some regions, a column each."""
    engines = sorted({engine for region in chosen for engine in region.busy_ns}, key=engine_place)
    rows: list[list[Any]] = [
        ["Time", *(time_cell(region.device_ns) for region in chosen)],
        ["Of the first", *(_multiple(_of_first(region, chosen[0])) for region in chosen)],
        ["Of the median of its kind", *(_multiple(region.of_median) for region in chosen)],
        ["Operations, executions or calls", *(count_cell(region.count) for region in chosen)],
        ["Backward", *(time_cell(region.backward_ns or None) for region in chosen)],
        ["Moved", *(bytes_cell(region.moved_bytes) for region in chosen)],
        ["Moved per second", *(rate_cell(_rate(region.moved_bytes, region), "B/s") for region in chosen)],
        ["FLOP", *(rate_cell(region.flops, "FLOP") for region in chosen)],
        ["FLOP/s", *(rate_cell(_rate(region.flops, region), "FLOP/s") for region in chosen)],
        *([f"Instructions of {engine}", *(time_cell(region.busy_ns.get(engine)) for region in chosen)]
          for engine in engines if engine),
    ]  # fmt: skip
    return table_card(
        "Side by side", ["Measure", *(region.name for region in chosen)], rows, name="regions-compared"
    )


def _of_first(region: Region, first: Region) -> float | None:
    return region.device_ns / first.device_ns if first.device_ns else None


def _multiple(value: float | None) -> Cell:
    return Cell("", "", True) if value is None else Cell(f"{value:.2f} ×", round(value, 6), True)


def _rate(amount: int | None, region: Region) -> float | None:
    return amount * NS_PER_S / region.device_ns if amount and region.device_ns else None


PAGE = Page("/regions", "Regions", layout, group="Where time goes")
