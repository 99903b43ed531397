"""Several profiles side by side: one column each, rows aligned by the hierarchy, what differs most first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from neuron_explorer.page import View
from neuron_explorer.parts.quantities import Cell, time_cell
from neuron_explorer.parts.states import empty_state
from neuron_explorer.parts.table import Row, table_card
from neuron_profile.analysis.comparison.difference import Delta, Difference
from neuron_profile.analysis.comparison.lines import LineDelta
from neuron_tools.frozen import frozen

ROWS = 250
Changed = TypeVar("Changed", Delta, LineDelta)


@frozen
class Aligned:
    """One operation, or line, in all profiles.

    Attributes:
        first: How one of the comparisons has it.
        times_ns: Device time in each profile; 0 where it is not there.
    """

    first: Any
    times_ns: tuple[int, ...]

    @property
    def spread_ns(self) -> int:
        """The most less the least."""
        return max(self.times_ns) - min(self.times_ns)


def aligned(changes: Sequence[Iterable[Changed]], key: Callable[[Changed], Hashable]) -> list[Aligned]:
    """Rows of comparisons of one profile with several, which come before it; what differs most comes first.

    Args:
        changes: Of each comparison what changed; what it leaves out takes as long in both of its profiles.
        key: What makes two rows the same.
    """
    found: dict[Hashable, Changed] = {}
    before: list[dict[Hashable, int]] = []
    for rows in changes:
        keyed = {key(row): row for row in rows}
        found = keyed | found
        before.append({one: row.base_ns for one, row in keyed.items()})
    every: list[Aligned] = []
    for one, row in found.items():
        times_ns: list[int] = [times.get(one, row.new_ns) for times in before]
        every.append(Aligned(row, (*times_ns, row.new_ns)))
    return sorted((row for row in every if row.spread_ns), key=lambda row: -row.spread_ns)


def draw_many(view: View, differences: Mapping[str, Difference], line_cell: Callable[..., Cell]) -> list[Any]:
    """Tables of several profiles: totals, operations, lines.

    Args:
        differences: By the name of each profile that this one is compared with.
        line_cell: Makes a link to a file's line.
    """
    own = view.library.entry(view.address.profile).name
    names = [*differences, own]
    operations = aligned([one.deltas for one in differences.values()], lambda delta: delta.key)
    lines = aligned([one.lines for one in differences.values()], lambda line: line.place)
    if not operations:
        return [_totals(names, differences), empty_state("No operation takes more or less time.")]
    tables = [
        _totals(names, differences),
        table_card(
            "Operations that differ",
            ("Module", "Operation", *names, "Spread", "Line"),
            [_operation(row, line_cell) for row in operations[:ROWS]],
            explains="Spread is the most less the least device time.",
            name="operations-of-all",
        ),
    ]
    if lines:
        rows = [_line(row, line_cell) for row in lines[:ROWS]]
        headings = ("Line", *names, "Spread", "Text")
        tables.append(table_card("Lines that differ", headings, rows, name="lines-of-all", short=True))
    return tables


def _totals(names: Sequence[str], differences: Mapping[str, Difference]) -> Any:
    every = list(differences.values())
    last = every[-1]
    numbers = (
        ("Device time", [one.base_device_ns for one in every], last.new_device_ns),
        ("Idle between executions", [one.base_idle_ns for one in every], last.new_idle_ns),
        ("Together", [one.base_total_ns for one in every], last.new_total_ns),
        ("Typical step", [one.base_step_ns for one in every], last.new_step_ns),
    )
    rows: list[Row] = [
        [title, *(_time(value) for value in (*before, after))]
        for title, before, after in numbers
        if any(value is not None for value in (*before, after))
    ]
    return table_card("Totals", ("", *names), rows, name="totals-of-all")


def _time(value: int | None) -> Cell:
    return Cell("unknown", is_number=True) if value is None else time_cell(value)


def _operation(row: Aligned, line_cell: Callable[..., Cell]) -> list[Any]:
    delta: Delta = row.first
    direction = " (backward)" if delta.key.backward else ""
    operation = Cell(delta.key.operation + direction, select=f"operation:{delta.key.operation}")
    place = line_cell(delta.file, delta.line)
    return [delta.key.module or "-", operation, *_times(row), place]


def _line(row: Aligned, line_cell: Callable[..., Cell]) -> list[Any]:
    line: LineDelta = row.first
    return [line_cell(line.place.file, line.place.line), *_times(row), Cell(line.text, is_code=True)]


def _times(row: Aligned) -> list[Cell]:
    """Each profile's time, those of the slowest and the fastest marked, and the spread."""
    most, least = max(row.times_ns), min(row.times_ns)
    styles = {most: "slower", least: "faster"}
    cells = [time_cell(value) for value in row.times_ns]
    marked = [
        Cell(cell.shown, cell.value, True, style=styles.get(value, ""))
        for cell, value in zip(cells, row.times_ns, strict=True)
    ]
    return [*marked, time_cell(row.spread_ns)]
