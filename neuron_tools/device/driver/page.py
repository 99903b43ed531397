"""`processes/PID.counters`: what a process counted, as binary numbers that are rewritten in place.

The JVM publishes its counters in the same way (hsperfdata): nobody makes or parses text four times a second,
and a reader keeps the file open. All words are little-endian 64-bit integers, laid out as
docs/simulated-driver.md says.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from neuron_tools.device.driver.counts import CoreCounts, Memory
from neuron_tools.device.driver.nodes import DEVICE_MEMORY, ENGINES, LATENCIES, STATUSES, TRAFFIC

FORMAT = 1
WORD_BYTES = 8
HEADER = (
    "format",
    "sequence",
    "word_count",
    "revision",
    "published_at_ns",
    "elapsed_ns",
    "is_timed",
    "host_total",
    "host_present",
    "host_peak",
    "core_count",
    "device_bound_count",
    "total_bound_count",
)
PLACE = ("id", "device", "core", "index")
_NUMBERS = (
    "inference_count", "model_load_count", "flop_count", "busy_ns", "elapsed_ns", "throttled_ns",
)  # fmt: skip
_MEMORY_PARTS = ("total", "present", "peak")
COLUMNS = (
    *STATUSES,
    *_NUMBERS,
    *ENGINES,
    *TRAFFIC,
    *(f"{category}/{part}" for category in DEVICE_MEMORY for part in _MEMORY_PARTS),
    "nc_time_in_use",
    "device_memory",
)
"""Counters of one core; the last two follow from others, so that readers need not work them out."""
HEADER_WORDS = len(HEADER)
FIRST_COUNT = len(PLACE)
ROW_WORDS = len(PLACE) + len(COLUMNS)
_SEQUENCE = HEADER.index("sequence")
_WORD_COUNT = HEADER.index("word_count")
_NOTHING = Memory()
_NS_PER_US = 1000
_LARGEST = (1 << 63) - 1
# A writer is done in microseconds: more tries than these mean that it died while it wrote.
_TRIES = 4
_HEADING = struct.Struct(f"<{HEADER_WORDS}q")
_WORD = struct.Struct("<q")


class Heading(NamedTuple):
    """The first words of a page.

    Attributes:
        sequence: Even where the page is whole; rises with each publication.
        revision: Of the process's JSON file that belongs to it.
    """

    format: int
    sequence: int
    word_count: int
    revision: int
    published_at_ns: int
    elapsed_ns: int
    is_timed: int
    host_total: int
    host_present: int
    host_peak: int
    core_count: int
    device_bound_count: int
    total_bound_count: int


@dataclass(slots=True)
class Page:
    """What one page tells.

    Attributes:
        application_memory: Host memory of the process.
        cores: Its counts by physical core of the instance.
    """

    revision: int = 0
    published_at_ns: int = 0
    elapsed_ns: int = 0
    is_timed: bool = False
    application_memory: Memory = field(default_factory=Memory)
    cores: Mapping[int, CoreCounts] = field(default_factory=dict)


def page_path(root: Path, pid: int) -> Path:
    """Where a process's page is."""
    return root / "processes" / f"{pid}.counters"


def page_words(page: Page) -> list[int]:
    """The words of a page, with sequence 0."""
    bounds = {kind: _bounds(page.cores, kind) for kind in LATENCIES}
    held = page.application_memory
    words = [FORMAT, 0, 0, page.revision, page.published_at_ns, page.elapsed_ns, int(page.is_timed)]
    words += [held.total, held.present, held.peak, len(page.cores)]
    words += map(len, bounds.values())
    for each in bounds.values():
        words += each
    for core_id, core in page.cores.items():
        words += (core_id, core.device, core.core, core.index)
        words += _counts(core)
        for kind, each in bounds.items():
            words += map(core.latency.get(kind, {}).get, each, [0] * len(each))
    words[_WORD_COUNT] = len(words)
    return words


def parse_page(data: bytes) -> Page | None:
    """The page of its bytes; None where they are not of this form, or not whole."""
    heading = heading_of(data)
    if heading is None:
        return None
    words = struct.unpack_from(f"<{heading.word_count}q", data)
    counts = (heading.device_bound_count, heading.total_bound_count)
    tables = _slices(words, HEADER_WORDS, counts)
    at = HEADER_WORDS + sum(counts)
    cores = {}
    for _ in range(heading.core_count):
        row = words[at : at + ROW_WORDS]
        latency = zip(LATENCIES, tables, _slices(words, at + ROW_WORDS, counts))
        cores[row[0]] = _core(row, {kind: _histogram(bounds, each) for kind, bounds, each in latency})
        at += ROW_WORDS + sum(counts)
    return Page(
        revision=heading.revision,
        published_at_ns=heading.published_at_ns,
        elapsed_ns=heading.elapsed_ns,
        is_timed=bool(heading.is_timed),
        application_memory=Memory(heading.host_total, heading.host_present, heading.host_peak),
        cores=cores,
    )


