"""The last rows, in memory and bounded; on disk too, where that was asked for."""

from __future__ import annotations

import csv
import io
import threading
from array import array
from collections import deque
from collections.abc import Sequence

from neuron_tools.frozen import frozen


@frozen
class Row:
    """One row: its number since the start, when it was (Unix time in ms), and its numbers."""

    number: int
    time_ms: int
    values: array[float]


class History:
    """The newest rows of a fixed number of columns; the oldest are forgotten.

    Args:
        columns: Names of the columns.
        capacity: Most rows.
    """

    def __init__(self, columns: Sequence[str], capacity: int) -> None:
        self.columns = list(columns)
        self._position = {name: position for position, name in enumerate(columns)}
        self._rows: deque[Row] = deque(maxlen=capacity)
        self._lock = threading.Lock()
        self._next = 0

    def append(self, time_ms: int, values: Sequence[float]) -> Row:
        """Add a row."""
        with self._lock:
            row = Row(self._next, time_ms, array("d", values))
            self._next += 1
            self._rows.append(row)
        return row

    def newest(self) -> Row | None:
        """The last row."""
        with self._lock:
            return self._rows[-1] if self._rows else None

    def since(self, number: int) -> list[Row]:
        """Rows with at least this number, oldest first."""
        with self._lock:
            if not self._rows or number > self._rows[-1].number:
                return []
            skipped = max(0, number - self._rows[0].number)
            return [self._rows[position] for position in range(skipped, len(self._rows))]

    def between(self, first_ms: float, last_ms: float) -> list[Row]:
        """Rows of a stretch of time, both ends included."""
        return [row for row in self.since(0) if first_ms <= row.time_ms <= last_ms]

    def column(self, rows: Sequence[Row], name: str) -> list[float | None]:
        """One column of some rows; None where there is no number, as JSON wants it."""
        position = self._position[name]
        values = [row.values[position] for row in rows]
        return [value if value == value else None for value in values]

    def as_csv(self, rows: Sequence[Row]) -> str:
        """Rows as CSV with a heading; times are Unix milliseconds."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["time_ms", *self.columns])
        for row in rows:
            numbers = ["" if value != value else f"{value:.10g}" for value in row.values]
            writer.writerow([row.time_ms, *numbers])
        return text.getvalue()
