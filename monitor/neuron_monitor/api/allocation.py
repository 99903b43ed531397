"""Which processes use which cores, and how long a core that is used has done nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from neuron_monitor.api import kernels, layout
from neuron_monitor.api.readings import CoreReading, ProcessReading, TreeReading

_PROGRESS = (layout.COLUMN_OF["nc_time_in_use"], layout.COLUMN_OF["inference_count"])


class CoreAllocation(NamedTuple):
    """The users of one physical core.

    Attributes:
        pids: Processes that use it, in rising order.
        idle_s: Seconds since something was last executed on it, since this program began to watch at most.
    """

    pids: tuple[int, ...]
    idle_s: float


class AllocationWatch:
    """Follows the cores over readings of one tree.

    Attributes:
        users: Pids by physical core id; the same object as long as nothing of it changes.
    """

    def __init__(self) -> None:
        self.users: dict[int, tuple[int, ...]] = {}
        self._cores: dict[int, CoreReading] = {}
        self._since_ns: dict[int, int] = {}
        self._processes: tuple[ProcessReading, ...] = ()
        self._working: dict[int, CoreAllocation] = {}

    def update(self, tree: TreeReading) -> Mapping[int, CoreAllocation]:
        """The cores in use, by physical core id."""
        self._follow_users(tree.processes)
        working, since_ns, now_ns = self._working, self._since_ns, tree.taken_ns
        cores = {core.id: core for device in tree.devices for core in device.cores if core.id in working}
        since_ns.update(dict.fromkeys(kernels.worked(self._cores, cores, _PROGRESS), now_ns))
        self._cores = cores
        idle = [core_id for core_id in cores if since_ns[core_id] != now_ns]
        if not idle and len(cores) == len(working):
            return working
        found = {core_id: working[core_id] for core_id in cores}
        for core_id in idle:
            found[core_id] = CoreAllocation(self.users[core_id], (now_ns - since_ns[core_id]) / 1e9)
        return found

    def _follow_users(self, processes: tuple[ProcessReading, ...]) -> None:
        if processes is not self._processes and not kernels.have_same_cores(processes, self._processes):
            self.users = _users(processes)
            self._working = {core: CoreAllocation(pids, 0.0) for core, pids in self.users.items()}
        self._processes = processes


def _users(processes: Sequence[ProcessReading]) -> dict[int, tuple[int, ...]]:
    users: dict[int, tuple[int, ...]] = {}
    for process in sorted(processes, key=lambda process: process.pid):
        for core_id in process.cores:
            users[core_id] = (*users.get(core_id, ()), process.pid)
    return users
