"""Tracks of a trace that names processes, threads, devices and streams by number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.distinct import distinct_rows
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.recording import LANE, Process, Recording, Track
from neuron_tools.profile.importers.spans import stage_spans

MOST_LANES = 1 << 17
NO_NUMBER = -1


class Lanes:
    """Makes processes, device tracks, streams, threads and counters when they are first asked for.

    Args:
        recording: Receives them.
        device_name: What the track of a device is called.
    """

    def __init__(self, recording: Recording, device_name: Callable[[int], str]) -> None:
        self._recording = recording
        self._device_name = device_name
        self._processes: dict[int, int] = {}
        self._device_tracks: dict[tuple[int, int], int] = {}
        self._lanes: dict[tuple[Any, ...], int] = {}
        self._span_count = 0

    def process(self, number: int, name: str | None = None) -> int:
        """Index of a process; `NO_NUMBER` is one of which the trace tells nothing."""
        if number not in self._processes:
            process_id = None if number == NO_NUMBER else number
            self._processes[number] = self._recording.add_process(Process(name=name, process_id=process_id))
        index = self._processes[number]
        if name is not None:
            self._recording.processes[index].name = name
        return index

    def process_numbers(self) -> list[tuple[int, int]]:
        """(number, index) of each process that was asked for."""
        return list(self._processes.items())

    def devices(self) -> list[tuple[int, int]]:
        """(index of the process, number of the device), of each device that was asked for."""
        return list(self._device_tracks)

    def thread(self, process: int, number: int, name: str | None = None) -> int:
        """Lane of a thread of the host, or of one of the lines that it is drawn on."""
        return self._lane(("thread", process, number, name), lambda: self._thread(process, number, name))

    def stream(self, process: int, device: int, number: int, name: str | None = None) -> int:
        """Lane of a stream, queue or copy engine of a device."""
        return self._lane(
            ("stream", process, device, number, name), lambda: self._stream(process, device, number, name)
        )

    def counter(self, process: int, name: str, series: str, unit: str | None = None) -> int:
        """Lane of a counter."""
        return self._lane(
            ("counter", process, name, series),
            lambda: Track(
                self.process(process), f"{name}: {series}" if series else name, "counter", unit=unit
            ),
        )

    def streams(self, processes: Ints, devices: Ints, numbers: Ints, name: str | None = None) -> pa.Array:
        """Lane of each row of a table of device work."""
        return _each((processes, devices, numbers), lambda key: self.stream(key[0], key[1], key[2], name))

    def threads(self, processes: Ints, numbers: Ints) -> pa.Array:
        """Lane of each row of a table of host calls."""
        return _each((processes, numbers), lambda key: self.thread(key[0], key[1]))

    def add_spans(self, columns: dict[str, Any]) -> None:
        """Stages spans, numbered in the order in which they come."""
        count = len(columns[LANE])
        if count:
            first = self._span_count
            self._span_count += count
            stage_spans(
                self._recording, pa.table({"id": pa.array(np.arange(first, first + count)), **columns})
            )

    def _lane(self, key: tuple[Any, ...], make: Callable[[], Track]) -> int:
        found = self._lanes.get(key)
        if found is None:
            if len(self._lanes) >= MOST_LANES:
                raise TraceError(
                    f"{self._recording.source} has more than {MOST_LANES:,} threads, streams and counters: "
                    "export a part of it and import that."
                )
            found = self._recording.add_lane(self._recording.add_track(make()))
            self._lanes[key] = found
        return found

    def _thread(self, process: int, number: int, name: str | None) -> Track:
        return Track(self.process(process), name or f"thread {number}", "thread", thread_id=number)

    def _stream(self, process: int, device: int, number: int, name: str | None) -> Track:
        owner = self.process(process)
        parent = self._device_tracks.get((owner, device))
        if parent is None:
            parent = self._recording.add_track(
                Track(owner, self._device_name(device), "other", device_idx=device, sort_index=device)
            )
            self._device_tracks[(owner, device)] = parent
        title = name or f"stream {number}"
        return Track(owner, title, "stream", parent, device, number, sort_index=number)


def _each(keys: tuple[Ints, ...], lane_of: Callable[[list[int]], int]) -> pa.Array:
    """Lane of each row of keys, asked once per different row; int32."""
    different, places = distinct_rows(*keys)
    lanes = np.array([lane_of(key) for key in different.tolist()], np.int32)
    return pa.array(lanes[places])
