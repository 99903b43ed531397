"""What simulated processes tell of themselves: `processes/PID.json` (docs/simulated-driver.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from neuron_monitor.api import layout
from neuron_monitor.api.nodes import Fault, describe_os_error
from neuron_monitor.api.readings import CoreReading, Model, ProcessCore, ProcessReading

MAXIMUM_BYTES = 4 << 20
ALIVE_INTERVAL_NS = 1_000_000_000
# Field 22 of /proc/PID/stat; counted behind the name, which may hold spaces and parentheses.
_START_TICKS_BEHIND_NAME = 19


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

    def read(self, now_ns: int) -> tuple[ProcessReading, ...]:
        """The processes that are alive, by rising pid."""
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
        process, start_ticks = parse_process(_read_whole(path))
        # The first look may meet a file that a killed process left.
        alive_ns = now_ns - ALIVE_INTERVAL_NS if known is None else now_ns
        self._known[name] = _File(mark, process, start_ticks, alive_ns)
        return self._known[name]


def is_alive(pid: int, start_ticks: int) -> bool:
    """Whether the process that started then still runs; a later one of the same pid is another."""
    try:
        text = _read_whole(f"/proc/{pid}/stat")
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
    cores = {int(key): _parse_core(int(key), core) for key, core in (told.get("cores") or {}).items()}
    pid = int(told["pid"])
    process = ProcessReading(
        pid=pid,
        tag=str(told.get("tag") or pid),
        command=str(told.get("command") or ""),
        runtime_version=str(told.get("runtime_version") or ""),
        logical_core_size=int(told.get("logical_core_size") or 1),
        cores=cores,
        host_memory=_held(told.get("host_memory") or {}),
        models=tuple(map(_parse_model, told.get("models") or ())),
        is_timed=bool(told.get("timing")),
        elapsed_ns=int(told.get("elapsed_ns") or 0),
        published_at_s=float(told.get("published_at") or 0),
        rank=told.get("rank"),
        profile=told.get("profile"),
    )
    return process, int(told.get("start_ticks") or 0)


def _parse_core(core_id: int, told: Mapping[str, Any]) -> ProcessCore:
    memory = _held(told.get("device_memory") or {})
    named = {
        **(told.get("status") or {}),
        **memory,
        **(told.get("engine_busy_ns") or {}),
        **(told.get("traffic") or {}),
        "inference_count": told.get("inference_count"),
        "model_load_count": told.get("model_load_count"),
        "flop_count": told.get("flop_count"),
        "throttled_ns": told.get("throttled_ns"),
        "nc_time_in_use": (told.get("busy_ns") or 0) // 1000,
        "device_memory": sum(memory.values()),
    }
    counts = [0] * len(layout.CORE_COLUMNS)
    for name, value in named.items():
        if name in layout.COLUMN_OF:
            counts[layout.COLUMN_OF[name]] = int(value or 0)
    latency = {
        name: {int(bound): int(count) for bound, count in histogram.items()}
        for name, histogram in (told.get("latency") or {}).items()
    }
    reading = CoreReading(core_id, int(told["device"]), int(told["core"]), tuple(counts), is_clocked=True)
    return ProcessCore(reading, latency)


def _parse_model(told: Mapping[str, Any]) -> Model:
    return Model(
        name=str(told.get("name") or ""),
        uuid=str(told.get("uuid") or ""),
        model_id=int(told.get("model_id") or 0),
        is_running=bool(told.get("is_running")),
        core=int(told.get("core") or 0),
        execution_count=int(told.get("execution_count") or 0),
    )


def _held(categories: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    return {name: int(counter.get("present") or 0) for name, counter in categories.items()}


def _read_whole(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, MAXIMUM_BYTES)
    finally:
        os.close(descriptor)
