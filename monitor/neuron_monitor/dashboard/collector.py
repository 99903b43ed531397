"""Takes a view in every period, for as many pages as are open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from neuron_monitor.api.sample import Sampler
from neuron_monitor.api.view import View, Windows
from neuron_monitor.dashboard.history import History
from neuron_monitor.dashboard.recording import Recording
from neuron_monitor.dashboard.rows import column_names, make_row


class Collector:
    """The newest view, and the rows of those before.

    Args:
        sampler: What reads the devices and the host.
        capacity: Rows that are kept in memory.
        wall_clock: Unix time in seconds.
    """

    def __init__(self, sampler: Sampler, capacity: int, wall_clock: Callable[[], float] = time.time) -> None:
        first = sampler.sample()
        self._sampler = sampler
        self._wall_clock = wall_clock
        self._windows = Windows(first)
        self._core_ids = [core.id for device in first.tree.devices for core in device.cores]
        self._capacity = capacity
        self.history = History(column_names(self._core_ids), capacity)
        self.recording: Recording | None = None
        self.before: View | None = None
        self.view: View | None = None

    def update(self) -> View:
        """Take a view and add its row; devices that came or went begin a new history."""
        view = self._windows.advance(self._sampler.sample())
        core_ids = [core.id for device in view.sample.tree.devices for core in device.cores]
        if core_ids != self._core_ids and core_ids:
            self._core_ids = core_ids
            self.history = History(column_names(core_ids), self._capacity)
        row = self.history.append(round(self._wall_clock() * 1000), make_row(self.view, view, self._core_ids))
        if self.recording is not None and len(row.values) == len(self.history.columns):
            self.recording.append(row)
        self.before, self.view = self.view, view
        return view

    def run(self, period_s: float, stopped: threading.Event) -> None:
        """Update in every period until stopped."""
        due = time.monotonic()
        while not stopped.wait(max(0.0, due - time.monotonic())):
            self.update()
            due = max(due + period_s, time.monotonic() - period_s)
        if self.recording is not None:
            self.recording.flush()
