"""How devices are linked, drawn from their links: a torus as a grid, a ring as a row, others as a list."""

from __future__ import annotations

from collections.abc import Mapping

from neuron_monitor.listing.devices import Listing
from neuron_tools.frozen import frozen

Links = Mapping[int, frozenset[int]]


@frozen
class Strokes:
    """The characters of a drawing."""

    across: str
    down: str
    wrap_across: str
    wrap_down: str


UNICODE_STROKES = Strokes("──", "│", "┄┄", "┆")
ASCII_STROKES = Strokes("--", "|", "..", ":")


def links_of(listing: Listing) -> Links:
    """Neighbours by device; a link counts from both ends, and to the devices that are here only."""
    here = {device.facts.index for device in listing.devices}
    links: dict[int, set[int]] = {index: set() for index in here}
    for device in listing.devices:
        for other in here.intersection(device.facts.connected_to) - {device.facts.index}:
            links[device.facts.index].add(other)
            links[other].add(device.facts.index)
    return {index: frozenset(others) for index, others in links.items()}


def draw_topology(listing: Listing, strokes: Strokes = UNICODE_STROKES) -> str:
    """The drawing, with a legend where links run around an edge."""
    links = links_of(listing)
    for rows, columns in _shapes(len(links)):
        grid = find_torus(links, rows, columns)
        if grid is not None:
            has_wraps = rows > 2 or columns > 2
            legend = f"{strokes.wrap_across} and {strokes.wrap_down} are links around the edge."
            return "\n".join([*_draw_grid(grid, strokes), *(["", legend] if has_wraps else [])])
    return "\n".join(_list(listing, links))


def find_torus(links: Links, rows: int, columns: int) -> list[list[int]] | None:
    """Devices in rows and columns such that just the neighbours on the torus are linked; None if impossible.

    Cells are filled row by row; each next device must be linked to those above and to the left of its cell.
    One row is a ring.
    """
    placed: list[int] = []
    wanted = {cell: _neighbours(cell, rows, columns) for cell in range(rows * columns)}
    if any(len(links[index]) != len(wanted[0]) for index in links):
        return None
    if not _place(placed, sorted(links), links, wanted):
        return None
    return [placed[row * columns : (row + 1) * columns] for row in range(rows)]


def _place(placed: list[int], free: list[int], links: Links, wanted: Mapping[int, frozenset[int]]) -> bool:
    """Fill the next cell, and with it all others; `placed` holds the devices of the filled cells."""
    cell = len(placed)
    if not free:
        return True
    before = {placed[other] for other in wanted[cell] if other < cell}
    for index in free:
        if links[index].intersection(placed) == before:
            placed.append(index)
            if _place(placed, [other for other in free if other != index], links, wanted):
                return True
            placed.pop()
        if cell == 0:
            return False  # A torus looks the same from each of its devices.
    return False


def _neighbours(cell: int, rows: int, columns: int) -> frozenset[int]:
    row, column = divmod(cell, columns)
    around = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return frozenset(row % rows * columns + column % columns for row, column in around) - {cell}


def _shapes(count: int) -> list[tuple[int, int]]:
    """Rows and columns to try, the most square first; one row last."""
    shapes = [
        (rows, count // rows) for rows in range(2, count) if count % rows == 0 and rows <= count // rows
    ]
    return [*reversed(shapes), (1, count)] if count > 1 else []


def _draw_grid(grid: list[list[int]], strokes: Strokes) -> list[str]:
    wraps_across, wraps_down = len(grid[0]) > 2, len(grid) > 2
    margin = len(strokes.across)

    def vertical(stroke: str) -> str:
        return " " * (margin + 1) + (" " * (4 + margin)).join(f" {stroke}" for _ in grid[0])

    lines = [vertical(strokes.wrap_down)] if wraps_down else []
    for number, row in enumerate(grid):
        if number:
            lines.append(vertical(strokes.down))
        edge = strokes.wrap_across if wraps_across else " " * margin
        lines.append(edge + strokes.across.join(f"[{index:>3}]" for index in row) + edge)
    return [line.rstrip() for line in (*lines, *([vertical(strokes.wrap_down)] if wraps_down else []))]


def _list(listing: Listing, links: Links) -> list[str]:
    lines = []
    for device in listing.devices:
        here = links[device.facts.index]
        away = [other for other in device.facts.connected_to if other not in links]
        text = ", ".join(map(str, sorted(here))) or "no other device"
        beyond = f" (not visible here: {', '.join(map(str, away))})" if away else ""
        lines.append(f"[{device.facts.index:>3}] is linked to {text}{beyond}")
    return lines
