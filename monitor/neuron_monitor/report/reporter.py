"""Makes reports: remembers where each group's period began, and what each process counted then.

A report is for `orjson.dumps`: parts that did not change since the last are in it as text made before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from operator import is_
from typing import Any

import orjson

from neuron_monitor.api.allocation import AllocationWatch
from neuron_monitor.api.kubernetes import PodWatch
from neuron_monitor.api.rates import UtilizationWatch
from neuron_monitor.api.readings import DeviceReading, ProcessReading, TreeReading
from neuron_monitor.api.sample import Sample
from neuron_monitor.report import system_groups
from neuron_monitor.report.config import KUBERNETES_GROUP, Configuration, Group, RuntimeGroups
from neuron_monitor.report.memo import PERIOD, Memo, Same
from neuron_monitor.report.memory import memory_token, memory_used
from neuron_monitor.report.process_groups import (
    NO_EXECUTIONS,
    ProcessWindow,
    execution_stats,
    make_window,
    neuroncore_activity,
    neuroncore_counters,
    runtime_vcpu_usage,
)
from neuron_monitor.report.spelling import Keys, Spelling, keys_of

Report = dict[str, Any]
FAULTS_NAMED = 3
GroupKey = tuple[str, str]
TIME_GROUP = "neuron_runtime_vcpu_usage"


@dataclass(slots=True)
class _Mark:
    """A group's last collection.

    Attributes:
        sample: What it was made of.
        processes: The processes of that sample by pid.
        windows: Of each process, the last window in which it told something.
    """

    sample: Sample
    processes: dict[int, ProcessReading]
    windows: dict[int, ProcessWindow]


class Reporter:
    """Makes the report's groups out of samples.

    Args:
        configuration: Which groups there are.
        first: A sample from which the first periods count.
        spelling: How keys are spelt where AWS's documentation and hosts differ.
        pods: Finds the pods of processes; None leaves `neuron_k8s_info` out.
    """

    def __init__(
        self,
        configuration: Configuration,
        first: Sample,
        *,
        spelling: Spelling = "observed",
        pods: PodWatch | None = None,
    ) -> None:
        self._configuration = configuration
        self._spelling = spelling
        self._pods = pods
        self._watch = AllocationWatch()
        self._utilization = UtilizationWatch()
        self._watch.update(first.tree)
        self._first = _Mark(first, _by_pid(first.tree), {})
        self._marks: dict[GroupKey, _Mark] = {}
        self._memo = Memo()
        self._status: tuple[int, TreeReading, Report] | None = None

    def report(self, sample: Sample, due: Collection[Group] | None = None) -> Report:
        """The report of a sample with the groups that are due; with all of them where `due` is None."""
        tree = sample.tree
        architecture = tree.devices[0].facts.architecture if tree.devices else ""
        keys = keys_of(self._spelling, architecture)
        report: Report = {
            "neuron_runtime_data": self._runtimes(sample, due, keys),
            "system_data": self._system(sample, due),
            "instance_info": system_groups.instance_info(sample.instance),
            "neuron_hardware_info": system_groups.neuron_hardware_info(tree, keys),
        }
        if self._pods is not None:
            report[KUBERNETES_GROUP] = self._timed(("system", KUBERNETES_GROUP), sample, self._kubernetes)
        return report

    def _runtimes(self, sample: Sample, due: Collection[Group] | None, keys: Keys) -> list[Report]:
        """One entry for each process of which some group is due."""
        groups = [(runtime, _due(runtime.groups, due)) for runtime in self._configuration.runtimes]
        marks = {group.name: self._mark(("runtime", group.name)) for _, each in groups for group in each}
        if not marks:
            return []
        windows = _WindowMaker(sample)
        entries = [
            self._process_entry(process, _groups_of(process, groups), sample, marks, windows, keys)
            for process in sample.tree.processes
        ]
        processes = _by_pid(sample.tree)
        for name, mark in marks.items():
            self._marks["runtime", name] = _Mark(sample, processes, windows.shown(mark))
        self._memo.forget(processes)
        return entries

    def _process_entry(
        self,
        process: ProcessReading,
        names: list[str],
        sample: Sample,
        marks: dict[str, _Mark],
        windows: _WindowMaker,
        keys: Keys,
    ) -> Any:
        """One process; where it told nothing since its groups' last reports, only the periods are new."""
        told_nothing = all(marks[name].processes.get(process.pid) is process for name in names)
        if not told_nothing:
            report = {
                name: {
                    "period": (sample.taken_ns - marks[name].sample.taken_ns) / 1e9,
                    **self._process_group(name, process, sample, marks[name], windows, keys),
                }
                for name in names
            }
            return _entry(process, report, keys)
        times = self._process_time(process.pid, sample, marks[TIME_GROUP]) if TIME_GROUP in marks else None

        def make() -> Report:
            report = {
                name: {
                    "period": PERIOD,
                    **self._process_group(name, process, sample, marks[name], windows, keys),
                }
                for name in names
            }
            return _entry(process, report, keys)

        template = self._memo.template((process.pid, "entry"), (Same(process), Same(times), names), make)
        return template.fill([(sample.taken_ns - marks[name].sample.taken_ns) / 1e9 for name in names])

    def _process_group(
        self,
        name: str,
        process: ProcessReading,
        sample: Sample,
        mark: _Mark,
        windows: _WindowMaker,
        keys: Keys,
    ) -> Report:
        if name == "memory_used":
            token = memory_token(process)
            content = self._memo.get((process.pid, name), token, lambda: memory_used(process, keys))
        elif name == TIME_GROUP:
            content = self._process_time(process.pid, sample, mark)
        else:
            window = windows.make(process, mark)
            content = self._window_group(name, window, windows, sample, mark, keys)
        error = (
            "cores are shared with other processes: counts are of all of them" if process.is_shared else ""
        )
        return {**content, "error": error}

    def _window_group(
        self,
        name: str,
        window: ProcessWindow,
        windows: _WindowMaker,
        sample: Sample,
        mark: _Mark,
        keys: Keys,
    ) -> Report:
        if name == "execution_stats":
            if window.before is window.after:
                return NO_EXECUTIONS
            return execution_stats(window)
        shown = windows.shown_window(window, mark)
        if name == "neuroncore_activity":
            return neuroncore_activity(shown)
        devices = sample.tree.devices
        return neuroncore_counters(shown, keys, devices[0].facts.core_architecture if devices else "")

    def _process_time(self, pid: int, sample: Sample, mark: _Mark) -> Report:
        """Processor time since the mark; the last figure where the host was not read anew since."""
        if sample.host_taken_ns == mark.sample.host_taken_ns:
            return self._memo.last((pid, TIME_GROUP)) or runtime_vcpu_usage(None, None, 0, 1)
        seconds = (sample.host_taken_ns - mark.sample.host_taken_ns) / 1e9
        processors = len(sample.host.cpu_ticks) if sample.host else 1
        before, after = mark.sample.process_times.get(pid), sample.process_times.get(pid)
        return self._memo.get(
            (pid, TIME_GROUP),
            sample.host_taken_ns,
            lambda: runtime_vcpu_usage(before, after, seconds, processors),
        )

    def _system(self, sample: Sample, due: Collection[Group] | None) -> Report:
        report: Report = {}
        makers = {
            "vcpu_usage": self._vcpu_usage,
            "memory_info": self._memory_info,
            "neuron_hw_counters": self._hw_counters,
            "neuron_device_status": self._device_status,
        }
        for group in _due(self._configuration.system, due):
            if group.name in makers:
                report[group.name] = self._timed(("system", group.name), sample, makers[group.name])
        return report

    def _vcpu_usage(self, mark: _Mark, sample: Sample) -> Report:
        """Processors since the mark; the last figures where the host was not read anew since."""
        before, after = mark.sample, sample
        error = _host_error(after)
        if before.host is None or after.host is None:
            return {"average_usage": None, "usage_data": None, "context_switch_count": 0, "error": error}
        if before.host_taken_ns == after.host_taken_ns:
            last = self._memo.last((0, "vcpu_usage"))
            if last is not None:
                return {**last, "error": error}
        seconds = (after.host_taken_ns - before.host_taken_ns) / 1e9
        old, new = before.host, after.host
        content = self._memo.get(
            (0, "vcpu_usage"), after.host_taken_ns, lambda: system_groups.vcpu_usage(old, new, seconds)
        )
        return {**content, "error": error}

    def _memory_info(self, mark: _Mark, sample: Sample) -> Report:
        content = {} if sample.host is None else system_groups.memory_info(sample.host)
        return {**content, "error": _host_error(sample)}

    def _hw_counters(self, mark: _Mark, sample: Sample) -> Report:
        devices = sample.tree.devices
        token = Same(devices[0]) if len(devices) == 1 else [Same(device) for device in devices]
        content = self._memo.get(
            (0, "neuron_hw_counters"), token, lambda: system_groups.neuron_hw_counters(devices)
        )
        return {**content, "error": describe_faults(sample.tree)}

    def _device_status(self, mark: _Mark, sample: Sample) -> Report:
        tree, second = sample.tree, sample.taken_ns // 1_000_000_000
        known = self._status
        if (
            known is not None
            and known[0] == second
            and known[1].processes is tree.processes
            and known[1].faults == tree.faults
            and _are_same(known[1].devices, tree.devices)
        ):
            return known[2]
        utilization = self._utilization.update(mark.sample.tree, tree)
        allocation = self._watch.update(tree)
        devices = [
            self._memo.get(
                (0, f"device {device.facts.index}"),
                system_groups.status_token(device, utilization, allocation),
                lambda device=device: system_groups.device_status(device, utilization, allocation),  # type: ignore[misc]
            )
            for device in tree.devices
        ]
        unreadable = [{"path": fault.path, "reason": fault.reason} for fault in tree.faults]
        content = {
            "devices": orjson.Fragment(orjson.dumps(devices)),
            "unreadable": unreadable,
            "error": describe_faults(tree),
        }
        self._status = second, tree, content
        return content

    def _kubernetes(self, mark: _Mark, sample: Sample) -> Report:
        return {} if self._pods is None else self._pods.group(sample.tree)

    def _timed(self, key: GroupKey, sample: Sample, make: Callable[[_Mark, Sample], Report]) -> Report:
        """A group of the system with its period, which begins anew with each collection."""
        mark = self._mark(key)
        content = make(mark, sample)
        self._marks[key] = _Mark(sample, {}, {})
        return {"period": (sample.taken_ns - mark.sample.taken_ns) / 1e9, **content}

    def _mark(self, key: GroupKey) -> _Mark:
        return self._marks.get(key, self._first)


