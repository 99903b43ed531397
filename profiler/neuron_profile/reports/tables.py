"""Plain tables for the terminal, with text that is never taken for markup."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

_FEW_COLUMNS = 9
"""More of them stand closer together, below headings of several lines."""


def data_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[int] = ()
) -> Table:
    """A table of texts.

    Args:
        columns: Headings.
        right: Numbers of the columns that are aligned to the right. They are never broken: where the terminal
            is narrow, the other columns are.
    """
    cells = tuple(rows)
    is_wide = len(columns) > _FEW_COLUMNS
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=is_wide, header_style="bold"
    )
    for number, name in enumerate(columns):
        if number in right:
            widest = max((len(row[number]) for row in cells), default=0)
            heading = _in_lines(name, widest) if is_wide else name
            table.add_column(Text(heading), justify="right", no_wrap=True)
        else:
            table.add_column(Text(name), overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _in_lines(heading: str, width: int) -> str:
    """A heading whose lines are no wider than the column's numbers, where its words allow that."""
    return "\n".join(textwrap.wrap(heading, max(width, 1), break_long_words=False, break_on_hyphens=False))
