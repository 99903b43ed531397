"""Which processes use which cores, and how long a core that is used has done nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set as AbstractSet
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
        working: What `update` gives while all cores that are used work.
    """

    def __init__(self) -> None:
        self.users: dict[int, tuple[int, ...]] = {}
        self._last: tuple[TreeReading, dict[int, CoreReading] | None] | None = None
        self._since_ns: dict[int, int] = {}
        self._all_since_ns = 0
        self._processes: tuple[ProcessReading, ...] = ()
        self.working: dict[int, CoreAllocation] = {}
        self._ids: tuple[int, ...] = ()
        self._present: frozenset[int] = frozenset()

    def update(self, tree: TreeReading) -> Mapping[int, CoreAllocation]:
        """The cores in use, by physical core id."""
        self._follow_users(tree.records.outlines[1], tree.taken_ns)
        working, since_ns, now_ns = self.working, self._since_ns, tree.taken_ns
        present, moved = self._look(tree)
        if len(moved) == len(present) and working.keys() <= present:
            self._all_since_ns = now_ns
            return working
        since_ns.update(dict.fromkeys(moved, now_ns))
        found = {}
        for core_id in present:
            if core_id in working:
                idle_ns = now_ns - max(since_ns.get(core_id, 0), self._all_since_ns)
                found[core_id] = (
                    CoreAllocation(self.users[core_id], idle_ns / 1e9) if idle_ns else working[core_id]
                )
        return found

    def _look(self, tree: TreeReading) -> tuple[AbstractSet[int], Collection[int]]:
        """The cores that there are, and those that did something since the last look or are new."""
        pair = None if self._last is None else plain_pair(self._last[0].records, tree.records)
        if pair is not None:
            ids = pair[1].arrangement.core_ids
            rows = kernels.moved_rows(pair[0].words, pair[1].words, ROW_WIDTH, _PROGRESS)
            self._last = tree, None
            if ids is not self._ids:
                self._ids, self._present = ids, frozenset(ids)
            return self._present, ids if len(rows) == len(ids) else [ids[row] for row in rows]
        before = {} if self._last is None else self._last[1] or self._last[0].cores_by_id()
        cores = tree.cores_by_id()
        self._last = tree, cores
        return cores.keys(), kernels.worked(before, cores, _PROGRESS)

    def _follow_users(self, processes: tuple[ProcessReading, ...], now_ns: int) -> None:
        """Note who uses which core; one that was not used before is idle since now."""
        if processes is not self._processes and not kernels.have_same_cores(processes, self._processes):
            before, self.users = self.users, _users(processes)
            self._since_ns.update(dict.fromkeys(self.users.keys() - before.keys(), now_ns))
            self.working = {core: CoreAllocation(pids, 0.0) for core, pids in self.users.items()}
        self._processes = processes


def _users(processes: Sequence[ProcessReading]) -> dict[int, tuple[int, ...]]:
    users: dict[int, tuple[int, ...]] = {}
    for process in sorted(processes, key=lambda process: process.pid):
        for core_id in process.cores:
            users[core_id] = (*users.get(core_id, ()), process.pid)
    return users
