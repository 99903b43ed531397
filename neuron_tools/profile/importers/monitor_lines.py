"""Monitors' JSON lines: one report a line, each number in it a counter.

`neuron-monitor` and others write nested reports; nvitop's collectors flat ones whose keys are paths. A
report's time is the member that is named so, or else the place of its line times the report's period.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import numpy as np

from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.json_document import JsonDocument
from neuron_tools.profile.importers.json_rows import JsonRows, KeySet, plain_value
from neuron_tools.profile.importers.recording import LANE, Clock, Process, Recording, Track
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "monitor JSON lines"
NANOSECONDS = 1_000_000_000
YEAR_2001_S = 1_000_000_000
YEAR_2100_S = 4_102_444_800
MOST_COUNTERS = 20_000
MOST_LEVELS = 16
ROWS_PER_BATCH = 1 << 16

_MARKS = frozenset(
    {"neuron_runtime_data", "system_data", "instance_info", "neuron_hardware_info", "neuron_hw_counters"}
)
_TIME_KEY = re.compile(r"(?:^|[/_.])(?:timestamp|time|ts|date)(?:_?(?:ns|us|ms|s))?$", re.IGNORECASE)
_IDENTITY_KEYS = ("neuron_runtime_tag", "pid", "neuron_device_index", "name", "index", "id")
_NO_COUNTERS = frozenset({"pid", "neuron_device_index", "period"})
_UNITS = re.compile(r"\(([^()]{1,12})\)(?:/(?:mean|min|max|last))?$")
_SUFFIX_UNITS = (
    ("_bytes", "bytes"),
    ("_seconds", "s"),
    ("_ns", "ns"),
    ("_percent", "%"),
    ("_utilization", "%"),
)
_OTHERS = frozenset({"ph", "traceEvents", "nodes", "frames"})
"""Of events, graphs and sampled stacks, which have times too."""
_NO_KEYS = KeySet(())


def recognise(head: Head) -> bool:
    """Whether the file is a sequence of reports: of neuron-monitor's keys, or flat numbers with a time."""
    if head.is_list or not head.is_json:
        return False
    if head.json_keys & _MARKS:
        return True
    keys = head.json_keys
    return len(keys) >= 2 and any(_TIME_KEY.search(key) for key in keys) and not _OTHERS & keys


def read(file: TraceFile, recording: Recording) -> None:
    """Stages every number of every report."""
    document = JsonDocument(file)
    samples = _Samples(recording)
    for report in _reports(document):
        samples.add(report)
    samples.finish()
    recording.warn_all(document.damage.sentences())


def _reports(document: JsonDocument) -> Iterator[dict[str, Any]]:
    for rows in document.objects(_NO_KEYS, lines=True):
        yield from _decoded(rows)


def _decoded(rows: JsonRows) -> Iterator[dict[str, Any]]:
    for text in rows.whole():
        report = plain_value(text)
        if isinstance(report, dict):
            yield report


class _Samples:
    """Counters of a file, by the path of their number in the reports."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._process = recording.add_process(Process(name="monitor"))
        self._lanes: dict[str, int] = {}
        self._waiting: dict[str, list[Any]] = defaultdict(list)
        self._time_ns = 0
        self._is_absolute = False
        self._host: str | None = None
        self._reports = 0

    def add(self, report: dict[str, Any]) -> None:
        """Adds one report."""
        numbers = list(_numbers(report, "", 0))
        time_ns = self._time_of(report, numbers)
        instance = report.get("instance_info")
        if isinstance(instance, dict) and isinstance(instance.get("instance_id"), str):
            self._host = instance["instance_id"] or None
        for path, value in numbers:
            lane = self._lane(path)
            if lane is not None:
                self._waiting[LANE].append(lane)
                self._waiting["timestamp"].append(time_ns)
                self._waiting["value"].append(value)
        self._reports += 1
        if len(self._waiting[LANE]) >= ROWS_PER_BATCH:
            self._flush()

    def finish(self) -> None:
        """Stages what is left and tells the clock."""
        self._flush()
        self._recording.clock = Clock(0 if self._is_absolute else None, self._host)

    def _flush(self) -> None:
        self._recording.append_samples(*(self._waiting[name] for name in (LANE, "timestamp", "value")))
        self._waiting.clear()

    def _lane(self, path: str) -> int | None:
        if path not in self._lanes:
            if len(self._lanes) >= MOST_COUNTERS:
                self._recording.warn(f"Counters beyond the first {MOST_COUNTERS:,} were left out.")
                return None
            track = Track(self._process, path, "counter", unit=_unit(path))
            self._lanes[path] = self._recording.add_lane(self._recording.add_track(track))
        return self._lanes[path]

    def _time_of(self, report: dict[str, Any], numbers: list[tuple[str, float]]) -> int:
        """Time of a report; without one, its period after the report before it."""
        members: list[tuple[str, str | float]] = [*_texts(report, "", 0), *numbers]
        for path, value in members:
            if not _TIME_KEY.search(path):
                continue
            seconds = _parsed(value) if isinstance(value, str) else value
            scaled = None if seconds is None else _as_unix_ns(seconds)
            if scaled is not None:
                self._is_absolute = True
                return scaled
        if self._reports and not self._is_absolute:
            self._time_ns += int(max(_periods(report, 0), default=1.0) * NANOSECONDS)
        return self._time_ns


def _numbers(value: Any, path: str, level: int) -> Iterator[tuple[str, float]]:
    """Every finite number of a report, with the path to it; elements of lists by what identifies them."""
    if isinstance(value, bool) or level > MOST_LEVELS:
        return
    if isinstance(value, (int, float)):
        number = float(value) if abs(value) < 1e300 else float("inf")
        if np.isfinite(number):
            yield path, number
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in _NO_COUNTERS:
                continue
            yield from _numbers(inner, f"{path}/{key}" if path else key, level + 1)
    elif isinstance(value, list):
        for number_, inner in enumerate(value):
            yield from _numbers(inner, f"{path}/{_identity(inner, number_)}", level + 1)


def _texts(value: Any, path: str, level: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict) and level < 2:
        for key, inner in value.items():
            yield from _texts(inner, f"{path}/{key}" if path else key, level + 1)


def _identity(element: Any, number: int) -> str:
    if isinstance(element, dict):
        for key in _IDENTITY_KEYS:
            value = element.get(key)
            if isinstance(value, (str, int)) and value != "":
                return str(value)
    return str(number)


def _parsed(text: str) -> float | None:
    """Seconds since 1970 of an ISO date or a number."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return None


def _as_unix_ns(value: float) -> int | None:
    """A time since 1970 in seconds, milli-, micro- or nanoseconds, by its size; None if no time."""
    for factor in (NANOSECONDS, 1_000_000, 1000, 1):
        seconds = value * factor / NANOSECONDS
        if YEAR_2001_S < seconds < YEAR_2100_S:
            return min(int(value * factor), LARGEST_TIME)
    return None


def _periods(value: Any, level: int) -> Iterator[float]:
    """Every `period` of a report, in seconds."""
    if level > MOST_LEVELS:
        return
    if isinstance(value, dict):
        own = value.get("period")
        if isinstance(own, (int, float)) and 0 < own < YEAR_2001_S:
            yield float(own)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from _periods(one, level + 1)


def _unit(path: str) -> str | None:
    """The unit that the innermost part of a path tells: "bytes" of `used_bytes/host`."""
    found = _UNITS.search(path)
    if found is not None:
        return found.group(1)
    parts = reversed(path.split("/"))
    return next((unit for part in parts for suffix, unit in _SUFFIX_UNITS if part.endswith(suffix)), None)
