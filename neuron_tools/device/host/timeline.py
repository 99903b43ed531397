"""When each NeuronCore is free."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence


class DeviceTimeline:
    """Places executions on the in-order queue of each NeuronCore. Safe to use from several threads.

    Args:
        launch_overhead_ns: What a core adds before each execution.
    """

    def __init__(self, launch_overhead_ns: int = 0) -> None:
        self._launch_overhead_ns = launch_overhead_ns
        self._free_ns: defaultdict[int, int] = defaultdict(int)
        self._lock = threading.Lock()

    def place(
        self, cores: Sequence[int], issued_ns: int, duration_ns: int, *, is_copy: bool = False
    ) -> tuple[int, int]:
        """Start and end of an execution or copy that needs all of `cores` at once, issued at `issued_ns`."""
        overhead_ns = 0 if is_copy else self._launch_overhead_ns
        with self._lock:
            start_ns = max(issued_ns, *(self._free_ns[core] for core in cores)) + overhead_ns
            end_ns = start_ns + duration_ns
            for core in cores:
                self._free_ns[core] = end_ns
            return start_ns, end_ns

    def finish_ns(self, cores: Sequence[int]) -> int:
        """When all that was placed on `cores` is done."""
        with self._lock:
            return max((self._free_ns[core] for core in cores), default=0)
