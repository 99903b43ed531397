"""What simulated processes tell of themselves: `processes/PID.json` (docs/simulated-driver.md)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import is_
from typing import Any

import orjson

from neuron_monitor.api import layout
from neuron_monitor.api.latency import Histogram, parse_histogram, together
from neuron_monitor.api.nodes import Fault, describe_os_error
from neuron_monitor.api.readings import CoreReading, ProcessReading

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


@dataclass(slots=True)
class _File:
    """A process's file as it was parsed last, and when it was last known that the process lives."""

    mark: tuple[int, int]
    process: ProcessReading
    start_ticks: int
    alive_ns: int


class PublishedProcesses:
    """The folder `processes` of a simulated tree; a file is parsed anew only when it was replaced."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.faults: list[Fault] = []
        self._known: dict[str, _File] = {}
        self._latest: tuple[ProcessReading, ...] = ()
        self._changed_ns = -1
        self._due_ns = 0
        self._rested_ns = 0

    def read(self, now_ns: int) -> tuple[ProcessReading, ...]:
        """The processes that are alive, by rising pid."""
        if now_ns < self._rested_ns:
            return self._latest
        changed_ns = _modified_ns(self.folder)
        if changed_ns != self._changed_ns or now_ns >= self._due_ns:
            self._rested_ns = now_ns + REREAD_INTERVAL_NS
            # Noted before the folder is read: what is replaced meanwhile is found the next time.
            self._changed_ns, self._due_ns = changed_ns, now_ns + ALIVE_INTERVAL_NS
            latest = self._read_folder(now_ns)
            if len(latest) != len(self._latest) or not all(map(is_, latest, self._latest)):
                self._latest = latest
        return self._latest

    def _read_folder(self, now_ns: int) -> tuple[ProcessReading, ...]:
        self.faults = []
        try:
            names = [name for name in os.listdir(self.folder) if name.endswith(".json")]
        except OSError:
            names = []
        for gone in self._known.keys() - set(names):
            del self._known[gone]
        found = [process for process in (self._read(name, now_ns) for name in names) if process is not None]
        return tuple(sorted(found, key=lambda process: process.pid))

    def _read(self, name: str, now_ns: int) -> ProcessReading | None:
        path = f"{self.folder}/{name}"
        try:
            file = self._file(name, path, now_ns)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = describe_os_error(error) if isinstance(error, OSError) else f"not readable: {error}"
            self.faults.append(Fault(path, reason))
            return None
        # Whoever published a moment ago lives.
        if now_ns - file.alive_ns >= ALIVE_INTERVAL_NS:
            if not is_alive(file.process.pid, file.start_ticks):
                return None
            file.alive_ns = now_ns
        return file.process

    def _file(self, name: str, path: str, now_ns: int) -> _File:
        entry = os.stat(path)
        mark = (entry.st_mtime_ns, entry.st_ino)
        known = self._known.get(name)
        if known is not None and known.mark == mark:
            return known
        process, start_ticks = parse_process(_read_whole(path, entry.st_size))
        # The first look may meet a file that a killed process left.
        alive_ns = now_ns - ALIVE_INTERVAL_NS if known is None else now_ns
        self._known[name] = _File(mark, process, start_ticks, alive_ns)
        return self._known[name]


def is_alive(pid: int, start_ticks: int) -> bool:
    """Whether the process that started then still runs; a later one of the same pid is another."""
    try:
        text = _read_whole(f"/proc/{pid}/stat", _STAT_BYTES)
    except OSError:
        return False
    fields = text.rpartition(b")")[2].split()
    return start_ticks <= 0 or int(fields[_START_TICKS_BEHIND_NAME]) == start_ticks


def parse_process(text: bytes) -> tuple[ProcessReading, int]:
    """A process's file, and its start in clock ticks.

    Raises:
        ValueError, KeyError, TypeError: It is cut off, or not of the documented form.
    """
    told = orjson.loads(text)
    elapsed_ns = int(told.get("elapsed_ns") or 0)
    told_cores = told.get("cores") or {}
    cores = {int(key): _parse_core(int(key), core, elapsed_ns) for key, core in told_cores.items()}
    pid = int(told["pid"])
    process = ProcessReading(
        pid=pid,
        tag=str(told.get("tag") or pid),
        command=str(told.get("command") or ""),
        runtime_version=str(told.get("runtime_version") or ""),
        logical_core_size=int(told.get("logical_core_size") or 1),
        cores=cores,
        host_memory=_held(told.get("host_memory") or {}),
        models_told=tuple(told.get("models") or ()),
        is_timed=bool(told.get("timing")),
        elapsed_ns=elapsed_ns,
        published_at_s=float(told.get("published_at") or 0),
        rank=told.get("rank"),
        profile=told.get("profile"),
        latency=_latency(told_cores.values()),
    )
    return process, int(told.get("start_ticks") or 0)


def _parse_core(core_id: int, told: Mapping[str, Any], elapsed_ns: int) -> CoreReading:
    counts = [*layout.NO_COUNTS, 0]  # the last is for names that this does not know
    for table in _TABLES:
        counters = told.get(table)
        if counters:
            for position, value in zip(_positions(tuple(counters)), counters.values()):
                counts[position] = value
    held = 0
    for name, counter in (told.get("device_memory") or {}).items():
        counts[_POSITIONS.get(name, _UNCATEGORIZED)] += counter["present"]
        held += counter["present"]
    for name, position in _OWN_COUNTERS:
        counts[position] = told.get(name) or 0
    counts[_BUSY_US] = (told.get("busy_ns") or 0) // 1000
    counts[_DEVICE_MEMORY] = held
    counts[_ELAPSED_NS] = told.get("elapsed_ns") or elapsed_ns
    del counts[-1]
    return CoreReading(core_id, int(told["device"]), int(told["core"]), tuple(counts), True)


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
    return {name: int(counter.get("present") or 0) for name, counter in categories.items()}


def _read_whole(path: str, size: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)
