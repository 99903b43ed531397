"""Makes reports: remembers where each group's period began, and what each process counted then."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from neuron_monitor.api.allocation import AllocationWatch, CoreAllocation
from neuron_monitor.api.kubernetes import PodWatch
from neuron_monitor.api.rates import CoreRates, physical_rates
from neuron_monitor.api.readings import ProcessReading, TreeReading
from neuron_monitor.api.sample import Sample
from neuron_monitor.report import system_groups
from neuron_monitor.report.config import KUBERNETES_GROUP, Configuration, Group, RuntimeGroups
from neuron_monitor.report.memory import memory_used
from neuron_monitor.report.process_groups import (
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


@dataclass(slots=True)
class _Mark:
    """A group's last collection: the sample it was made of, and processes whose rates must be kept."""

    sample: Sample
    processes: dict[int, ProcessReading]
    windows: dict[int, ProcessWindow]
    rates: dict[int, CoreRates]


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
        self._watch.update(first.tree)
        processes = {process.pid: process for process in first.tree.processes}
        self._first = _Mark(first, processes, {}, {})
        self._marks: dict[GroupKey, _Mark] = {}

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
            report[KUBERNETES_GROUP] = self._timed(
                ("system", KUBERNETES_GROUP), sample, lambda mark: self._kubernetes(tree)
            )
        return report

    def _runtimes(self, sample: Sample, due: Collection[Group] | None, keys: Keys) -> list[Report]:
        """One entry for each process of which some group is due."""
        groups = [(runtime, _due(runtime.groups, due)) for runtime in self._configuration.runtimes]
        marks = {group.name: self._mark(("runtime", group.name)) for _, each in groups for group in each}
        if not marks:
            return []
        made: dict[str, dict[int, ProcessWindow]] = {name: {} for name in marks}
        entries = []
        for process in sample.tree.processes:
            wanted = _groups_of(process, groups)
            report = {
                name: self._process_group(name, process, sample, marks[name], made[name], keys)
                for name in wanted
            }
            entries.append(_entry(process, report, keys))
        for name, mark in marks.items():
            self._advance(("runtime", name), sample, mark, made[name])
        return entries

    def _process_group(
        self,
        name: str,
        process: ProcessReading,
        sample: Sample,
        mark: _Mark,
        made: dict[int, ProcessWindow],
        keys: Keys,
    ) -> Report:
        wall_ns = sample.taken_ns - mark.sample.taken_ns
        if name == "memory_used":
            content = memory_used(process, keys)
        elif name == "neuron_runtime_vcpu_usage":
            content = self._process_time(process.pid, sample, mark)
        else:
            window = made[process.pid] = _window(process, mark, wall_ns)
            content = self._window_group(name, window, sample, mark, keys)
        error = (
            "cores are shared with other processes: counts are of all of them" if process.is_shared else ""
        )
        return {"period": wall_ns / 1e9, **content, "error": error}

    def _window_group(
        self, name: str, window: ProcessWindow, sample: Sample, mark: _Mark, keys: Keys
    ) -> Report:
        if name == "execution_stats":
            return execution_stats(window)
        shown = _shown(window, mark)
        if name == "neuroncore_activity":
            return neuroncore_activity(shown)
        devices = sample.tree.devices
        return neuroncore_counters(shown, keys, devices[0].facts.core_architecture if devices else "")

    def _process_time(self, pid: int, sample: Sample, mark: _Mark) -> Report:
        seconds = (sample.host_taken_ns - mark.sample.host_taken_ns) / 1e9
        processors = len(sample.host.cpu_ticks) if sample.host else 1
        before, after = mark.sample.process_times.get(pid), sample.process_times.get(pid)
        return runtime_vcpu_usage(before, after, seconds, processors)

    def _system(self, sample: Sample, due: Collection[Group] | None) -> Report:
        report: Report = {}
        for group in _due(self._configuration.system, due):
            make = self._system_group(group.name, sample)
            if make is not None:
                report[group.name] = self._timed(("system", group.name), sample, make)
        return report

    def _system_group(self, name: str, sample: Sample) -> Callable[[_Mark], Report] | None:
        tree = sample.tree
        makers: dict[str, Callable[[_Mark], Report]] = {
            "vcpu_usage": lambda mark: _vcpu_usage(mark.sample, sample),
            "memory_info": lambda mark: _memory_info(sample),
            "neuron_hw_counters": lambda mark: {
                **system_groups.neuron_hw_counters(tree.devices),
                "error": describe_faults(tree),
            },
            "neuron_device_status": lambda mark: {
                **system_groups.neuron_device_status(
                    tree, _physical_rates(mark, sample), self._allocation(tree)
                ),
                "error": describe_faults(tree),
            },
        }
        return makers.get(name)

    def _allocation(self, tree: TreeReading) -> dict[int, CoreAllocation]:
        return self._watch.update(tree)

    def _kubernetes(self, tree: TreeReading) -> Report:
        return {} if self._pods is None else self._pods.group(tree)

    def _timed(self, key: GroupKey, sample: Sample, make: Callable[[_Mark], Report]) -> Report:
        """A group of the system with its period; a group begins anew with each collection."""
        mark = self._mark(key)
        content = make(mark)
        self._marks[key] = _Mark(sample, {}, {}, mark.rates)
        return {"period": (sample.taken_ns - mark.sample.taken_ns) / 1e9, **content}

    def _mark(self, key: GroupKey) -> _Mark:
        return self._marks.get(key, self._first)

    def _advance(self, key: GroupKey, sample: Sample, mark: _Mark, made: dict[int, ProcessWindow]) -> None:
        processes = {process.pid: process for process in sample.tree.processes}
        windows = {pid: _shown(window, mark) for pid, window in made.items()}
        self._marks[key] = _Mark(sample, processes, windows, {})


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
    return replace(process, cores={}, elapsed_ns=0, published_at_s=0.0)


def _shown(window: ProcessWindow, mark: _Mark) -> ProcessWindow:
    """The window whose rates are reported: the last one in which the process's own clock moved.

    A simulated process publishes four times a second: a report made between two of its publications shows the
    rates of the last.
    """
    stands_still = (
        window.after.elapsed_ns is not None and window.after.published_at_s == window.before.published_at_s
    )
    return mark.windows.get(window.after.pid, window) if stands_still else window


def _physical_rates(mark: _Mark, sample: Sample) -> dict[int, CoreRates]:
    before = [core for device in mark.sample.tree.devices for core in device.cores]
    after = [core for device in sample.tree.devices for core in device.cores]
    if mark.rates and all(new is old for new, old in zip(after, before)) and len(after) == len(before):
        return mark.rates
    mark.rates = physical_rates(before, after, sample.taken_ns - mark.sample.taken_ns)
    return mark.rates


def _vcpu_usage(before: Sample, after: Sample) -> Report:
    if before.host is None or after.host is None:
        return {"average_usage": None, "usage_data": None, "error": _host_error(after)}
    seconds = (after.host_taken_ns - before.host_taken_ns) / 1e9
    return {**system_groups.vcpu_usage(before.host, after.host, seconds), "error": _host_error(after)}


def _memory_info(sample: Sample) -> Report:
    content = {} if sample.host is None else system_groups.memory_info(sample.host)
    return {**content, "error": _host_error(sample)}


def _host_error(sample: Sample) -> str:
    return "" if sample.host_fault is None else str(sample.host_fault)
