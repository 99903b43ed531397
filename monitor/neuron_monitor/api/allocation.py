"""Which processes use which cores, and how long a core that is used has done nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from neuron_monitor.api import kernels, layout
from neuron_monitor.api.readings import CoreReading, ProcessReading
from neuron_monitor.api.records import ROW_WIDTH, TreeReading, plain_pair

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
        self._last: tuple[TreeReading, dict[int, CoreReading] | None] | None = None
        self._since_ns: dict[int, int] = {}
        self._processes: tuple[ProcessReading, ...] = ()
        self._working: dict[int, CoreAllocation] = {}

    def update(self, tree: TreeReading) -> Mapping[int, CoreAllocation]:
        """The cores in use, by physical core id."""
        self._follow_users(tree.records.outlines[1])
        working, since_ns, now_ns = self._working, self._since_ns, tree.taken_ns
        present, moved = self._look(tree)
        since_ns.update(dict.fromkeys(moved, now_ns))
        idle = [core_id for core_id in present if core_id in working and since_ns[core_id] != now_ns]
        if not idle and working.keys() <= set(present):
            return working
        found = {core_id: working[core_id] for core_id in present if core_id in working}
        for core_id in idle:
            found[core_id] = CoreAllocation(self.users[core_id], (now_ns - since_ns[core_id]) / 1e9)
        return found

    def _look(self, tree: TreeReading) -> tuple[Collection[int], Collection[int]]:
        """The cores that there are, and those that did something since the last look or are new."""
        pair = None if self._last is None else plain_pair(self._last[0].records, tree.records)
        if pair is not None:
            ids = pair[1].arrangement.core_ids
            rows = kernels.moved_rows(pair[0].words, pair[1].words, ROW_WIDTH, _PROGRESS)
            self._last = tree, None
            return ids, ids if len(rows) == len(ids) else [ids[row] for row in rows]
        before = {} if self._last is None else self._last[1] or _by_id(self._last[0])
        cores = _by_id(tree)
        self._last = tree, cores
        return cores, kernels.worked(before, cores, _PROGRESS)

    def _follow_users(self, processes: tuple[ProcessReading, ...]) -> None:
        if processes is not self._processes and not kernels.have_same_cores(processes, self._processes):
            self.users = _users(processes)
            self._working = {core: CoreAllocation(pids, 0.0) for core, pids in self.users.items()}
        self._processes = processes


def _by_id(tree: TreeReading) -> dict[int, CoreReading]:
    return {core.id: core for device in tree.devices for core in device.cores}


def _users(processes: Sequence[ProcessReading]) -> dict[int, tuple[int, ...]]:
    users: dict[int, tuple[int, ...]] = {}
    for process in sorted(processes, key=lambda process: process.pid):
        for core_id in process.cores:
            users[core_id] = (*users.get(core_id, ()), process.pid)
    return users
