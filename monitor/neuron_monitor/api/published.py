"""What simulated processes tell of themselves in `processes/`, as docs/simulated-driver.md describes it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from operator import gt, is_
from typing import Any

import orjson

from neuron_monitor.api import kernels, layout
from neuron_monitor.api.latency import Histogram, known_bounds, parse_histogram, together
from neuron_monitor.api.nodes import Fault, describe_os_error
from neuron_monitor.api.readings import CoreReading, ProcessReading
from neuron_tools.device.driver.modified import lasting_mark
from neuron_tools.device.driver.page import (
    COLUMNS,
    FIRST_COUNT,
    HEADER_WORDS,
    ROW_WORDS,
    WORD_BYTES,
    Heading,
    heading_of,
    read_whole,
)

_STAT_BYTES = 1024
ALIVE_INTERVAL_NS = 1_000_000_000
# Processes publish four times a second: whoever looks more often finds what is at most so much older.
REREAD_INTERVAL_NS = 450_000_000
# Field 22 of /proc/PID/stat; counted behind the name, which may hold spaces and parentheses.
_START_TICKS_BEHIND_NAME = 19
_POSITIONS = layout.COLUMN_OF
_UNCATEGORIZED = _POSITIONS["uncategorized"]
_BUSY_US = _POSITIONS["nc_time_in_use"]
_DEVICE_MEMORY = _POSITIONS["device_memory"]
_ELAPSED_NS = _POSITIONS["elapsed_ns"]
_TABLES = ("status", "engine_busy_ns", "traffic")
_OWN_COUNTERS = tuple(
    (name, _POSITIONS[name]) for name in ("inference_count", "model_load_count", "flop_count", "throttled_ns")
)
LATENCY_KINDS = ("device", "total")
# Where a page's row has the columns here.
_ROW_NAMES = {name: f"{name}/present" for name in layout.DEVICE_MEMORY_CATEGORIES}
_PLACE = 3
_LOGICAL_SIZES = (1, 2, 4, 8)
_OFFSETS = (
    *range(_PLACE),
    *(FIRST_COUNT + COLUMNS.index(_ROW_NAMES.get(name, name)) for name, _, _ in layout.CORE_COLUMNS),
)


# As `kernels.told` has them.
_PAGE_LAYOUT = (_OFFSETS, layout.CORE_LIMITS, ROW_WORDS, layout.MOST_BYTES)
_PageKnown = tuple[int, int, int, int, bytes, ProcessReading]


@dataclass(slots=True)
class _Known:
    """A process as it was read last.

    Attributes:
        process: None before the first time.
        base: Its JSON file, with the counts that stood there.
        mark: Time and inode of that file.
        is_due: Whether that file may have been replaced.
        revision: Of that file; 0 where it has none.
        page: Descriptor of its page; None where it has none.
        page_bytes: Size of its page.
        sequence: Of the page that was read last.
        alive_ns: When it was last known that the process lives.
        told: What its page told, as `kernels.told` has it; None where more is to be looked at.
    """

    path: str
    start_ticks: int = 0
    process: ProcessReading | None = None
    base: ProcessReading | None = None
    mark: tuple[int, int] = (0, 0)
    is_due: bool = True
    revision: int = 0
    page: int | None = None
    page_bytes: int = 0
    sequence: int = 0
    alive_ns: int = 0
    told: _PageKnown | None = None

    def close(self) -> None:
        """Give back the descriptor."""
        self.told = None
        if self.page is not None:
            os.close(self.page)
            self.page = None

    def close_if_removed(self) -> None:
        """Look for the page anew where somebody removed the one that is open."""
        if self.page is not None and os.fstat(self.page).st_nlink == 0:
            self.close()
            self.is_due, self.sequence = True, 0


class PublishedProcesses:
    """The folder `processes` of a simulated tree.

    A process's counts are read from its page, which stays open; its JSON file is parsed only when the page
    names a new revision. Processes without a page are read from their JSON file when that was replaced.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.faults: list[Fault] = []
        self._known: dict[str, _Known] = {}
        self._leaving: list[_Known] = []
        self._names: frozenset[str] = frozenset()
        self._latest: tuple[ProcessReading, ...] = ()
        self._changed_ns = -1
        self._rested_ns = 0

    def read(self, now_ns: int) -> tuple[ProcessReading, ...]:
        """The processes that are alive, by rising pid."""
        if now_ns < self._rested_ns:
            return self._latest
        self._rested_ns = now_ns + REREAD_INTERVAL_NS
        changed_ns = _modified_ns(self.folder)
        if changed_ns != self._changed_ns:
            # Noted before the folder is read: what is replaced meanwhile is found the next time.
            self._changed_ns = lasting_mark(changed_ns)
            self._list()
        self.faults = []
        told = kernels.told([known.told for known in self._known.values()], _PAGE_LAYOUT)
        found = [self._follow(known, each, now_ns) for known, each in zip(self._known.values(), told)]
        latest = (*(process for process in found if process is not None), *self._last_words())
        if len(latest) != len(self._latest) or not all(map(is_, latest, self._latest)):
            self._latest = latest
        return self._latest

    def close(self) -> None:
        """Give back all descriptors; reading opens them again."""
        for known in (*self._known.values(), *self._leaving):
            known.close()
        self._leaving = []
        self._known, self._names, self._changed_ns, self._rested_ns = {}, frozenset(), -1, 0

    def _list(self) -> None:
        """Follow the files that came and went; those without a page may have been replaced."""
        try:
            names = frozenset(os.listdir(self.folder))
        except OSError:
            names = frozenset()
        for known in self._known.values():
            known.is_due |= known.sequence == 0
        if names == self._names:
            return
        self._names = names
        stems = {name.removesuffix(".json") for name in names if name.endswith(".json")}
        for gone in self._known.keys() - stems:
            self._leaving.append(self._known.pop(gone))
        new = stems - self._known.keys()
        if new:
            self._known |= {stem: _Known(f"{self.folder}/{stem}") for stem in new}
            self._known = dict(sorted(self._known.items(), key=lambda item: (len(item[0]), item[0])))

    def _last_words(self) -> list[ProcessReading]:
        """What processes that ended told last, once: until then they counted on.

        Their pages can be read as long as they are open.
        """
        found: list[ProcessReading] = []
        while self._leaving:
            known = self._leaving.pop()
            data = None if known.page is None else _read_page(known)
            heading = None if data is None else heading_of(data)
            if data and heading and known.base and heading.sequence != known.sequence:
                with suppress(ValueError):  # e.g. it died while it wrote
                    found.append(_with_counts(known.process or known.base, known.base, heading, data))
            known.close()
        return found

    def _follow(self, known: _Known, told: _PageKnown | None, now_ns: int) -> ProcessReading | None:
        """A process of which its page tells no more than counters, or which must be looked at."""
        if told is None:
            return self._read(known, now_ns)
        if told is known.told:
            return self._if_alive(known, now_ns)
        known.told, known.sequence, known.process, known.alive_ns = told, told[2], told[5], now_ns
        return known.process

    def _read(self, known: _Known, now_ns: int) -> ProcessReading | None:
        known.told = None
        try:
            before = known.process
            _refresh(known)
            # Whoever published a moment ago lives; the first look may meet what a killed process left.
            if before is not None and known.process is not before:
                known.alive_ns = now_ns
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = describe_os_error(error) if isinstance(error, OSError) else f"not readable: {error}"
            self.faults.append(Fault(f"{known.path}.json", reason))
            known.is_due, known.sequence = True, 0
            return None
        return self._if_alive(known, now_ns)

    def _if_alive(self, known: _Known, now_ns: int) -> ProcessReading | None:
        """A process, looked for now and then while it publishes nothing."""
        process = known.process
        if process is not None and (known.alive_ns == 0 or now_ns - known.alive_ns >= ALIVE_INTERVAL_NS):
            if not is_alive(process.pid, known.start_ticks):
                return None
            known.alive_ns = max(now_ns, 1)
            known.close_if_removed()
        return process


