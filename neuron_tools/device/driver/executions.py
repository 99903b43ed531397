"""How often the executables of one session ran on each core, and what that adds up to."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.device.driver.latency import bucket_of
from neuron_tools.device.driver.usage import COUNTERS, ExecutableUsage
from neuron_tools.frozen import frozen

MOST_PHYSICAL_CORES = 2
"""Of a logical NeuronCore."""


@frozen
class Model:
    """One executable on one core, as the process's file tells it."""

    session: int
    number: int
    name: str
    index: int
    execution_count: int
    device_ns: int


class SessionExecutions:
    """The executables of one session. Not to be shared by threads without a lock.

    Args:
        session: Its number in the process.
        core_count: Cores that the process sees.
    """

    def __init__(self, session: int, core_count: int) -> None:
        self.session = session
        self._usages: dict[int, ExecutableUsage] = {}
        self._counters = np.zeros((0, MOST_PHYSICAL_CORES, len(COUNTERS)), np.int64)
        self._buckets = np.zeros(0, np.int64)
        self._counts = np.zeros((core_count, 0), np.int64)

    def define(self, number: int, usage: ExecutableUsage) -> None:
        """Says what an execution of an executable adds."""
        self._usages[number] = usage
        self._grow(number + 1)
        self._counters[number, : len(usage.counters)] = usage.counters
        self._buckets[number] = bucket_of(usage.duration_ns)

    def add(self, index: int, counts: Ints) -> Added:
        """Counts executions of a core; gives back what they add."""
        self._grow(len(counts))
        size = len(counts)
        known = self._buckets[:size] >= 0
        counts = np.where(known, counts, 0)
        new = np.flatnonzero((counts > 0) & (self._counts[index, :size] == 0))
        self._counts[index, :size] += counts
        return Added(
            counters=np.tensordot(counts, self._counters[:size], 1),
            latency=np.bincount(np.where(known, self._buckets[:size], 0), counts).astype(np.int64),
            first_runs=[self._usages[number] for number in new.tolist()],
        )

    def models(self, most: int) -> list[Model]:
        """The executables that ran most often."""
        flat = self._counts.ravel()
        chosen = np.argsort(-flat, kind="stable")[:most]
        return [self._model(*divmod(int(at), self._counts.shape[1])) for at in chosen if flat[at] > 0]

    def _model(self, index: int, number: int) -> Model:
        usage, count = self._usages[number], int(self._counts[index, number])
        return Model(self.session, number, usage.name, index, count, count * usage.duration_ns)

    def _grow(self, size: int) -> None:
        """Makes room for executables below `size`; twice as much as needed, so that growing stays rare."""
        have = len(self._buckets)
        if size <= have:
            return
        more = max(2 * size - have, 64)
        empty = np.zeros((more, *self._counters.shape[1:]), np.int64)
        self._counters = np.concatenate([self._counters, empty])
        self._buckets = np.concatenate([self._buckets, np.full(more, -1, np.int64)])
        self._counts = np.hstack([self._counts, np.zeros((len(self._counts), more), np.int64)])


@frozen
class Added:
    """What some executions add to a core.

    Attributes:
        counters: (MOST_PHYSICAL_CORES, len(COUNTERS)) int64.
        latency: (buckets,) int64, executions by bucket of their time on the device.
        first_runs: Executables that had not run on the core before.
    """

    counters: Ints
    latency: Ints
    first_runs: list[ExecutableUsage] = field(default_factory=list)
