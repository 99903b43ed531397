"""Plain tables for the terminal, with text that is never taken for markup."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text


def data_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[int] = ()
) -> Table:
    """A table of texts.

    Args:
        columns: Headings.
        right: Numbers of the columns that are aligned to the right.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        table.add_column(Text(name), justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
