"""One process's log as a ring: the last seconds stay, older records go."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from neuron_tools.arrays import Table
from neuron_tools.capture.look_back.retained import Retained, give_back, kept_still, read_records
from neuron_tools.frozen import frozen
from neuron_tools.records.capture_log import RECORD_DTYPE


@frozen
class _Mark:
    """How far the log had come at one look."""

    record: int
    host_ns: int


class LogRing:
    """Follows one process's log and takes away what is too old.

    Args:
        directory: The log's folder, `process-NNNN`.
        last_ns: Virtual host time to keep.
        most_bytes: Keep less time rather than more bytes than this.
    """

    def __init__(self, directory: Path, last_ns: int, most_bytes: int) -> None:
        self.directory = directory
        self._last_ns = last_ns
        self._most_records = max(1, most_bytes // RECORD_DTYPE.itemsize)
        self._retained = Retained.of(directory)
        self._read = self._retained.first_record
        self._marks: deque[_Mark] = deque()

    def advance(self) -> Table:
        """Take in what was logged since the last call, and take away what is too old.

        Returns:
            The new records.
        """
        records = read_records(self.directory, self._read)
        if len(records):
            self._read += len(records)
            self._marks.append(_Mark(self._read, int(records["host_end_ns"].max())))
            self._trim()
        return records

    def _trim(self) -> None:
        """Cut where an earlier look ended: at least the time asked for is kept, at most one look more."""
        oldest_ns = self._marks[-1].host_ns - self._last_ns
        cut = self._retained.first_record
        while len(self._marks) > 1 and (
            self._marks[0].host_ns < oldest_ns or self._read - cut > self._most_records
        ):
            cut = self._marks.popleft().record
        if cut > self._retained.first_record:
            self._take_away(cut)

    def _take_away(self, cut: int) -> None:
        with kept_still(self.directory, wait=False) as is_free:
            if not is_free:  # a profile is being made of it: next time
                return
            gone = read_records(
                self.directory, self._retained.first_record, cut - self._retained.first_record
            )
            self._retained = self._retained.advanced(gone)
            self._retained.write(self.directory)
            give_back(self.directory, cut)
