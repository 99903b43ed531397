"""What is kept of one process's log: the records of the last seconds; the space of older ones is given back.

The log only grows, so its old part is punched out of the file: offsets stay as they are, and whoever reads
along is not disturbed. What the punched records had added up to stands in `retained.json` beside the log.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np

from neuron_tools.arrays import Table
from neuron_tools.frozen import frozen
from neuron_tools.records.capture_log import EVENTS_FILE, RECORD_DTYPE, RecordKind

FILE_NAME = "retained.json"
LOCK_NAME = "retained.lock"
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h


@frozen
class Retained:
    """Where the kept part of a log begins.

    Attributes:
        first_record: Records before this one are gone.
        held_bytes: What those had changed of the device memory held, by device.
    """

    first_record: int = 0
    held_bytes: tuple[int, ...] = ()

    @classmethod
    def of(cls, directory: Path) -> Retained:
        """What stands beside a process's log; everything is kept where nothing does."""
        try:
            told = json.loads((directory / FILE_NAME).read_text())
            return cls(int(told["first_record"]), tuple(int(count) for count in told["held_bytes"]))
        except FileNotFoundError:
            return cls()

    def advanced(self, records: Table) -> Retained:
        """The same after these records, which follow, are gone too."""
        return Retained(self.first_record + len(records), _held_after(self.held_bytes, records))

    def write(self, directory: Path) -> None:
        """Put it beside a process's log, whole or not at all."""
        draft = directory / f"{FILE_NAME}.new"
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(directory / FILE_NAME)


def _held_after(held_bytes: tuple[int, ...], records: Table) -> tuple[int, ...]:
    added = records["kind"] == int(RecordKind.ALLOCATE)
    freed = records["kind"] == int(RecordKind.FREE)
    chosen = added | freed
    if not chosen.any():
        return held_bytes
    devices = records["device"][chosen].astype(np.intp)
    signed = np.where(added, records["bytes"], -records["bytes"])[chosen]
    held = np.zeros(max(len(held_bytes), int(devices.max()) + 1), np.int64)
    held[: len(held_bytes)] = held_bytes
    np.add.at(held, devices, signed)
    return tuple(held.tolist())


@contextmanager
def kept_still(directory: Path, *, wait: bool) -> Iterator[bool]:
    """While held, nobody else takes records of this log away or makes a profile of it.

    Args:
        wait: Wait until it can be had; else yields False where somebody has it.
    """
    file = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            yield True
            return
        yield False
    finally:
        os.close(file)


def give_back(directory: Path, records: int) -> bool:
    """Give the space of the log's first records back to the file system; False where it knows no holes."""
    libc = ctypes.CDLL(None, use_errno=True)
    file = os.open(directory / EVENTS_FILE, os.O_RDWR | os.O_CLOEXEC)
    try:
        length = ctypes.c_longlong(records * RECORD_DTYPE.itemsize)
        mode = _KEEP_SIZE | _PUNCH_HOLE
        return int(libc.fallocate(file, mode, ctypes.c_longlong(0), length)) == 0
    finally:
        os.close(file)


def read_records(directory: Path, first_record: int, limit: int = -1) -> Table:
    """Whole records of a log from one on, at most `limit` where it is not negative."""
    try:
        return np.fromfile(
            directory / EVENTS_FILE, RECORD_DTYPE, count=limit, offset=first_record * RECORD_DTYPE.itemsize
        )
    except FileNotFoundError:
        return np.zeros(0, RECORD_DTYPE)