def heading_of(data: bytes) -> Heading | None:
    """The heading of a page's bytes; None where they are not of this form, or fewer than they should be."""
    if len(data) < HEADER_WORDS * WORD_BYTES:
        return None
    heading = Heading._make(_HEADING.unpack_from(data))
    bound_count = heading.device_bound_count + heading.total_bound_count
    expected = HEADER_WORDS + bound_count + heading.core_count * (ROW_WORDS + bound_count)
    is_whole = heading.word_count == expected and len(data) >= expected * WORD_BYTES
    return heading if heading.format == FORMAT and min(heading[-3:]) >= 0 and is_whole else None


def read_whole(descriptor: int, size: int) -> bytes | None:
    """The bytes of an open page, none of them from another publication than the others.

    Args:
        size: How many to read at least, e.g. as many as the last time.

    Returns:
        None where the page is empty, or its writer died while it wrote.

    Raises:
        OSError: It cannot be read.
    """
    for _ in range(_TRIES):
        data = os.pread(descriptor, max(size, HEADER_WORDS * WORD_BYTES), 0)
        if len(data) < HEADER_WORDS * WORD_BYTES:
            return None
        _, sequence, word_count = struct.unpack_from("<3q", data)
        if sequence & 1 or _WORD.unpack(os.pread(descriptor, WORD_BYTES, WORD_BYTES)) != (sequence,):
            continue
        if word_count * WORD_BYTES <= len(data):
            return data
        size = min(word_count * WORD_BYTES, os.fstat(descriptor).st_size)
    return None


def read_page(path: Path) -> Page | None:
    """A page; None where it is gone, empty or damaged."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = read_whole(descriptor, os.fstat(descriptor).st_size)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None if data is None else parse_page(data)


class PageWriter:
    """Rewrites one page in place.

    Readers take no lock: the sequence is odd while the rest is written, and the next even number afterwards.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._sequence = 0

    def write(self, page: Page) -> None:
        """Writes a publication.

        Raises:
            OSError: The disk is full.
        """
        words = page_words(page)
        words[_SEQUENCE] = self._sequence + 1
        _write_whole(self._descriptor, struct.pack(f"<{len(words)}q", *words))
        self._sequence += 2
        os.pwrite(self._descriptor, struct.pack("<q", self._sequence), _SEQUENCE * WORD_BYTES)

    def close(self) -> None:
        """Closes the file, which stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _write_whole(descriptor: int, data: bytes) -> None:
    written = os.pwrite(descriptor, data, 0)
    while written < len(data):
        written += os.pwrite(descriptor, data[written:], written)


def _counts(core: CoreCounts) -> Iterable[int]:
    memory = [core.device_memory.get(category, _NOTHING) for category in DEVICE_MEMORY]
    words = [core.status.get(name, 0) for name in STATUSES]
    words += (core.inference_count, core.model_load_count, core.flop_count)
    words += (core.busy_ns, core.elapsed_ns, core.throttled_ns)
    words += [core.engine_busy_ns.get(name, 0) for name in ENGINES]
    words += [core.traffic.get(name, 0) for name in TRAFFIC]
    for held in memory:
        words += (held.total, held.present, held.peak)
    words += (core.busy_ns // _NS_PER_US, sum(held.present for held in memory))
    return words


def _core(row: Sequence[int], latency: dict[str, dict[int, int]]) -> CoreCounts:
    counts = dict(zip(COLUMNS, row[FIRST_COUNT:]))
    memory = {name: Memory(*(counts[f"{name}/{part}"] for part in _MEMORY_PARTS)) for name in DEVICE_MEMORY}
    _, device, place, index = row[:FIRST_COUNT]
    core = CoreCounts(device, place, index, latency=latency)
    for name in _NUMBERS:
        setattr(core, name, counts[name])
    core.status = {name: counts[name] for name in STATUSES if counts[name]}
    core.engine_busy_ns = {name: counts[name] for name in ENGINES}
    core.traffic = {name: counts[name] for name in TRAFFIC}
    core.device_memory = {name: held for name, held in memory.items() if held.total}
    return core


def _bounds(cores: Mapping[int, CoreCounts], kind: str) -> list[int]:
    """All bounds at which some core has executions, rising."""
    return sorted(
        {bound for core in cores.values() for bound in core.latency.get(kind, ()) if bound <= _LARGEST}
    )


def _histogram(bounds: Sequence[int], counts: Sequence[int]) -> dict[int, int]:
    return {bound: count for bound, count in zip(bounds, counts) if count}


def _slices(words: Sequence[int], start: int, counts: Sequence[int]) -> list[Sequence[int]]:
    """Two tables that follow each other."""
    first, second = counts
    return [words[start : start + first], words[start + first : start + first + second]]
