"""Takes a sample in every period, and makes its text when it is first scraped: once, however many scrape."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable

from neuron_monitor.api.kubernetes import PodWatch
from neuron_monitor.api.sample import Sampler
from neuron_monitor.api.view import View, Windows
from neuron_monitor.prometheus.exposition import render
from neuron_monitor.prometheus.series import SeriesMaker

GZIP_LEVEL = 1


class Exporter:
    """The text of the last sample.

    Args:
        sampler: What reads the devices and the host.
        period_s: Seconds between samples.
        pods: Finds the pods of processes, or None.
        clock: Monotonic nanoseconds.
        wall_clock: Unix time in seconds.
    """

    def __init__(
        self,
        sampler: Sampler,
        period_s: float,
        pods: PodWatch | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._sampler = sampler
        self._period_s = period_s
        self._pods = pods
        self._clock = clock
        self._windows = Windows(sampler.sample())
        self._maker = SeriesMaker(wall_clock())
        self._lock = threading.Lock()
        self._latest: tuple[View, float] | None = None
        self._text: bytes | None = None
        self._compressed: bytes | None = None

    def update(self) -> None:
        """Take a sample."""
        started_ns = self._clock()
        view = self._windows.advance(self._sampler.sample())
        with self._lock:
            self._latest = view, (self._clock() - started_ns) / 1e9
            self._text = self._compressed = None

    def text(self, *, compressed: bool = False) -> bytes:
        """The text of the last sample, made when it is first asked for."""
        with self._lock:
            if self._text is None:
                self._text = self._render()
            if not compressed:
                return self._text
            if self._compressed is None:
                self._compressed = gzip.compress(self._text, GZIP_LEVEL)
            return self._compressed

    def _render(self) -> bytes:
        if self._latest is None:
            return b""
        view, sample_seconds = self._latest
        pods = self._pods.pods(view.sample.tree) if self._pods is not None else {}
        return render(self._maker.make(view, pods, sample_seconds))

    def run(self, stopped: threading.Event) -> None:
        """Update in every period until stopped."""
        while not stopped.wait(self._period_s):
            self.update()
