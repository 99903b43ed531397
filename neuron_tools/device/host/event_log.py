"""Appends records to a capture log, at least four times a second."""

from __future__ import annotations

import os
import struct
import threading
from dataclasses import dataclass
from pathlib import Path

from neuron_tools.records.capture_log import RECORD_DTYPE

FLUSH_SECONDS = 0.2
FLUSH_BYTES = 1 << 16
_LAYOUT = struct.Struct("<HHHHIIIIIIqqqqqqqq")
assert _LAYOUT.size == RECORD_DTYPE.itemsize


@dataclass(slots=True)
class Record:
    """One record; the fields are those of `RECORD_DTYPE`, in its order (`byte_count` is its `bytes`)."""

    kind: int
    device: int = 0
    stream: int = 0
    flags: int = 0
    thread: int = 0
    executable: int = 0
    stack: int = 0
    module: int = 0
    name: int = 0
    forward_thread: int = 0
    host_start_ns: int = 0
    host_end_ns: int = 0
    device_start_ns: int = 0
    device_end_ns: int = 0
    sequence: int = -1
    forward_sequence: int = -1
    byte_count: int = 0
    address: int = 0

    def pack(self) -> bytes:
        """The record as it stands in the log."""
        return _LAYOUT.pack(
            self.kind, self.device, self.stream, self.flags, self.thread, self.executable, self.stack,
            self.module, self.name, self.forward_thread, self.host_start_ns, self.host_end_ns,
            self.device_start_ns, self.device_end_ns, self.sequence, self.forward_sequence, self.byte_count,
            self.address,
        )  # fmt: skip


class EventLog:
    """A growing file of records. A thread of its own writes what has gathered.

    Attributes:
        count: Records taken.
        error: Why writing stopped, or None; the program itself goes on.

    Raises:
        OSError: The file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.count = 0
        self.error: str | None = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file: int | None = os.open(path, flags, 0o666)
        self._pending = bytearray()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._writer = threading.Thread(target=self._write_regularly, name="neuron-log", daemon=True)
        self._writer.start()

    def append(self, record: Record) -> None:
        """Take a record."""
        with self._lock:
            self.count += 1
            self._pending += record.pack()
            full = len(self._pending) >= FLUSH_BYTES
        if full:
            self.flush()

    def flush(self) -> None:
        """Write what was taken so far."""
        with self._lock:
            data, self._pending = self._pending, bytearray()
            if not data or self._file is None:
                return
            try:
                _write_all(self._file, data)
            except OSError as error:
                self.error = error.strerror
                os.close(self._file)
                self._file = None

    def close(self) -> None:
        """Write the rest and close the file."""
        self._closing.set()
        self.flush()
        self.abandon()

    def abandon(self) -> None:
        """Close the file without writing anything more."""
        self._closing.set()
        # In a forked child the lock may be held by a thread that does not exist there.
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _write_regularly(self) -> None:
        while not self._closing.wait(FLUSH_SECONDS):
            self.flush()


def _write_all(file: int, data: bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
