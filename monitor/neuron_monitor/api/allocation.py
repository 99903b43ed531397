"""Which processes use which cores, and how long a core that is used has done nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from neuron_monitor.api import layout
from neuron_monitor.api.readings import ProcessReading, TreeReading

_BUSY = layout.COLUMN_OF["nc_time_in_use"]
_EXECUTIONS = layout.COLUMN_OF["inference_count"]


class CoreAllocation(NamedTuple):
    """The users of one physical core.

    Attributes:
        pids: Processes that use it, in rising order.
        idle_s: Seconds since something was last executed on it, since this program began to watch at most.
    """

    pids: tuple[int, ...]
    idle_s: float


class AllocationWatch:
    """Follows the cores over readings of one tree."""

    def __init__(self) -> None:
        self._progress: dict[int, tuple[tuple[int, int], int]] = {}

    def update(self, tree: TreeReading) -> dict[int, CoreAllocation]:
        """The cores in use, by physical core id."""
        users = _users(tree.processes)
        found = {}
        for device in tree.devices:
            for core in device.cores:
                pids = users.get(core.id)
                if pids is None:
                    self._progress.pop(core.id, None)
                    continue
                mark = (core.counts[_BUSY], core.counts[_EXECUTIONS])
                known = self._progress.get(core.id)
                if known is None or known[0] != mark:
                    known = self._progress[core.id] = (mark, tree.taken_ns)
                found[core.id] = CoreAllocation(pids, (tree.taken_ns - known[1]) / 1e9)
        return found


def _users(processes: Sequence[ProcessReading]) -> dict[int, tuple[int, ...]]:
    users: dict[int, tuple[int, ...]] = {}
    for process in sorted(processes, key=lambda process: process.pid):
        for core_id in process.cores:
            users[core_id] = (*users.get(core_id, ()), process.pid)
    return users
