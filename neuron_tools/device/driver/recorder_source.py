"""Programs without the PyTorch device as the publisher sees them: what their recorder placed."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from neuron_tools.device.driver.counts import Memory
from neuron_tools.device.driver.latency import BUCKETS, bucket_of
from neuron_tools.device.driver.source import Activity
from neuron_tools.device.host.recorder import PythonRecorder


class _Counts:
    """What one core did since it was asked last."""

    def __init__(self) -> None:
        self.executions: list[int] = []
        self.latency = [0] * BUCKETS
        self.busy_ns = 0


def _one() -> int:
    return 1


class RecorderSource:
    """Counts what recorders place, one recorder after another. Safe to use from several threads."""

    def __init__(self) -> None:
        self._count_cores: Callable[[], int] = _one
        self._lock = threading.Lock()
        self._cores: dict[int, _Counts] = {}
        self._recorder: PythonRecorder | None = None

    def follow(
        self,
        recorder: PythonRecorder | None,
        count_cores: Callable[[], int] = _one,
        on_first: Callable[[], object] = _one,
    ) -> None:
        """Count what this recorder places from now on; None: simulated time stands still.

        Args:
            count_cores: How many cores the process sees; asked once it has used one.
            on_first: Called at the recorder's first execution, before that counts.
        """
        if self._recorder is not None:
            self._recorder.on_execute = None
        self._recorder, self._count_cores = recorder, count_cores
        if recorder is None:
            return

        def first(core: int, executable: int, latency_ns: int, duration_ns: int) -> None:
            recorder.on_execute = self._count
            with self._lock:
                self._cores.setdefault(core, _Counts())
            on_first()  # before it counts: what ran until now belongs to no session
            self._count(core, executable, latency_ns, duration_ns)

        recorder.on_execute = first

    def device_count(self) -> int:
        """Cores that the process sees."""
        return max(self._count_cores(), *(core + 1 for core in self._cores), 1)

    def is_timed(self) -> bool:
        """Whether a recording is on."""
        return self._recorder is not None

    def now_ns(self) -> int:
        """How far the host and the devices have come."""
        recorder = self._recorder
        if recorder is None:
            return 0
        return max(recorder.clock.now_ns(), recorder.finish_ns(list(self._cores) or [0]))

    def take(self, index: int) -> Activity:
        """What a core did since this was called last."""
        with self._lock:
            counts = self._cores.get(index)
            if counts is None:
                return Activity()
            self._cores[index] = _Counts()
        return Activity(
            executions=np.array(counts.executions, np.int64),
            latency=np.array(counts.latency, np.int64),
            busy_ns=counts.busy_ns,
        )

    def tensors(self, index: int) -> Memory:
        """Nothing is known of the memory that arrays hold."""
        return Memory()

    def _count(self, core: int, executable: int, latency_ns: int, duration_ns: int) -> None:
        with self._lock:
            counts = self._cores.setdefault(core, _Counts())
            counts.executions += [0] * (executable + 1 - len(counts.executions))
            counts.executions[executable] += 1
            counts.latency[bucket_of(latency_ns)] += 1
            counts.busy_ns += duration_ns
