"""Texts of code that stands in no file: cells of notebooks and what was typed into a shell.

Only the process that ran them has them, in `linecache`, where IPython puts them; so that process writes them
into its capture log.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from typing import Any

_CELL = re.compile(r"^<ipython-input-.+>$|/ipykernel_\d+/\d+\.py$|\.ipynb#\d+$")
MOST_CELLS = 10_000


def is_cell(file: str) -> bool:
    """Whether a source file's name is that of a notebook's or shell's cell."""
    return _CELL.search(file) is not None


def typed_text(file: str) -> str | None:
    """The text of code without a file; None of what has one, or whose text nobody kept."""
    known: tuple[Any, ...] = linecache.cache.get(
        file, ()
    )  # asking linecache itself would open a pipe that a script was read from
    is_typed = len(known) == 4 and known[1] is None
    return "".join(known[2]) if is_typed else None


def cells() -> Iterator[str]:
    """Names of the cells that this process has run, up to `MOST_CELLS`."""
    names = [name for name in list(linecache.cache) if isinstance(name, str) and is_cell(name)]
    yield from names[-MOST_CELLS:]
