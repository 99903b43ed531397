"""Cells of numbers: what the reader sees, and beside it the bare number for sorting and for CSV."""

from __future__ import annotations

from neuron_profile.reports.quantities import duration, percent, scaled
from neuron_tools.frozen import frozen


@frozen
class CellLink:
    """A link in a cell that has several."""

    text: str
    href: str
    style: str = ""
    label: str = ""


@frozen
class Cell:
    """A cell of a table.

    Attributes:
        value: What sorting and CSV take: the number in its base unit; None for the text itself.
        is_number: Whether it stands on the right.
        share: 0 to 1, drawn as a bar before the text; None for no bar.
        style: CSS class of the text.
        href: Where the text leads; "" = nowhere.
        is_code: Whether it is set as code.
        links: Links behind the text.
        select: What the row is of, where panels show what belongs to it: "operation:aten::mm".
    """

    shown: str
    value: float | int | str | None = None
    is_number: bool = False
    share: float | None = None
    style: str = ""
    href: str = ""
    title: str = ""
    is_code: bool = False
    links: tuple[CellLink, ...] = ()
    select: str = ""


def time_cell(nanoseconds: float | None) -> Cell:
    """A time; its value in ns. Nothing for None."""
    if nanoseconds is None:
        return Cell("", "", True)
    return Cell(duration(nanoseconds), round(float(nanoseconds), 3), True)


def bytes_cell(number: float | None) -> Cell:
    """An amount of bytes."""
    return Cell("", "", True) if number is None else Cell(scaled(number, "B"), number, True)


def count_cell(number: int | None) -> Cell:
    """A count."""
    return Cell("", "", True) if number is None else Cell(f"{number:,}", number, True)


def share_cell(fraction: float | None, *, bar: bool = False) -> Cell:
    """A part of something in percent; its value from 0 to 1."""
    if fraction is None:
        return Cell("", "", True)
    drawn = min(1.0, max(0.0, fraction)) if bar else None
    return Cell(percent(fraction), round(fraction, 6), True, drawn)


def rate_cell(number: float | None, unit: str) -> Cell:
    """A number with an SI prefix and a unit."""
    return Cell("", "", True) if number is None else Cell(scaled(number, unit), number, True)
