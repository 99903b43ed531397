"""A log that keeps its last seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuron_tools.capture.look_back.retained import Retained, kept_still, read_records
from neuron_tools.capture.look_back.ring import LogRing
from neuron_tools.records.capture_log import EVENTS_FILE, RECORD_DTYPE, RecordKind
from tests.unit.capture.logs import host

MIB = 1 << 20


def append(directory: Path, records: list[np.ndarray]) -> None:
    with (directory / EVENTS_FILE).open("ab") as file:
        file.write(b"".join(row.tobytes() for row in records))


def ranges(first_ns: int, count: int) -> list[np.ndarray]:
    return [host(RecordKind.RANGE, first_ns + 10 * i, first_ns + 10 * i + 5) for i in range(count)]


@pytest.mark.parametrize("last_ns", [1, 25, 100, 10**6])
def test_what_is_younger_than_the_time_asked_for_stays(tmp_path: Path, last_ns: int) -> None:
    ring = LogRing(tmp_path, last_ns, MIB)
    for look in range(20):
        append(tmp_path, ranges(100 * look, 10))
        assert len(ring.advance()) == 10
    kept = read_records(tmp_path, Retained.of(tmp_path).first_record)
    assert int(kept["host_end_ns"][-1]) == 1995
    missing = [ns for ns in range(5, 1996, 10) if ns >= 1995 - last_ns and ns not in kept["host_end_ns"]]
    assert not missing
    assert len(kept) <= last_ns // 10 + 2 * 10  # at most one look more than needed, and the last


def test_the_space_of_what_is_gone_is_given_back(tmp_path: Path) -> None:
    ring = LogRing(tmp_path, 50, 64 * MIB)
    for look in range(4):
        append(tmp_path, ranges(100_000 * look, 5_000))
        ring.advance()
    status = (tmp_path / EVENTS_FILE).stat()
    assert status.st_size == 20_000 * RECORD_DTYPE.itemsize
    assert status.st_blocks * 512 <= 2 * 5_000 * RECORD_DTYPE.itemsize


def test_size_counts_more_than_time(tmp_path: Path) -> None:
    ring = LogRing(tmp_path, 10**12, 30 * RECORD_DTYPE.itemsize)
    for look in range(10):
        append(tmp_path, ranges(100 * look, 10))
        ring.advance()
    assert len(read_records(tmp_path, Retained.of(tmp_path).first_record)) <= 30


def test_memory_held_by_what_is_gone_is_remembered(tmp_path: Path) -> None:
    ring = LogRing(tmp_path, 10, MIB)
    for look in range(6):
        allocated = host(RecordKind.ALLOCATE, 100 * look, 100 * look, bytes=100, device=look % 2)
        freed = host(RecordKind.FREE, 100 * look + 1, 100 * look + 1, bytes=30, device=look % 2)
        append(tmp_path, [allocated, freed])
        ring.advance()
    retained = Retained.of(tmp_path)
    assert retained.first_record == 10
    assert retained.held_bytes == (3 * 70, 2 * 70)


def test_nothing_goes_while_somebody_reads(tmp_path: Path) -> None:
    ring = LogRing(tmp_path, 10, MIB)
    append(tmp_path, ranges(0, 10))
    ring.advance()
    with kept_still(tmp_path, wait=True):
        append(tmp_path, ranges(1_000, 10))
        ring.advance()
        assert Retained.of(tmp_path).first_record == 0
    append(tmp_path, ranges(2_000, 10))
    ring.advance()
    assert Retained.of(tmp_path).first_record > 0


def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert len(LogRing(tmp_path, 10, MIB).advance()) == 0
