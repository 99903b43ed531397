"""The rules: each looks at every view and says what it finds. They keep what they need of earlier views."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, Protocol

from neuron_monitor.api import layout
from neuron_monitor.api.latency import PERCENTILES
from neuron_monitor.api.view import ProcessView, View
from neuron_monitor.report.executions import ERROR_STATUSES, summed, total_statuses
from neuron_monitor.report.memory import logical_memory
from neuron_monitor.watch.alert import Alert, of_process
from neuron_tools.frozen import frozen

MOST_REMEMBERED = 600
PARTS = 4


@frozen
class Thresholds:
    """When the rules are met.

    Attributes:
        idle_s: A held core has done nothing for so long.
        latency_factor: p99 is so many times its median until now, of at least `latency_looks` looks.
        exhausted_s: Device memory that goes on growing as in the last `trend_s` is full within so long.
        throttled: Share of the time in which the Tensor engine ran slowed down.
        compiled: So many new executables within a minute, after the first minute.
        straggling_factor: The engines of one rank work so many times as long as those of the other ranks.
        straggling_s: For so long at least.
    """

    idle_s: float = 900.0
    latency_factor: float = 1.5
    latency_looks: int = 20
    exhausted_s: float = 900.0
    trend_s: float = 30.0
    throttled: float = 0.1
    compiled: int = 5
    straggling_factor: float = 1.5
    straggling_s: float = 10.0


class Rule(Protocol):
    """One rule."""

    def look(self, view: View) -> Iterator[Alert]:
        """What it finds in the next view."""


def _forget(view: View, *known: dict[int, Any]) -> None:
    """Drop what is known of processes that are gone."""
    pids = {each.process.pid for each in view.processes}
    for each in known:
        for pid in each.keys() - pids:
            del each[pid]


@dataclass
class Errors:
    """Executions failed since the last look."""

    _counts: dict[int, int] = field(default_factory=dict)

    def look(self, view: View) -> Iterator[Alert]:
        """What it finds in the next view."""
        _forget(view, self._counts)
        for each in view.processes:
            kinds = summed(total_statuses(each.process), ERROR_STATUSES)
            count = sum(kinds.values())
            more = count - self._counts.get(each.process.pid, count)
            self._counts[each.process.pid] = count
            if more > 0:
                names = ", ".join(name for name, number in kinds.items() if number)
                yield of_process("NeuronExecutionErrors", f"had {more} failed executions: {names}", each)


@dataclass
class IdleCores:
    """A process holds cores and executes nothing on any."""

    idle_s: float

    def look(self, view: View) -> Iterator[Alert]:
        """What it finds in the next view."""
        for each in view.processes:
            idle = [view.allocation[core].idle_s for core in each.process.cores if core in view.allocation]
            if idle and min(idle) >= self.idle_s:
                what = f"holds {len(idle)} NeuronCores and has executed nothing for {min(idle):.0f} s"
                yield of_process("NeuronCoreAllocatedIdle", what, each)


@dataclass
class Latency:
    """p99 is well above what it was."""

    factor: float
    looks: int
    _known: dict[int, deque[float]] = field(default_factory=dict)

    def look(self, view: View) -> Iterator[Alert]:
        """What it finds in the next view."""
        _forget(view, self._known)
        for each in view.processes:
            if not each.total_latency:
                continue
            now_s = each.total_latency[99 if 99 in each.total_latency else PERCENTILES[-1]]
            known = self._known.setdefault(each.process.pid, deque(maxlen=MOST_REMEMBERED))
            usual_s = median(known) if len(known) >= self.looks else float("inf")
            known.append(now_s)
            if now_s > self.factor * usual_s:
                what = f"has a p99 of {1e3 * now_s:.3g} ms, usually {1e3 * usual_s:.3g} ms"
                yield of_process("NeuronLatencyRegression", what, each)


@dataclass
class MemoryTrend:
    """Device memory that a process holds grows towards the end of the device's."""

    exhausted_s: float
    trend_s: float
    _known: dict[int, deque[tuple[float, int]]] = field(default_factory=dict)

    def look(self, view: View) -> Iterator[Alert]:
        """What it finds in the next view."""
        _forget(view, self._known)
        taken_s = view.sample.taken_ns / 1e9
        for each in view.processes:
            held = sum(sum(parts.values()) for parts in logical_memory(each.process).values())
            known = self._known.setdefault(each.process.pid, deque(maxlen=MOST_REMEMBERED))
            known.append((taken_s, held))
            while taken_s - known[0][0] > 2 * self.trend_s:
                known.popleft()
            left_s = self._left_s(known, self._free_bytes(each, view))
            if left_s <= self.exhausted_s:
                what = f"fills the device's memory in {left_s / 60:.0f} min at this rate"
                yield of_process("NeuronDeviceMemoryNearlyFull", what, each)

    def _left_s(self, known: deque[tuple[float, int]], free_bytes: int | None) -> float:
        """Time until nothing is free; infinite where what is held always does not grow from part to part."""
        passed_s = known[-1][0] - known[0][0]
        if free_bytes is None or passed_s < self.trend_s:
            return float("inf")
        held = [size for _, size in known]
        size = max(1, len(held) // PARTS)
        least = [min(held[start : start + size]) for start in range(0, size * PARTS, size)]
        if any(later <= earlier for earlier, later in pairwise(least)):
            return float("inf")
        return free_bytes * passed_s * (PARTS - 1) / PARTS / (least[-1] - least[0])

    def _free_bytes(self, each: ProcessView, view: View) -> int | None:
        """What is free on the fullest of the process's devices; None where its size is not told."""
        used = {core.device for core in each.process.cores.values()}
        free = [
            device.facts.memory_bytes - sum(core.device_memory_bytes for core in device.cores)
            for device in view.sample.tree.devices
            if device.facts.index in used and device.facts.memory_bytes
        ]
        return max(0, min(free)) if free else None


@dataclass
class Throttling:
    """The Tensor engine of a process ran slowed down."""

    share: float

    def look(self, view: View) -> Iterator[Alert]:
        """What it finds in the next view."""
        for each in view.processes:
            most = max((rates.throttled or 0.0 for rates in each.rates.values()), default=0.0)
            if most > self.share:
                what = f"has its Tensor engine slowed down for {100 * most:.0f} % of the time"
                yield of_process("NeuronThrottled", what, each)


@dataclass
class BitErrors:
    """A device's memory lost data."""

    _counts: dict[int, int] = field(default_factory=dict)

    def look(self, view: View) -> Iterator[Alert]:
        """What it finds in the next view."""
        for device in view.sample.tree.devices:
            index = device.facts.index
            count = sum(number for name, number in device.ecc.items() if "uncorrected" in name)
            more = count - self._counts.get(index, count)
            self._counts[index] = count
            if more > 0:
                what = f"Device {index} had {more} bit errors that could not be corrected"
                yield Alert("NeuronUncorrectedBitErrors", what, {"neuron_device_index": str(index)})


@dataclass
class Recompilation:
    """A process goes on compiling after its first minute."""

    count: int
    minute_s: float = 60.0
    _known: dict[int, set[str]] = field(default_factory=dict)
    _since_s: dict[int, float] = field(default_factory=dict)
    _new_s: dict[int, deque[float]] = field(default_factory=dict)

    def look(self, view: View) -> Iterator[Alert]:
        """What it finds in the next view."""
        _forget(view, self._known, self._since_s, self._new_s)
        taken_s = view.sample.taken_ns / 1e9
        for each in view.processes:
            pid = each.process.pid
            known = self._known.setdefault(pid, set())
            new = {model.uuid for model in each.process.models} - known
            known |= new
            recent = self._new_s.setdefault(pid, deque(maxlen=MOST_REMEMBERED))
            if taken_s - self._since_s.setdefault(pid, taken_s) >= self.minute_s:
                recent.extend([taken_s] * len(new))
            while recent and taken_s - recent[0] > self.minute_s:
                recent.popleft()
            if len(recent) >= self.count:
                what = f"compiled {len(recent)} graphs in the last minute"
                yield of_process("NeuronRecompilation", what, each)


@dataclass
class Stragglers:
    """The engines of one rank of a job work much longer than those of the other ranks, which wait for it.

    Time in which a rank waits for others keeps its core busy, but not its engines.
    """

    factor: float
    over_s: float
    _known: dict[int, deque[tuple[float, int]]] = field(default_factory=dict)

    def look(self, view: View) -> Iterator[Alert]:
        """What it finds in the next view."""
        _forget(view, self._known)
        taken_s = view.sample.taken_ns / 1e9
        jobs: dict[str, list[tuple[int, ProcessView]]] = {}
        for each in view.processes:
            worked_ns = self._worked_ns(each, taken_s)
            if each.process.rank is not None and worked_ns is not None:
                jobs.setdefault(each.process.command, []).append((worked_ns, each))
        for ranks in jobs.values():
            most_ns, slowest = max(ranks, key=lambda rank: rank[0])
            others = [worked_ns for worked_ns, each in ranks if each is not slowest]
            usual_ns = median(others) if others else 0
            if usual_ns and most_ns > self.factor * usual_ns:
                times = f"{most_ns / usual_ns:.2g} times as long as those of the other ranks"
                what = f"is rank {slowest.process.rank}, whose engines work {times}"
                yield of_process("NeuronStraggler", what, slowest)

    def _worked_ns(self, each: ProcessView, taken_s: float) -> int | None:
        """Time in which engines worked since `over_s` ago; None where it is not watched for so long."""
        cores = each.process.cores.values()
        engines = sum(max(core.counts[layout.ENGINE_SLICE]) for core in cores)
        known = self._known.setdefault(each.process.pid, deque(maxlen=MOST_REMEMBERED))
        known.append((taken_s, engines))
        while len(known) > 1 and taken_s - known[1][0] >= self.over_s:
            known.popleft()
        return engines - known[0][1] if taken_s - known[0][0] >= self.over_s else None


def all_rules(thresholds: Thresholds) -> list[Rule]:
    """Every rule."""
    return [
        Errors(),
        IdleCores(thresholds.idle_s),
        Latency(thresholds.latency_factor, thresholds.latency_looks),
        MemoryTrend(thresholds.exhausted_s, thresholds.trend_s),
        Throttling(thresholds.throttled),
        BitErrors(),
        Recompilation(thresholds.compiled),
        Stragglers(thresholds.straggling_factor, thresholds.straggling_s),
    ]


@dataclass
class Watcher:
    """Holds views against all rules; what was told rests.

    Attributes:
        rest_s: The same is not told again within so long.
    """

    rules: list[Rule]
    rest_s: float
    _told_s: dict[tuple[str, ...], float] = field(default_factory=dict)

    def look(self, view: View) -> list[Alert]:
        """The alerts of the next view."""
        taken_s = view.sample.taken_ns / 1e9
        found = [alert for rule in self.rules for alert in rule.look(view)]
        due = [alert for alert in found if taken_s - self._told_s.get(alert.key, -1e18) >= self.rest_s]
        self._told_s = {key: told_s for key, told_s in self._told_s.items() if taken_s - told_s < self.rest_s}
        self._told_s.update({alert.key: taken_s for alert in due})
        return due
