"""What a runtime tells the publisher of the work it has placed."""

from __future__ import annotations

from dataclasses import field
from typing import Protocol

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.device.driver.counts import Memory
from neuron_tools.frozen import frozen


def _nothing() -> Ints:
    return np.zeros(0, np.int64)


@frozen
class Activity:
    """What one core did since it was asked last.

    Attributes:
        executions: How often each executable ran: (numbers,) int64; 0 stands for those without one.
        latency: (buckets,) int64, executions by `driver.latency.bucket_of` the time from dispatch to finish.
        untimed_executions: Those that ran while no simulated time was kept.
        busy_ns: Simulated time in which the core executed something.
    """

    executions: Ints = field(default_factory=_nothing)
    latency: Ints = field(default_factory=_nothing)
    untimed_executions: int = 0
    failed_executions: int = 0
    refused_allocations: int = 0
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    busy_ns: int = 0


class ActivitySource(Protocol):
    """One runtime of this process."""

    def device_count(self) -> int:
        """Cores that the process sees."""

    def is_timed(self) -> bool:
        """Whether simulated time is kept."""

    def now_ns(self) -> int:
        """Simulated time of the running recording: how far host and devices have come; 0 without one."""

    def take(self, index: int) -> Activity:
        """What `neuron:index` did since this was called last."""

    def tensors(self, index: int) -> Memory:
        """Device memory that tensors of `neuron:index` hold."""
