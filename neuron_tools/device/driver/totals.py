"""Adds up what a runtime of this process tells, core by core."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.device.driver.counts import CoreCounts, Memory
from neuron_tools.device.driver.executions import MOST_PHYSICAL_CORES, Model, SessionExecutions
from neuron_tools.device.driver.latency import BUCKETS, upper_bound_ns
from neuron_tools.device.driver.nodes import ENGINES, TRAFFIC
from neuron_tools.device.driver.source import Activity, ActivitySource
from neuron_tools.device.driver.usage import COUNTERS, ExecutableUsage

MOST_MODELS = 64
_UPPER_NS = [upper_bound_ns(bucket) for bucket in range(BUCKETS)]


def _zeros(count: int) -> Ints:
    return np.zeros(count, np.int64)


@dataclass(slots=True)
class _Core:
    """One core of the process so far."""

    status: Counter[str] = field(default_factory=Counter)
    counters: Ints = field(default_factory=lambda: np.zeros((MOST_PHYSICAL_CORES, len(COUNTERS)), np.int64))
    device_latency: Ints = field(default_factory=lambda: _zeros(BUCKETS))
    total_latency: Ints = field(default_factory=lambda: _zeros(BUCKETS))
    model_count: int = 0
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    busy_ns: int = 0
    tensors: Memory = field(default_factory=Memory)
    constants: Memory = field(default_factory=Memory)
    scratchpad: Memory = field(default_factory=Memory)

    @property
    def is_used(self) -> bool:
        """Whether the process did anything with the core."""
        return self.tensors.total > 0 or bool(self.status)


class Totals:
    """What this process has done on each of its cores since it started. Safe to use from several threads.

    Executables are numbered anew in each session (a recording, say): `begin_session` and `end_session` keep
    them apart.
    """

    def __init__(self, source: ActivitySource) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._cores = [_Core() for _ in range(source.device_count())]
        self._session = SessionExecutions(0, len(self._cores))
        self._past_models: list[Model] = []
        self._elapsed_before_ns = 0
        self._elapsed_ns = 0

    @property
    def elapsed_ns(self) -> int:
        """Simulated time of all sessions."""
        return self._elapsed_before_ns + self._elapsed_ns

    def begin_session(self) -> None:
        """What ran until now belongs to no executable of the session that begins."""
        self.end_session()

    def end_session(self) -> None:
        """Counts what ran until now, and forgets the executables."""
        self.update()
        with self._lock:
            self._past_models = self._best_models()
            self._session = SessionExecutions(self._session.session + 1, len(self._cores))
            self._elapsed_before_ns += self._elapsed_ns
            self._elapsed_ns = 0

    def define(self, number: int, usage: ExecutableUsage) -> None:
        """Says what an execution of an executable of this session adds."""
        with self._lock:
            self._session.define(number, usage)

    def update(self) -> None:
        """Asks the runtime what it did."""
        with self._lock:
            self._elapsed_ns = max(self._elapsed_ns, self._source.now_ns())
            for index, core in enumerate(self._cores):
                self._add(index, core, self._source.take(index))
                core.tensors = self._source.tensors(index)

    def counts(self) -> dict[int, CoreCounts]:
        """The counts of each core that was used, by device index."""
        with self._lock:
            return {
                index: self._counts(index, core) for index, core in enumerate(self._cores) if core.is_used
            }

    def second_counts(self) -> dict[int, CoreCounts]:
        """The same of the second physical core of each, for which the first counts what they do together."""
        with self._lock:
            return {
                index: self._second_counts(index, core)
                for index, core in enumerate(self._cores)
                if core.is_used
            }

    def models(self) -> list[Model]:
        """The executables that ran most often, those of past sessions too."""
        with self._lock:
            return self._best_models()

    @property
    def session(self) -> int:
        """The number of the session that runs."""
        return self._session.session

    def _best_models(self) -> list[Model]:
        models = [*self._past_models, *self._session.models(MOST_MODELS)]
        return sorted(models, key=lambda model: -model.execution_count)[:MOST_MODELS]

    def _add(self, index: int, core: _Core, activity: Activity) -> None:
        for name, count in (
            ("success", int(activity.executions.sum()) + activity.untimed_executions),
            ("exec_bad_input", activity.failed_executions),
            ("resource_error", activity.refused_allocations),
        ):
            if count:
                core.status[name] += count
        if activity.executions.any():
            self._add_executions(index, core, activity.executions)
        core.total_latency[: len(activity.latency)] += activity.latency
        core.bytes_to_device += activity.bytes_to_device
        core.bytes_to_host += activity.bytes_to_host
        core.busy_ns += activity.busy_ns

    def _add_executions(self, index: int, core: _Core, counts: Ints) -> None:
        added = self._session.add(index, counts)
        core.counters += added.counters
        core.device_latency[: len(added.latency)] += added.latency
        core.model_count += len(added.first_runs)
        for usage in added.first_runs:
            core.constants = _more(core.constants, usage.constant_bytes)
            core.scratchpad = _at_least(core.scratchpad, usage.scratchpad_bytes)

    def _counts(self, index: int, core: _Core) -> CoreCounts:
        counters = dict(zip(COUNTERS, core.counters[0].tolist()))
        traffic = {name: counters.get(name, 0) for name in TRAFFIC}
        traffic |= {"host_to_device_bytes": core.bytes_to_device, "device_to_host_bytes": core.bytes_to_host}
        memory = {
            "tensors": core.tensors,
            "constants": core.constants,
            "model_shared_scratchpad": core.scratchpad,
        }
        return CoreCounts(
            index=index,
            status=dict(core.status),
            inference_count=core.status["success"] + core.status["exec_bad_input"],
            model_load_count=core.model_count,
            flop_count=counters["flop_count"],
            busy_ns=core.busy_ns,
            elapsed_ns=self.elapsed_ns,
            throttled_ns=counters["throttled_ns"],
            engine_busy_ns={name: counters[name] for name in ENGINES},
            traffic=traffic,
            device_memory={name: held for name, held in memory.items() if held.total},
            latency={"device": _bounds(core.device_latency), "total": _bounds(core.total_latency)},
        )

    def _second_counts(self, index: int, core: _Core) -> CoreCounts:
        counters = dict(zip(COUNTERS, core.counters[1].tolist()))
        return CoreCounts(
            index=index,
            flop_count=counters["flop_count"],
            busy_ns=core.busy_ns if core.counters[1].any() else 0,
            elapsed_ns=self.elapsed_ns,
            throttled_ns=counters["throttled_ns"],
            engine_busy_ns={name: counters[name] for name in ENGINES},
            traffic={name: counters.get(name, 0) for name in TRAFFIC},
        )


def _more(held: Memory, bytes_: int) -> Memory:
    present = held.present + bytes_
    return Memory(held.total + bytes_, present, max(held.peak, present))


def _at_least(held: Memory, bytes_: int) -> Memory:
    """Executables share one scratchpad: as large as the largest needs."""
    return _more(held, max(bytes_ - held.present, 0))


def _bounds(counts: Ints) -> dict[int, int]:
    used = np.flatnonzero(counts)
    return dict(zip(map(_UPPER_NS.__getitem__, used.tolist()), counts[used].tolist()))