def _refresh(known: _Known) -> None:
    """Read what is new of a process.

    Raises:
        OSError, ValueError, KeyError, TypeError: Its JSON file cannot be read, or is of another form.
    """
    data = _read_page(known)
    heading = None if data is None else heading_of(data)
    if data is None or heading is None:
        if known.is_due:
            _read_file(known, with_counts=True)
            known.process = known.base
        return
    if heading.sequence == known.sequence and known.process is not None:
        return
    if known.base is None or heading.revision != known.revision:
        _read_file(known, with_counts=False)
    if known.base is not None:
        known.process = _with_counts(known.process or known.base, known.base, heading, data)
        known.sequence = heading.sequence
        if known.page is not None:
            bounds = heading.device_bound_count + heading.total_bound_count
            place = HEADER_WORDS * WORD_BYTES
            words = data[place : place + bounds * WORD_BYTES]
            known.told = known.page, known.page_bytes, known.sequence, known.revision, words, known.process


def _read_page(known: _Known) -> bytes | None:
    """The bytes of a process's page; None where it has none, or it is not whole now."""
    if known.page is None:
        try:
            known.page = os.open(f"{known.path}.counters", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        known.page_bytes = os.fstat(known.page).st_size
    data = kernels.read_page(known.page, known.page_bytes)
    if data is None:  # It was being written, or has grown.
        data = read_whole(known.page, known.page_bytes)
    if data is not None:
        known.page_bytes = len(data)
    return data


def _read_file(known: _Known, *, with_counts: bool) -> None:
    path = f"{known.path}.json"
    entry = os.stat(path)
    if known.mark != (entry.st_mtime_ns, entry.st_ino):
        modified_ns = lasting_mark(entry.st_mtime_ns)
        text = _read_whole(path, entry.st_size)
        base, known.start_ticks, known.revision = parse_process(text, with_counts=with_counts)
        if base != known.base:
            known.base = base if known.base is None else _as_before(base, known.base)
        known.mark = (modified_ns, entry.st_ino) if with_counts else (0, 0)
    known.is_due = False


def _as_before(process: ProcessReading, last: ProcessReading) -> ProcessReading:
    """A process whose fields are the same objects as before where they are equal."""
    return ProcessReading._make([old if old == new else new for old, new in zip(last, process)])


def is_alive(pid: int, start_ticks: int) -> bool:
    """Whether the process that started then still runs; a later one of the same pid is another."""
    try:
        text = _read_whole(f"/proc/{pid}/stat", _STAT_BYTES)
    except OSError:
        return False
    fields = text.rpartition(b")")[2].split()
    return start_ticks <= 0 or int(fields[_START_TICKS_BEHIND_NAME]) == start_ticks


def parse_process(text: bytes, *, with_counts: bool = True) -> tuple[ProcessReading, int, int]:
    """A process's file, its start in clock ticks, and the file's revision, 0 where it has none.

    Args:
        text: The file's.
        with_counts: Whether the cores are wanted; not where a page tells them.

    Raises:
        ValueError, KeyError, TypeError: It is cut off, or not of the documented form.
    """
    told = orjson.loads(text)
    if not isinstance(told, dict):
        raise ValueError("no JSON object")
    elapsed_ns = _count(told.get("elapsed_ns") or 0)
    told_cores = (told.get("cores") or {}) if with_counts else {}
    cores = {
        _count(int(key), layout.MOST_EVENTS): _parse_core(int(key), core, elapsed_ns)
        for key, core in sorted(told_cores.items(), key=lambda item: int(item[0]))
    }
    pid = _count(told["pid"], layout.MOST_EVENTS)
    rank = told.get("rank")
    process = ProcessReading(
        pid=pid,
        tag=str(told.get("tag") or pid),
        command=str(told.get("command") or ""),
        runtime_version=str(told.get("runtime_version") or ""),
        logical_core_size=_logical_size(told.get("logical_core_size") or 1),
        cores=cores,
        host_memory=_held(told.get("host_memory") or {}),
        models_told=tuple(map(_model, told.get("models") or ())),
        is_timed=bool(told.get("timing")),
        elapsed_ns=elapsed_ns,
        published_at_s=float(told.get("published_at") or 0),
        rank=None if rank is None else _count(rank, layout.MOST_EVENTS),
        profile=None if told.get("profile") is None else str(told["profile"]),
        latency=_latency(told_cores.values()),
    )
    return process, _count(told.get("start_ticks") or 0), _count(told.get("revision") or 0)


def _parse_core(core_id: int, told: Mapping[str, Any], elapsed_ns: int) -> CoreReading:
    counts = [*layout.NO_COUNTS, 0]  # the last is for names that this does not know
    for table in _TABLES:
        counters = told.get(table)
        if counters:
            for position, value in zip(_positions(tuple(counters)), counters.values()):
                counts[position] = _count(value)
    held = 0
    for name, counter in (told.get("device_memory") or {}).items():
        present = _count(counter["present"], layout.MOST_BYTES)
        counts[_POSITIONS.get(name, _UNCATEGORIZED)] += present
        held += present
    for name, position in _OWN_COUNTERS:
        counts[position] = _count(told.get(name) or 0)
    counts[_BUSY_US] = _count(told.get("busy_ns") or 0) // 1000
    counts[_DEVICE_MEMORY] = held
    counts[_ELAPSED_NS] = _count(told.get("elapsed_ns") or elapsed_ns)
    del counts[-1]
    device, core = (_count(told[name], layout.MOST_EVENTS) for name in ("device", "core"))
    return CoreReading(core_id, device, core, layout.packed(_checked(tuple(counts))), True)


def _count(value: object, largest: int = layout.MOST_COUNT) -> int:
    """A value that counts something.

    Raises:
        ValueError: It is not a whole number from 0 to `largest`.
    """
    if type(value) is not int or not 0 <= value <= largest:
        raise ValueError(f"{str(value)[:24]!r} is not a whole number from 0 to {largest}")
    return value


def _checked(counts: tuple[int, ...]) -> tuple[int, ...]:
    """The counters of a core.

    Raises:
        ValueError: One is below 0, or more than any host could have counted.
    """
    if min(counts) < 0 or any(map(gt, counts, layout.CORE_LIMITS)):
        raise ValueError("a counter is out of range")
    return counts


def _logical_size(value: object) -> int:
    size = _count(value)
    if size not in _LOGICAL_SIZES:
        raise ValueError(f"no logical core has {size} physical ones")
    return size


def _model(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """A loaded executable as it is told.

    Raises:
        ValueError, AttributeError: It is of another form.
    """
    for name in ("model_id", "core", "execution_count"):
        _count(told.get(name) or 0)
    return told


def _with_counts(last: ProcessReading, base: ProcessReading, heading: Heading, data: bytes) -> ProcessReading:
    """A process as its JSON file and its page tell it.

    Args:
        last: The reading before: what did not change since stays the same object.
    """
    bounds = heading.device_bound_count, heading.total_bound_count
    start = HEADER_WORDS + sum(bounds)
    rows, executions = kernels.table(data, start, heading.core_count, ROW_WORDS, _OFFSETS, sum(bounds))
    memory = {
        **base.host_memory,
        "application_memory": _count(heading.host_present, layout.MOST_BYTES),
    }
    return ProcessReading(
        pid=base.pid,
        tag=base.tag,
        command=base.command,
        runtime_version=base.runtime_version,
        logical_core_size=base.logical_core_size,
        cores={row[0]: _core_of(row, last.cores.get(row[0])) for row in sorted(rows)},
        host_memory=last.host_memory if last.host_memory == memory else memory,
        models_told=base.models_told,
        is_timed=bool(heading.is_timed),
        elapsed_ns=_count(heading.elapsed_ns),
        published_at_s=heading.published_at_ns / 1e9,
        rank=base.rank,
        profile=base.profile,
        latency=_latency_of(data, bounds, executions) if rows else {},
    )


def _core_of(row: tuple[int, ...], last: CoreReading | None) -> CoreReading:
    counts = row[_PLACE:]
    if last is not None and last.counts == counts:
        return last
    if min(row[:_PLACE]) < 0 or max(row[:_PLACE]) > layout.MOST_EVENTS:
        raise ValueError("no core has such a number")
    return CoreReading(row[0], row[1], row[2], layout.packed(_checked(counts)), True)


def _latency_of(data: bytes, bound_counts: tuple[int, ...], executions: bytes) -> dict[str, Histogram]:
    """The histograms of all cores together, of their bounds and counts that follow each other."""
    found, place, done = {}, HEADER_WORDS * WORD_BYTES, 0
    for kind, count in zip(LATENCY_KINDS, bound_counts):
        size = count * WORD_BYTES
        bounds = known_bounds(data[place + done : place + done + size])
        found[kind] = Histogram(bounds, executions[done : done + size])
        done += size
    return found


@lru_cache(maxsize=256)
def _positions(names: tuple[str, ...]) -> tuple[int, ...]:
    """Columns of a table's counters; one behind the last for names that this does not know."""
    return tuple(_POSITIONS.get(name, len(layout.NO_COUNTS)) for name in names)


def _latency(cores: Iterable[Mapping[str, Any]]) -> dict[str, Histogram]:
    """The histograms of all cores together."""
    each = [core["latency"] for core in cores if core.get("latency")]
    return {
        kind: together([parse_histogram(told[kind]) for told in each if kind in told])
        for kind in LATENCY_KINDS
        if each
    }


def _modified_ns(folder: str) -> int:
    """When a file of a folder was made, replaced or removed last; -1 where there is no folder."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return -1


def _held(categories: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    return {
        name: _count(counter.get("present") or 0, layout.MOST_BYTES) for name, counter in categories.items()
    }


def _read_whole(path: str, size: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)
