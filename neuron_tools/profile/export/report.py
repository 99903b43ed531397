"""What an export tells its caller: the files written, the rows in them, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen

Progress = Callable[[int, int], None]
"""Called with (rows done, rows in all), both counted over every table that the format carries."""


class ExportError(NeuronToolsError):
    """An export could not be written; nothing of it is left behind."""


@frozen
class ExportReport:
    """The result of one export.

    Attributes:
        paths: Files written, in the order in which they were made.
        counts: What they hold, by kind ("slices", "counters", "flows", or table names) -> number.
    """

    paths: tuple[Path, ...]
    counts: Mapping[str, int] = field(default_factory=dict)


class RowCounter:
    """Adds up finished rows and passes them on to a `Progress`."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def advance(self, rows: int) -> None:
        """Counts `rows` more rows as done."""
        self._done += rows
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)
