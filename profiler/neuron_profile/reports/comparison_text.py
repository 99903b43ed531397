"""Summaries side by side: one column per profile, the same rows, aligned by module and source line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from neuron_profile.analysis.hotspots import ModuleNode
from neuron_profile.analysis.identity import Identity
from neuron_profile.analysis.overview import Overview
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.reports.places import place
from neuron_profile.reports.quantities import duration, percent, scaled
from neuron_profile.reports.summary_text import (
    MODULE_DEPTH,
    PLACE_WIDTH,
    UTILIZATIONS,
    notices,
    overview_verdict,
)

ROWS = 10


Key = TypeVar("Key", str, SourceLine)


def _metric(view: Overview, name: str) -> float:
    return float(view.metrics.get(name) or 0.0)


@dataclass(frozen=True)
class Column:
    """One profile of a comparison."""

    identity: Identity
    overview: Overview


Cell = Callable[[Overview], str]


def _utilization(short: str, metric: str) -> tuple[str, Cell]:
    return f"{short}, of device time", lambda view: percent(view.while_busy(metric))


_TOTALS: tuple[tuple[str, Cell], ...] = (
    ("Device time", lambda view: duration(view.occupancy.device_ns)),
    ("Executions", lambda view: f"{view.occupancy.executions:,}"),
    ("Device busy", lambda view: percent(view.occupancy.busy_share)),
    ("Device busy after the first step", lambda view: percent(view.occupancy.steady_share)),
    ("Idle between executions", lambda view: duration(view.occupancy.idle_ns)),
    ("Host time", lambda view: duration(view.occupancy.host_ns)),
    ("Host waiting for device", lambda view: duration(view.occupancy.host_wait_ns)),
    ("Model FLOPs", lambda view: scaled(_metric(view, "model_flops"), "FLOP")),
    ("Executed FLOPs", lambda view: scaled(_metric(view, "hardware_flops"), "FLOP")),
    *(_utilization(short, metric) for short, metric in UTILIZATIONS.items()),
    ("HBM read", lambda view: scaled(_metric(view, "hbm_read_bytes"), "B")),
    ("HBM written", lambda view: scaled(_metric(view, "hbm_write_bytes"), "B")),
    ("Peak memory", lambda view: scaled(max((peak.peak_bytes for peak in view.memory), default=0), "B")),
)


def print_comparison(console: Console, columns: Sequence[Column]) -> None:
    """Print profiles side by side."""
    for part in comparison_parts(columns):
        console.print(part)


def comparison_parts(columns: Sequence[Column]) -> Iterable[RenderableType]:
    """The sections of the comparison, in order."""
    names = display_names([column.identity for column in columns])
    views = [column.overview for column in columns]
    yield _headings(columns, names)
    rows = [(title, [cell(view) for view in views]) for title, cell in _TOTALS]
    yield _section("", names, [*rows, *_engine_rows(views)])
    yield _section("Module", names, _module_rows(views))
    yield _section("Source line", names, _line_rows(views))


def display_names(identities: Sequence[Identity]) -> list[str]:
    """Folder names, with their parent's where two are equal."""
    names = [identity.name for identity in identities]
    return [
        f"{identity.path.parent.name}/{name}" if names.count(name) > 1 else name
        for identity, name in zip(identities, names)
    ]


def _headings(columns: Sequence[Column], names: Sequence[str]) -> RenderableType:
    lines: list[RenderableType] = []
    for column, name in zip(columns, names):
        lines.append(Text.assemble((name, "bold"), "  ", column.identity.command))
        said = [Text(overview_verdict(column.identity, column.overview))]
        said.extend(Text(notice, style="bold yellow") for notice in notices(column.identity))
        lines.append(Padding(Group(*said), (0, 0, 0, 2), expand=False))
    return Group(*lines, "")


def _section(title: str, names: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column(title)
    for name in names:
        table.add_column(Text(name), justify="right", overflow="ellipsis", no_wrap=True)
    for label, cells in rows:
        table.add_row(Text(label, overflow="ellipsis", no_wrap=True), *cells)
    return Group(table, "")


def _engine_rows(views: Sequence[Overview]) -> Iterable[tuple[str, list[str]]]:
    names = list(dict.fromkeys(engine.name for view in views for engine in view.engines))
    for name in names:
        fractions = [
            next((percent(engine.of_device) for engine in view.engines if engine.name == name), "-")
            for view in views
        ]
        yield f"{name} active, of device time", fractions


def _module_rows(views: Sequence[Overview]) -> Iterable[tuple[str, list[str]]]:
    """The costliest modules of any of the profiles, whatever their depth."""
    return _aligned([dict(_modules(view.hotspots.modules)) for view in views], str)


def _modules(node: ModuleNode, depth: int = 0) -> Iterator[tuple[str, float]]:
    """Path and device time of the modules below a node."""
    for child in node.children:
        yield child.path, child.cost.device_ns
        if depth + 1 < MODULE_DEPTH:
            yield from _modules(child, depth + 1)


def _line_rows(views: Sequence[Overview]) -> Iterable[tuple[str, list[str]]]:
    times: list[dict[SourceLine, float]] = [
        {row.place: row.cost.device_ns for row in view.hotspots.lines} for view in views
    ]
    texts = [view.texts for view in views]

    def label(line: SourceLine) -> str:
        text = next((found for found in (source.line(line) for source in texts) if found), "")
        return f"{place(line, PLACE_WIDTH)}  {text}"

    return _aligned(times, label)


def _aligned(
    times: Sequence[Mapping[Key, float]], label: Callable[[Key], str]
) -> Iterable[tuple[str, list[str]]]:
    """Rows of the keys with the most time in any profile; the same key stands in one row."""
    keys = {key for column in times for key in column}
    order = sorted(keys, key=lambda key: (-max(column.get(key, 0.0) for column in times), key))
    for key in order[:ROWS]:
        yield label(key), [duration(column[key]) if key in column else "-" for column in times]
