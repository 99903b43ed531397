"""A runtime that tells what a test says."""

from __future__ import annotations

import numpy as np

from neuron_tools.device.driver.counts import Memory
from neuron_tools.device.driver.source import Activity
from neuron_tools.device.driver.usage import COUNTERS, ExecutableUsage


class FakeSource:
    """Two cores; `activities` are handed out once."""

    def __init__(self, device_count: int = 2) -> None:
        self.count = device_count
        self.timed = True
        self.elapsed_ns = 0
        self.activities: dict[int, Activity] = {}
        self.held: dict[int, Memory] = {}

    def device_count(self) -> int:
        return self.count

    def is_timed(self) -> bool:
        return self.timed

    def now_ns(self) -> int:
        return self.elapsed_ns

    def take(self, index: int) -> Activity:
        return self.activities.pop(index, Activity())

    def tensors(self, index: int) -> Memory:
        return self.held.get(index, Memory())


def executions(*counts: int) -> np.ndarray:
    """How often executables 0, 1, ... ran."""
    return np.array(counts, np.int64)


def usage(name: str = "add", duration_ns: int = 100, first: int = 1, **sizes: int) -> ExecutableUsage:
    """Counters that are `first`, `first` + 1, ..."""
    counters = np.arange(first, first + len(COUNTERS))[np.newaxis]
    return ExecutableUsage(
        name, duration_ns, counters, sizes.get("constant_bytes", 0), sizes.get("scratchpad_bytes", 0)
    )
