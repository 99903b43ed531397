"""Makes reports: remembers where each group's period began, and what each process counted then.

A report is for `orjson.dumps`: parts that did not change since the last are in it as text made before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

import orjson

from neuron_monitor.api.allocation import AllocationWatch
from neuron_monitor.api.kubernetes import PodWatch
from neuron_monitor.api.rates import UtilizationWatch
from neuron_monitor.api.readings import DeviceReading, are_same
from neuron_monitor.api.records import TreeReading, plain_pair
from neuron_monitor.api.sample import Sample
from neuron_monitor.report import system_groups
from neuron_monitor.report.config import KUBERNETES_GROUP, Configuration, Group
from neuron_monitor.report.memo import Memo
from neuron_monitor.report.runtime_data import RuntimeData
from neuron_monitor.report.sheet import Sheet, cut
from neuron_monitor.report.spelling import DEFAULT_SPELLING, Keys, Spelling, keys_of
from neuron_tools.frozen import frozen

Report = dict[str, Any]
FAULTS_NAMED = 3
# The states of devices are made anew at most so often while no device is another: five times a second.
STATUS_INTERVAL_NS = 190_000_000
_STATUS = "neuron_device_status"


@dataclass(slots=True)
class _Status:
    """The states of devices as they were made last.

    Attributes:
        sample: What they were made of.
        since: Up to when nothing that they tell has changed.
    """

    sample: Sample
    since: Sample
    content: Report


@frozen
class _Made:
    """The last report: what is not counted stands in the next one too while it is not looked at anew."""

    sample: Sample
    due: Collection[Group] | None
    keys: Keys
    report: Report

    def is_followed_by(self, sample: Sample, due: Collection[Group] | None) -> bool:
        """Whether another sample of the same groups tells nothing new but what is counted."""
        last, tree, now = self.sample, self.sample.tree, sample.tree
        return (
            due is self.due
            and sample.host is last.host
            and sample.host_taken_ns == last.host_taken_ns
            and sample.host_fault is last.host_fault
            and sample.instance is last.instance
            and now.logical_core_size == tree.logical_core_size
            and _are_alike(now, tree)
        )


def as_values(report: Report) -> Report:
    """The report as plain values: parts that are JSON text already become dictionaries and lists again."""
    values: Report = orjson.loads(orjson.dumps(report))
    return values


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
        spelling: Spelling = DEFAULT_SPELLING,
        pods: PodWatch | None = None,
    ) -> None:
        self._configuration = configuration
        self._spelling = spelling
        self._pods = pods
        self._watch = AllocationWatch()
        self._utilization = UtilizationWatch()
        self._watch.update(first.tree)
        self._runtime_data = RuntimeData(configuration, first)
        self._first = first
        self._last: dict[str, Sample] = {}
        self._memo = Memo()
        self._status_forms: dict[int, tuple[system_groups.StatusShape, list[bytes]]] = {}
        self._sheet: tuple[list[list[bytes]], Sheet] = ([], Sheet())
        self._formed: tuple[Sequence[DeviceReading], object] = ((), None)
        self._status: _Status | None = None
        self._made: _Made | None = None
        self._due: tuple[Collection[Group] | None, list[str]] | None = None
        self._counted_hardware: Sequence[DeviceReading] | None = None
        self._runtime_data.prepare(self._keys_of(first.tree))
        self._form_sheet(first.tree.records.outlines[0])

    def report(self, sample: Sample, due: Collection[Group] | None = None) -> Report:
        """The report of a sample with the groups that are due; with all of them where `due` is None."""
        made = self._made
        if made is not None and made.is_followed_by(sample, due):
            keys, report = made.keys, self._following(made, sample)
        else:
            keys = self._keys_of(sample.tree)
            report = self._anew(sample, due, keys)
        self._made = _Made(sample, due, keys, report) if self._pods is None else None
        return report

    def _keys_of(self, tree: TreeReading) -> Keys:
        devices = tree.records.outlines[0]
        return keys_of(self._spelling, devices[0].facts.architecture if devices else "")

    def _following(self, made: _Made, sample: Sample) -> Report:
        """A report like the last one, of which only what is counted is made anew."""
        period_s = (sample.taken_ns - made.sample.taken_ns) / 1e9
        system = {
            name: {**content, "period": period_s} for name, content in made.report["system_data"].items()
        }
        if _STATUS in system:
            system[_STATUS] = {"period": period_s, **self._device_status(made.sample, sample)}
        self._last.update(dict.fromkeys(system, sample))
        runtimes = self._runtime_data.report(sample, made.due, made.keys)
        return {**made.report, "neuron_runtime_data": runtimes, "system_data": system}

    def _anew(self, sample: Sample, due: Collection[Group] | None, keys: Keys) -> Report:
        report: Report = {
            "neuron_runtime_data": self._runtime_data.report(sample, due, keys),
            "system_data": self._system(sample, due),
            "instance_info": system_groups.instance_info(sample.instance),
            "neuron_hardware_info": system_groups.neuron_hardware_info(sample.tree, keys),
        }
        if self._pods is not None:
            report[KUBERNETES_GROUP] = self._timed(KUBERNETES_GROUP, sample, self._kubernetes)
        return report

    def _system(self, sample: Sample, due: Collection[Group] | None) -> Report:
        report: Report = {}
        makers = {
            "vcpu_usage": self._vcpu_usage,
            "memory_info": self._memory_info,
            "neuron_hw_counters": self._hw_counters,
            "neuron_device_status": self._device_status,
        }
        for name in self._system_due(due):
            if name in makers:
                report[name] = self._timed(name, sample, makers[name])
        return report

    def _system_due(self, due: Collection[Group] | None) -> list[str]:
        """Names of the host's groups that are due; made once for the same object."""
        if self._due is None or self._due[0] is not due:
            names = [group.name for group in self._configuration.system if due is None or group in due]
            self._due = due, names
        return self._due[1]

    def _vcpu_usage(self, before: Sample, sample: Sample) -> Report:
        """Processors since the mark; the last figures where the host was not read anew since."""
        error = _host_error(sample)
        if before.host is None or sample.host is None:
            return {"average_usage": None, "usage_data": None, "context_switch_count": 0, "error": error}
        if before.host_taken_ns == sample.host_taken_ns:
            last = self._memo.last("vcpu_usage")
            if last is not None:
                return {**last, "error": error}
        seconds = (sample.host_taken_ns - before.host_taken_ns) / 1e9
        old, new = before.host, sample.host
        content = self._memo.get(
            "vcpu_usage", sample.host_taken_ns, lambda: system_groups.vcpu_usage(old, new, seconds)
        )
        return {**content, "error": error}

    def _memory_info(self, before: Sample, sample: Sample) -> Report:
        content = {} if sample.host is None else system_groups.memory_info(sample.host)
        return {**content, "error": _host_error(sample)}

    def _hw_counters(self, before: Sample, sample: Sample) -> Report:
        devices = sample.tree.records.outlines[0]
        content = self._memo.last("neuron_hw_counters") if devices is self._counted_hardware else None
        if content is None:
            token = [(device.facts.index, device.ecc) for device in devices]
            content = self._memo.get(
                "neuron_hw_counters", token, lambda: system_groups.neuron_hw_counters(devices)
            )
            self._counted_hardware = devices
        return {**content, "error": describe_faults(sample.tree)}

    def _device_status(self, before: Sample, sample: Sample) -> Report:
        """The states of devices since the mark, or since they were made last if that is not so long ago."""
        tree, known = sample.tree, self._status
        if known is not None and _have_same_form(known.sample.tree, tree):
            is_still = known.since.tree.counted is tree.counted and _are_alike(known.since.tree, tree)
            if is_still and _second(known.sample) == _second(sample):
                known.since = sample
                return known.content
            if sample.taken_ns - known.sample.taken_ns < STATUS_INTERVAL_NS:
                return known.content
            before = known.since
        sheet = self._status_sheet(tree.records.outlines[0], before, sample)
        unreadable = [{"path": fault.path, "reason": fault.reason} for fault in tree.faults]
        content = {
            "devices": sheet.text(),
            "unreadable": unreadable,
            "error": describe_faults(tree),
        }
        self._status = _Status(sample, sample, content)
        return content

    def _status_sheet(self, devices: Sequence[DeviceReading], before: Sample, sample: Sample) -> Sheet:
        """The states of devices, with the numbers of now."""
        tree, pair = sample.tree, plain_pair(before.tree.records, sample.tree.records)
        allocation = self._watch.update(tree)
        if pair is not None:
            wall_ns = sample.taken_ns - before.taken_ns
            used = None if allocation is self._watch.working else allocation
            numbers = system_groups.rows_numbers(*pair, wall_ns, used)
        else:
            utilization = self._utilization.update(before.tree, tree)
            each = [system_groups.status_numbers(device, utilization, allocation) for device in tree.devices]
            numbers = [number for group in each for number in group]
        sheet = self._form_sheet(devices)
        sheet.numbers = numbers
        return sheet

    def _form_sheet(self, devices: Sequence[DeviceReading]) -> Sheet:
        """The last sheet where the forms are the same, else a new one."""
        last, sheet = self._sheet
        if devices is self._formed[0] and self._watch.users is self._formed[1]:
            return sheet
        forms = [self._status_form(device) for device in devices]
        self._formed = devices, self._watch.users
        if len(forms) != len(last) or not all(map(is_, forms, last)):
            sheet = Sheet()
            for form in forms:
                sheet.add(form)
            self._sheet = forms, sheet
        return sheet

    def _status_form(self, device: DeviceReading) -> list[bytes]:
        """The text of a device's status around its values."""
        shape = system_groups.status_shape(device, self._watch.users)
        known = self._status_forms.get(device.facts.index)
        if known is not None and known[0] == shape:
            return known[1]
        form = cut(system_groups.device_status(shape))
        self._status_forms[device.facts.index] = shape, form
        return form

    def _kubernetes(self, before: Sample, sample: Sample) -> Report:
        return {} if self._pods is None else self._pods.group(sample.tree)

    def _timed(self, name: str, sample: Sample, make: Callable[[Sample, Sample], Report]) -> Report:
        """A group of the system with its period, which begins anew with each collection."""
        before = self._last.get(name, self._first)
        content = make(before, sample)
        self._last[name] = sample
        return {"period": (sample.taken_ns - before.taken_ns) / 1e9, **content}


def describe_faults(tree: TreeReading) -> str:
    """What could not be read, in one line; "" where everything was."""
    if not tree.faults:
        return ""
    named = "; ".join(str(fault) for fault in tree.faults[:FAULTS_NAMED])
    more = len(tree.faults) - FAULTS_NAMED
    return f"{named}; and {more} more" if more > 0 else named


def _second(sample: Sample) -> int:
    return sample.taken_ns // 1_000_000_000


def _are_alike(tree: TreeReading, other: TreeReading) -> bool:
    """Whether two looks at a tree differ in no more than what is counted."""
    return tree.faults == other.faults and are_same(tree.records.outlines[0], other.records.outlines[0])


def _have_same_form(tree: TreeReading, other: TreeReading) -> bool:
    """Whether two looks at a tree differ in no more than what the devices count and hold."""
    devices, others = tree.records.outlines[0], other.records.outlines[0]
    return tree.faults == other.faults and (
        are_same(devices, others)
        or [(each.facts, each.power) for each in devices] == [(each.facts, each.power) for each in others]
    )


def _host_error(sample: Sample) -> str:
    return "" if sample.host_fault is None else str(sample.host_fault)
