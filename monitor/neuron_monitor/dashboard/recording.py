"""History on disk: Parquet files of a minute each in a folder, the oldest deleted beyond a size."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from neuron_monitor.dashboard.history import Row
from neuron_monitor.errors import ConfigurationError

ROWS_A_FILE = 60
logger = logging.getLogger(__name__)


class Recording:
    """Writes rows to a folder.

    Args:
        folder: Where to write; made if it is not there.
        columns: Names of the columns.
        limit_bytes: Most bytes of all files; the oldest are deleted.

    Raises:
        ConfigurationError: pyarrow is not installed, or the folder cannot be written to.
    """

    def __init__(self, folder: str, columns: Sequence[str], limit_bytes: int) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise ConfigurationError(
                "Keeping history on disk needs pyarrow: pip install 'neuron-tools[profile]'."
            ) from None
        self._arrow = pyarrow
        self._parquet = pyarrow.parquet
        self._folder = Path(folder)
        self._columns = list(columns)
        self._limit_bytes = limit_bytes
        self._rows: list[Row] = []
        self.error = ""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"{folder}: {(error.strerror or 'cannot be made').lower()}.") from error

    def append(self, row: Row) -> None:
        """Add a row; written when a file is full. What cannot be written is dropped, and told in `error`."""
        self._rows.append(row)
        if len(self._rows) >= ROWS_A_FILE:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        place = self._folder / f"monitor-{rows[0].time_ms}.parquet"
        try:
            self._write(place, rows)
            self._delete_oldest()
            self.error = ""
        except OSError as error:
            place.with_suffix(".tmp").unlink(missing_ok=True)
            self.error = f"{self._folder}: {(error.strerror or str(error)).lower()}"
            logger.warning("history is not written: %s", self.error)

    def _write(self, place: Path, rows: Sequence[Row]) -> None:
        arrow = self._arrow
        columns = {"time_ms": arrow.array([row.time_ms for row in rows], arrow.int64())}
        for position, name in enumerate(self._columns):
            columns[name] = arrow.array([row.values[position] for row in rows], arrow.float32())
        temporary = place.with_suffix(".tmp")
        self._parquet.write_table(arrow.table(columns), temporary, compression="zstd")
        temporary.replace(place)

    def _delete_oldest(self) -> None:
        files = sorted(self._folder.glob("monitor-*.parquet"), key=lambda file: file.name)
        sizes = [os.path.getsize(file) for file in files]
        while len(files) > 1 and sum(sizes) > self._limit_bytes:
            files.pop(0).unlink(missing_ok=True)
            sizes.pop(0)
