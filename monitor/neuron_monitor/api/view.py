"""Samples with their rates, as the exporter and the screens show them; remembers where rates count from."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from neuron_monitor.api.allocation import AllocationWatch, CoreAllocation
from neuron_monitor.api.rates import (
    CoreRates,
    latency_percentiles,
    logical_rates,
    physical_rates,
    process_rates,
)
from neuron_monitor.api.readings import CoreReading, ProcessReading
from neuron_monitor.api.records import TreeReading
from neuron_monitor.api.sample import Sample
from neuron_tools.frozen import frozen

LATENCY_WINDOW_NS = 10_000_000_000


@frozen
class ProcessView:
    """What the exporter and the screens show of one process.

    Attributes:
        rates: By logical core.
        device_latency: Seconds by percentile over the last ten seconds; None without executions.
        total_latency: The same as the runtime sees it.
        user_share: Processor time in user mode, as a share of the host's processors.
        system_share: The same in the kernel.
    """

    process: ProcessReading
    rates: Mapping[int, CoreRates]
    device_latency: dict[int, float] | None
    total_latency: dict[int, float] | None
    user_share: float
    system_share: float


@frozen
class View:
    """One sample with all rates since the one before."""

    before: Sample
    sample: Sample
    processes: tuple[ProcessView, ...]
    cores: dict[int, CoreRates]
    allocation: Mapping[int, CoreAllocation]


class Windows:
    """Turns samples into views.

    Args:
        first: The sample from which the first rates count.
    """

    def __init__(self, first: Sample) -> None:
        self._before = first
        self._host_before = first
        self._host_current = first
        self._history: deque[tuple[int, dict[int, ProcessReading]]] = deque([_remember(first)])
        self._rates: dict[int, tuple[ProcessReading, dict[int, CoreRates]]] = {
            process.pid: (process, process_rates(process, process, 0)) for process in first.tree.processes
        }
        self._cores: dict[int, CoreRates] = {}
        self._watch = AllocationWatch()

    def advance(self, sample: Sample) -> View:
        """The view of a sample, which the next view's rates count from."""
        self._follow_host(sample)
        if sample.taken_ns > self._before.taken_ns:
            self._follow_cores(sample)
        self._rates = {process.pid: self._process_rates(process, sample) for process in sample.tree.processes}
        while self._history and sample.taken_ns - self._history[0][0] > LATENCY_WINDOW_NS:
            self._history.popleft()
        view = View(
            before=self._host_before,
            sample=sample,
            processes=tuple(self._view(process, sample) for process in sample.tree.processes),
            cores=self._cores,
            allocation=self._watch.update(sample.tree),
        )
        self._history.append(_remember(sample))
        self._before = sample
        return view

    def _follow_host(self, sample: Sample) -> None:
        if sample.host_taken_ns > self._host_current.host_taken_ns:
            self._host_before, self._host_current = self._host_current, sample

    def _follow_cores(self, sample: Sample) -> None:
        """Rates of the physical cores; where a simulated core's clock stood still, the last ones hold."""
        passed_ns = sample.taken_ns - self._before.taken_ns
        before, after = _cores(self._before.tree), _cores(sample.tree)
        fresh = physical_rates(before, after, passed_ns)
        old = {core.id: core.elapsed_ns for core in before}
        used = {core_id for process in sample.tree.processes for core_id in process.cores}
        self._cores = {
            core.id: self._cores.get(core.id, fresh[core.id])
            if core.elapsed_ns is not None and old.get(core.id) == core.elapsed_ns and core.id in used
            else fresh[core.id]
            for core in after
        }

    def _process_rates(
        self, process: ProcessReading, sample: Sample
    ) -> tuple[ProcessReading, dict[int, CoreRates]]:
        known = self._rates.get(process.pid)
        if known is None:
            return process, process_rates(process, process, 0)
        before, rates = known
        if process.elapsed_ns is None:
            return process, process_rates(before, process, sample.taken_ns - self._before.taken_ns)
        if process.published_at_s == before.published_at_s:
            return before, rates
        return process, process_rates(before, process, 0)

    def _view(self, process: ProcessReading, sample: Sample) -> ProcessView:
        earlier = next((known[process.pid] for _, known in self._history if process.pid in known), process)
        user, system = self._processor_share(process.pid)
        return ProcessView(
            process=process,
            rates=logical_rates(self._rates[process.pid][1], process.logical_core_size),
            device_latency=latency_percentiles(earlier, process, "device"),
            total_latency=latency_percentiles(earlier, process, "total"),
            user_share=user,
            system_share=system,
        )

    def _processor_share(self, pid: int) -> tuple[float, float]:
        before, after = self._host_before, self._host_current
        old, new = before.process_times.get(pid), after.process_times.get(pid)
        seconds = (after.host_taken_ns - before.host_taken_ns) / 1e9
        if old is None or new is None or seconds <= 0 or after.host is None:
            return 0.0, 0.0
        available_s = seconds * max(1, len(after.host.cpu_ticks))
        return (
            min(1.0, max(0.0, (new.user_s - old.user_s) / available_s)),
            min(1.0, max(0.0, (new.system_s - old.system_s) / available_s)),
        )


def _remember(sample: Sample) -> tuple[int, dict[int, ProcessReading]]:
    return sample.taken_ns, {process.pid: process for process in sample.tree.processes}


def _cores(tree: TreeReading) -> list[CoreReading]:
    return [core for device in tree.devices for core in device.cores]
