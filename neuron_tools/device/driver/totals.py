"""Adds up what the runtimes of a process tell, core by core."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neuron_tools.device.driver.counts import CoreCounts, Memory
from neuron_tools.device.driver.latency import bucket_of, upper_bound_ns
from neuron_tools.device.driver.nodes import ENGINES, TRAFFIC
from neuron_tools.device.driver.source import Activity, ActivitySource
from neuron_tools.device.driver.usage import COUNTERS, ExecutableUsage

MOST_MODELS = 200
_NO_COUNTERS = np.zeros(len(COUNTERS), np.int64)


@dataclass(slots=True)
class _Core:
    """One core of the process so far. `executions` counts by session and executable."""

    status: Counter[str] = field(default_factory=Counter)
    counters: npt.NDArray[np.int64] = field(default_factory=_NO_COUNTERS.copy)
    executions: Counter[tuple[int, int]] = field(default_factory=Counter)
    device_latency: Counter[int] = field(default_factory=Counter)
    total_latency: Counter[int] = field(default_factory=Counter)
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    busy_ns: int = 0
    tensors: Memory = field(default_factory=Memory)
    constants: Memory = field(default_factory=Memory)
    scratchpad: Memory = field(default_factory=Memory)
    used: bool = False


class Totals:
    """What this process has done on each of its cores since it started. Safe to use from several threads.

    Executables are numbered anew in each session (a recording, say): `begin_session` and `end_session` keep
    them apart.
    """

    def __init__(self, source: ActivitySource) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._cores = [_Core() for _ in range(source.device_count())]
        self._session = 0
        self._usages: dict[tuple[int, int], ExecutableUsage] = {}
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
            self._session += 1
            self._elapsed_before_ns += self._elapsed_ns
            self._elapsed_ns = 0

    def define(self, number: int, usage: ExecutableUsage) -> None:
        """Says what an execution of an executable of this session adds."""
        with self._lock:
            self._usages[self._session, number] = usage

    def update(self) -> None:
        """Asks the runtime what it did."""
        with self._lock:
            self._elapsed_ns = max(self._elapsed_ns, self._source.now_ns())
            for index, core in enumerate(self._cores):
                self._add(core, self._source.take(index))
                core.tensors = self._source.tensors(index)
                core.used = core.used or core.tensors.total > 0 or bool(core.executions or core.status)

    def counts(self) -> dict[int, CoreCounts]:
        """The counts of each core that was used, by device index."""
        with self._lock:
            return {index: self._counts(index) for index, core in enumerate(self._cores) if core.used}

    def models(self, running: bool) -> list[dict[str, object]]:
        """The compiled computations that ran most often."""
        with self._lock:
            rows = [
                (count, index, *key)
                for index, core in enumerate(self._cores)
                for key, count in core.executions.items()
                if key in self._usages
            ]
            rows.sort(key=lambda row: (-row[0], *row[1:]))
            return [self._model(*row, running=running) for row in rows[:MOST_MODELS]]

    def _model(
        self, count: int, index: int, session: int, number: int, *, running: bool
    ) -> dict[str, object]:
        usage = self._usages[session, number]
        return {
            "name": usage.name,
            "uuid": f"{session:08x}{number:024x}",
            "model_id": number,
            "core": index,
            "execution_count": count,
            "device_ns": count * usage.duration_ns,
            "is_running": running and session == self._session,
        }

    def _add(self, core: _Core, activity: Activity) -> None:
        ended = sum(activity.executions.values()) + activity.untimed_executions
        for name, count in (
            ("success", ended),
            ("exec_bad_input", activity.failed_executions),
            ("resource_error", activity.refused_allocations),
        ):
            if count:
                core.status[name] += count
        for number, count in activity.executions.items():
            self._add_executions(core, number, count)
        for bucket, count in activity.latency.items():
            core.total_latency[bucket] += count
        core.bytes_to_device += activity.bytes_to_device
        core.bytes_to_host += activity.bytes_to_host
        core.busy_ns += activity.busy_ns

    def _add_executions(self, core: _Core, number: int, count: int) -> None:
        key = (self._session, number)
        usage = self._usages.get(key)
        if usage is None:
            return
        if key not in core.executions:
            core.constants = _more(core.constants, usage.constant_bytes)
            core.scratchpad = _at_least(core.scratchpad, usage.scratchpad_bytes)
        core.executions[key] += count
        core.counters += count * usage.counters
        core.device_latency[bucket_of(usage.duration_ns)] += count

    def _counts(self, index: int) -> CoreCounts:
        core = self._cores[index]
        counters = dict(zip(COUNTERS, core.counters.tolist()))
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
            inference_count=sum(core.status.values()) - core.status["resource_error"],
            model_load_count=len(core.executions),
            flop_count=counters["flop_count"],
            busy_ns=core.busy_ns,
            elapsed_ns=self.elapsed_ns,
            throttled_ns=counters["throttled_ns"],
            engine_busy_ns={name: counters[name] for name in ENGINES},
            traffic=traffic,
            device_memory={name: held for name, held in memory.items() if held.total},
            latency={"device": _bounds(core.device_latency), "total": _bounds(core.total_latency)},
        )


def _more(held: Memory, bytes_: int) -> Memory:
    present = held.present + bytes_
    return Memory(held.total + bytes_, present, max(held.peak, present))


def _at_least(held: Memory, bytes_: int) -> Memory:
    """Executables share one scratchpad: as large as the largest needs."""
    return _more(held, max(bytes_ - held.present, 0))


def _bounds(counts: Counter[int]) -> dict[int, int]:
    return {upper_bound_ns(bucket): count for bucket, count in sorted(counts.items())}
