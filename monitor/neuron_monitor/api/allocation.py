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
        self._processes: Sequence[ProcessReading] = ()
        self._users: dict[int, tuple[int, ...]] = {}
        self._working: dict[int, CoreAllocation] = {}

    def update(self, tree: TreeReading) -> dict[int, CoreAllocation]:
        """The cores in use, by physical core id."""
        self._follow_users(tree.processes)
        found: dict[int, CoreAllocation] = {}
        users, progress, working, now_ns = self._users, self._progress, self._working, tree.taken_ns
        for device in tree.devices:
            for core in device.cores:
                core_id, counts = core.id, core.counts
                pids = users.get(core_id)
                if pids is None:
                    progress.pop(core_id, None)
                    continue
                mark = (counts[_BUSY], counts[_EXECUTIONS])
                known = progress.get(core_id)
                if known is None or known[0] != mark:
                    progress[core_id] = (mark, now_ns)
                    found[core_id] = working[core_id]
                else:
                    found[core_id] = CoreAllocation(pids, (now_ns - known[1]) / 1e9)
        return found

    def _follow_users(self, processes: Sequence[ProcessReading]) -> None:
        if not _have_same_cores(processes, self._processes):
            self._users = _users(processes)
            self._working = {core: CoreAllocation(pids, 0.0) for core, pids in self._users.items()}
        self._processes = processes


def _have_same_cores(processes: Sequence[ProcessReading], others: Sequence[ProcessReading]) -> bool:
    if processes is others:
        return True
    return len(processes) == len(others) and all(
        one.pid == other.pid and one.cores.keys() == other.cores.keys()
        for one, other in zip(processes, others)
    )


def _users(processes: Sequence[ProcessReading]) -> dict[int, tuple[int, ...]]:
    users: dict[int, tuple[int, ...]] = {}
    for process in sorted(processes, key=lambda process: process.pid):
        for core_id in process.cores:
            users[core_id] = (*users.get(core_id, ()), process.pid)
    return users