class _WindowMaker:
    """The windows of one report: groups whose periods began together share them."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._made: dict[int, dict[int, ProcessWindow]] = {}

    def make(self, process: ProcessReading, mark: _Mark) -> ProcessWindow:
        """The window of a process since a mark."""
        made = self._made.setdefault(id(mark.sample), {})
        window = made.get(process.pid)
        if window is None:
            wall_ns = self._sample.taken_ns - mark.sample.taken_ns
            window = made[process.pid] = _window(process, mark, wall_ns)
        return window

    def shown_window(self, window: ProcessWindow, mark: _Mark) -> ProcessWindow:
        """The window whose rates are reported: the last one in which the process told something.

        A simulated process publishes four times a second: a report made between two of its publications shows
        the rates of the last.
        """
        stands_still = (
            window.after.elapsed_ns is not None
            and window.after.published_at_s == window.before.published_at_s
        )
        return mark.windows.get(window.after.pid, window) if stands_still else window

    def shown(self, mark: _Mark) -> dict[int, ProcessWindow]:
        """The windows that are reported of the processes, by pid."""
        made = self._made.get(id(mark.sample), {})
        here = {process.pid for process in self._sample.tree.processes}
        kept = {pid: window for pid, window in mark.windows.items() if pid in here}
        return {**kept, **{pid: self.shown_window(window, mark) for pid, window in made.items()}}


def describe_faults(tree: TreeReading) -> str:
    """What could not be read, in one line; "" where everything was."""
    if not tree.faults:
        return ""
    named = "; ".join(str(fault) for fault in tree.faults[:FAULTS_NAMED])
    more = len(tree.faults) - FAULTS_NAMED
    return f"{named}; and {more} more" if more > 0 else named


def _due(groups: Collection[Group], due: Collection[Group] | None) -> list[Group]:
    return [group for group in groups if due is None or group in due]


def _groups_of(process: ProcessReading, groups: list[tuple[RuntimeGroups, list[Group]]]) -> list[str]:
    """Names of the groups to report of a process, each once, in the order of the configuration."""
    names: dict[str, None] = {}
    for runtime, each in groups:
        if runtime.tag_filter.fullmatch(process.tag):
            names.update(dict.fromkeys(group.name for group in each))
    return list(names)


def _entry(process: ProcessReading, report: Report, keys: Keys) -> Report:
    entry: Report = {"pid": process.pid}
    if keys.has_address:
        entry["address"] = ""
    return {**entry, "neuron_runtime_tag": process.tag, "error": "", "report": report}


def _window(process: ProcessReading, mark: _Mark, wall_ns: int) -> ProcessWindow:
    before = mark.processes.get(process.pid)
    if before is not None and (process.elapsed_ns or 0) < (before.elapsed_ns or 0):
        before = None  # Another process of the same pid.
    return make_window(before or _at_start(process), process, wall_ns)


def _at_start(process: ProcessReading) -> ProcessReading:
    """What a process that is new had counted when the period began: nothing, where its counts are its own.

    A real driver counts for the core, which may have worked for others before: there its period begins now.
    """
    if process.elapsed_ns is None:
        return process
    return process._replace(cores={}, elapsed_ns=0, published_at_s=0.0)


def _are_same(devices: tuple[DeviceReading, ...], others: tuple[DeviceReading, ...]) -> bool:
    return len(devices) == len(others) and all(map(is_, devices, others))


def _by_pid(tree: TreeReading) -> dict[int, ProcessReading]:
    return {process.pid: process for process in tree.processes}


def _host_error(sample: Sample) -> str:
    return "" if sample.host_fault is None else str(sample.host_fault)
