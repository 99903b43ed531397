"""The PyTorch device as the publisher sees it: counters of the C++ core."""

from __future__ import annotations

import numpy as np

from neuron_tools.device import native
from neuron_tools.device.driver.counts import Memory
from neuron_tools.device.driver.source import Activity


class TorchSource:
    """Counters of the `neuron` PyTorch device."""

    def __init__(self) -> None:
        self._core = native.core()
        self._refused = [0] * self.device_count()

    def device_count(self) -> int:
        """Cores that the process sees."""
        return int(self._core.device_count())

    def is_timed(self) -> bool:
        """Whether a recording or a timing session is on."""
        return bool(self._core.timing_is_on())

    def now_ns(self) -> int:
        """How far the host and the devices have come."""
        if not self.is_timed():
            return 0
        finishes = (int(self._core.device_finish_ns(index)) for index in range(self.device_count()))
        return max(int(self._core.host_now_ns()), *finishes)

    def take(self, index: int) -> Activity:
        """What `neuron:index` did since this was called last."""
        told = self._core.take_activity(index)
        refused = int(self._core.memory_statistics(index)["out_of_memory_count"])
        before, self._refused[index] = self._refused[index], refused
        return Activity(
            executions=np.frombuffer(told["executions"], np.int64),
            latency=np.frombuffer(told["latency"], np.int64),
            untimed_executions=told["untimed_executions"],
            failed_executions=told["failed_executions"],
            refused_allocations=max(refused - before, 0),
            bytes_to_device=told["bytes_to_device"],
            bytes_to_host=told["bytes_to_host"],
            busy_ns=told["busy_ns"],
        )

    def tensors(self, index: int) -> Memory:
        """Device memory that tensors hold."""
        told = self._core.memory_statistics(index)
        return Memory(told["total_allocated_bytes"], told["allocated_bytes"], told["peak_bytes"])
