"""The report's `neuron_runtime_data`: one entry for each process, made of the groups that are due."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import orjson

from neuron_monitor.api import kernels
from neuron_monitor.api.layout import MEMORY_SLICE
from neuron_monitor.api.rates import WINDOW_COLUMNS
from neuron_monitor.api.readings import ProcessReading
from neuron_monitor.api.sample import Sample
from neuron_monitor.report.config import Configuration, Group, RuntimeGroups
from neuron_monitor.report.executions import OUTCOME_COLUMNS
from neuron_monitor.report.memory import MODELS_REPORTED, memory_token, memory_used
from neuron_monitor.report.process_groups import (
    ProcessWindow,
    activity_structure,
    counters_structure,
    execution_counts,
    executions_structure,
    latencies,
    runtime_vcpu_usage,
    vcpu_structure,
)
from neuron_monitor.report.sheet import SLOT, Number, Sheet, cut, joined, number_text
from neuron_monitor.report.spelling import Keys
from neuron_monitor.report.windows import Mark, by_pid, shown_window, window_since

COUNTERS_GROUP = "neuroncore_counters"
EXECUTIONS_GROUP = "execution_stats"
TIME_GROUP = "neuron_runtime_vcpu_usage"
MEMORY_GROUP = "memory_used"
_Groups = list[tuple[RuntimeGroups, list[Group]]]
TIMED_GROUPS = (COUNTERS_GROUP, "neuroncore_activity")
_COUNTERS_END = "end of neuroncore_counters"
_MEMORY_COLUMNS = (MEMORY_SLICE.start, MEMORY_SLICE.stop)
_NOT_TIMED = "utilization is not known: run the program under 'neuron-profile capture' to keep its times"
_SHARED = "cores are shared with other processes: counts are of all of them"


@dataclass(slots=True)
class _Entries:
    """The entries of one report before their text is made.

    Attributes:
        periods: Positions among the values at which each group's period stands.
        times: Position of each process's processor time.
        begins: Of each process, the position at which each group's values begin.
    """

    sheet: Sheet = field(default_factory=Sheet)
    periods: dict[str, list[int]] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    begins: list[dict[str, int]] = field(default_factory=list)


_Collected = tuple[Hashable, Sequence[Number]]
"""One group of one process: as long as the first is equal, so is its structure; and the numbers in it."""


class _Collector(NamedTuple):
    """Makes one group of each process, of its window and of the one to show.

    Attributes:
        positions: Those of the periods among the values.
    """

    mark: Mark
    period_s: float
    collect: Callable[[ProcessWindow, ProcessWindow], _Collected]
    positions: list[int]


class _Shape(NamedTuple):
    """As long as this is equal, so is the text of an entry around its values."""

    tag: str
    is_shared: bool
    is_timed: bool
    logical_core_size: int
    keys: Keys
    core_architecture: str
    names: list[str]
    groups: list[Hashable]


@dataclass(frozen=True, slots=True)
class _Still:
    """Entries of which only periods and processor times change while no process tells anything.

    Attributes:
        parts: Their text around these values, one more than there are of them.
        values: The values, of which `periods` and `times` say which is which.
    """

    key: Hashable
    processes: tuple[ProcessReading, ...]
    parts: list[bytes]
    values: list[bytes]
    periods: dict[str, list[int]]
    times: dict[int, int]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Entries of a real host's processes, to be filled anew while these count on and are otherwise the same.

    Attributes:
        key: What else the text around the values is made of.
        processes: What the values are of.
        places: Of each process, as `kernels.refill` takes them.
    """

    key: Hashable
    groups: _Groups
    processes: tuple[ProcessReading, ...]
    entries: _Entries
    places: list[tuple[int, int, int, int]]


def _layout(
    key: Hashable, groups: _Groups, processes: tuple[ProcessReading, ...], entries: _Entries
) -> _Layout | None:
    """A layout, None where a process tells its own time or is not timed."""
    if any(process.elapsed_ns is not None or not process.is_timed for process in processes):
        return None
    places = [_place(begins, process) for begins, process in zip(entries.begins, processes)]
    return _Layout(key, groups, processes, entries, places)


def _place(begins: dict[str, int], process: ProcessReading) -> tuple[int, int, int, int]:
    counters_at, executions_at = begins.get(COUNTERS_GROUP, -1), begins.get(EXECUTIONS_GROUP, -1)
    return counters_at, begins.get(_COUNTERS_END, -1) - counters_at, executions_at, process.logical_core_size


def _still(key: Hashable, processes: tuple[ProcessReading, ...], entries: _Entries) -> _Still:
    positions = sorted(
        [
            *(position for each in entries.periods.values() for position in each),
            *(position + part for position in entries.times.values() for part in (0, 1)),
        ]
    )
    place = {position: number for number, position in enumerate(positions)}
    return _Still(
        key=key,
        processes=processes,
        parts=entries.sheet.with_slots(positions),
        values=[number_text([entries.sheet.numbers[position]])[1:-1] for position in positions],
        periods={name: [place[at] for at in each] for name, each in entries.periods.items()},
        times={pid: place[at] for pid, at in entries.times.items()},
    )


class RuntimeData:
    """Makes `neuron_runtime_data`; remembers where each group's period began.

    Args:
        configuration: Which groups there are.
        first: A sample from which the first periods count.
    """

    def __init__(self, configuration: Configuration, first: Sample) -> None:
        self._configuration = configuration
        self._first = Mark(first, by_pid(first.tree), {})
        self._marks: dict[str, Mark] = {}
        self._memory_texts: dict[int, tuple[Any, dict[str, bytes]]] = {}
        self._forms: dict[int, tuple[_Shape, list[bytes]]] = {}
        self._times: dict[int, tuple[int, tuple[float, float]]] = {}
        self._still: _Still | None = None
        self._layout: _Layout | None = None
        self._groups_of_tags: tuple[_Groups, dict[str, list[str]]] = ([], {})

    def report(self, sample: Sample, due: Collection[Group] | None, keys: Keys) -> Any:
        """The list of entries, with the groups that are due; with all of them where `due` is None."""
        groups = [(runtime, _due(runtime.groups, due)) for runtime in self._configuration.runtimes]
        names = {group.name for _, each in groups for group in each}
        if not names:
            return []
        marks = {name: self._marks.get(name, self._first) for name in sorted(names)}
        told_nothing = all(mark.sample.tree.processes is sample.tree.processes for mark in marks.values())
        key = (tuple(marks), keys)
        still = self._still
        if told_nothing and still and still.key == key and still.processes is sample.tree.processes:
            return self._again(still, sample, marks)
        processes = by_pid(sample.tree)
        distinct = {id(mark): mark for mark in marks.values()}
        new = {key: Mark(sample, processes, _still_there(mark, processes)) for key, mark in distinct.items()}
        entries = self._refilled((key, _architecture(sample)), groups, sample, marks, keys)
        if entries is None:
            entries = self._entries(sample, groups, marks, new, keys)
            told = (key, _architecture(sample)), groups, sample.tree.processes
            self._layout = _layout(*told, entries) if len(distinct) == 1 else None
        self._still = _still(key, sample.tree.processes, entries) if told_nothing else None
        for name, mark in marks.items():
            self._marks[name] = new[id(mark)]
        self._forget(processes)
        return entries.sheet.text()

    def _refilled(
        self, key: Hashable, groups: _Groups, sample: Sample, marks: dict[str, Mark], keys: Keys
    ) -> _Entries | None:
        """The entries of the last report with the values of now; None where their text is another."""
        layout, self._layout = self._layout, None
        mark = next(iter(marks.values()))
        if (
            layout is None
            or layout.processes is not mark.sample.tree.processes
            or layout.key != key
            or layout.groups != groups
        ):
            return None
        processes, entries = sample.tree.processes, layout.entries
        passed_ns = sample.taken_ns - mark.sample.taken_ns
        others = kernels.refill(
            entries.sheet.numbers,
            layout.places,
            layout.processes,
            processes,
            passed_ns,
            WINDOW_COLUMNS,
            len(keys.flops),
            OUTCOME_COLUMNS,
            _MEMORY_COLUMNS,
        )
        if others is None:
            return None
        for index in others if MEMORY_GROUP in marks else ():
            texts = self._memory_text(processes[index], keys, _most_models(sample)).values()
            entries.sheet.texts.update(enumerate(texts, entries.begins[index][MEMORY_GROUP]))
        self._put_times(entries, sample, mark, passed_ns / 1e9)
        self._layout = replace(layout, processes=processes)
        return entries

    def _put_times(self, entries: _Entries, sample: Sample, mark: Mark, period_s: float) -> None:
        """Put the period and the processes' processor time into the entries."""
        numbers = entries.sheet.numbers
        for positions in entries.periods.values():
            for position in positions:
                numbers[position] = period_s
        if sample.host_taken_ns != mark.sample.host_taken_ns:
            for pid, position in entries.times.items():
                numbers[position : position + 2] = self._time_since(mark, pid, sample)

    def _again(self, still: _Still, sample: Sample, marks: dict[str, Mark]) -> orjson.Fragment:
        """The entries once more, with new periods and processor times."""
        values = still.values
        for name, places in still.periods.items():
            text = b"%r" % ((sample.taken_ns - marks[name].sample.taken_ns) / 1e9)
            for place in places:
                values[place] = text
        if TIME_GROUP in marks and sample.host_taken_ns != marks[TIME_GROUP].sample.host_taken_ns:
            for pid, place in still.times.items():
                user, system = self._time_since(marks[TIME_GROUP], pid, sample)
                values[place : place + 2] = (b"%r" % user, b"%r" % system)
        distinct = {id(mark): mark for mark in marks.values()}
        new = {key: Mark(sample, mark.processes, mark.windows) for key, mark in distinct.items()}
        for name, mark in marks.items():
            self._marks[name] = new[id(mark)]
        return orjson.Fragment(joined(still.parts, values))

    def _entries(
        self,
        sample: Sample,
        groups: _Groups,
        marks: dict[str, Mark],
        new: dict[int, Mark],
        keys: Keys,
    ) -> _Entries:
        collectors = self._collectors(sample, marks)
        entries = _Entries(periods={name: collector.positions for name, collector in collectors.items()})
        sheet, numbers = entries.sheet, entries.sheet.numbers
        if groups != self._groups_of_tags[0]:
            self._groups_of_tags = groups, {}
        known = self._groups_of_tags[1]
        architecture = _architecture(sample)
        for process in sample.tree.processes:
            names = known.get(process.tag)
            if names is None:
                names = known[process.tag] = _groups_of(process, groups)
            shapes: list[Hashable] = []
            begins: dict[str, int] = {}
            since = None
            entries.begins.append(begins)
            for name in names:
                mark, period_s, collect, positions = collectors[name]
                if mark is not since:
                    since, window = mark, window_since(mark, process, sample.taken_ns, len(keys.flops))
                    shown = shown_window(window, mark)
                    if process.elapsed_ns is not None:
                        new[id(mark)].windows[process.pid] = shown
                positions.append(len(numbers))
                numbers.append(period_s)
                begins[name] = len(numbers)
                if name == MEMORY_GROUP:
                    texts = self._memory_text(process, keys, _most_models(sample))
                    for text in texts.values():
                        sheet.add_text(text)
                    shapes.append(tuple(texts))
                    continue
                shape, values = collect(window, shown)
                shapes.append(shape)
                numbers += values
                if name == TIME_GROUP:
                    entries.times[process.pid] = begins[name]
                elif name == COUNTERS_GROUP:
                    begins[_COUNTERS_END] = len(numbers)
            size, is_timed = process.logical_core_size, process.is_timed
            told = _Shape(process.tag, process.is_shared, is_timed, size, keys, architecture, names, shapes)
            sheet.add(self._form(process.pid, told))
        return entries

    def _collectors(self, sample: Sample, marks: dict[str, Mark]) -> dict[str, _Collector]:
        """What makes each group that is due."""
        found = {}
        for name, mark in marks.items():
            collect = _COLLECT.get(name) or partial(self._process_time, sample, mark)
            found[name] = _Collector(mark, (sample.taken_ns - mark.sample.taken_ns) / 1e9, collect, [])
        return found

    def _memory_text(self, process: ProcessReading, keys: Keys, most_models: int) -> dict[str, bytes]:
        """The group `memory_used` as JSON texts by name: the same object as long as they are the same."""
        token, known = (memory_token(process), most_models, keys), self._memory_texts.get(process.pid)
        if known is None or known[0] != token:
            used = memory_used(process, keys, most_models)
            texts = {name: orjson.dumps(value) for name, value in used.items()}
            known = self._memory_texts[process.pid] = token, texts
        return known[1]

    def _process_time(
        self, sample: Sample, mark: Mark, window: ProcessWindow, shown: ProcessWindow
    ) -> _Collected:
        return None, self._time_since(mark, window.after.pid, sample)

    def _time_since(self, mark: Mark, pid: int, sample: Sample) -> tuple[float, float]:
        """Processor time since the mark; the last figure where the host was not read anew since."""
        known = self._times.get(pid)
        if sample.host_taken_ns == mark.sample.host_taken_ns or (known and known[0] == sample.host_taken_ns):
            return known[1] if known else (0.0, 0.0)
        seconds = (sample.host_taken_ns - mark.sample.host_taken_ns) / 1e9
        processors = len(sample.host.cpu_ticks) if sample.host else 1
        before, after = mark.sample.process_times.get(pid), sample.process_times.get(pid)
        found = runtime_vcpu_usage(before, after, seconds, processors)
        self._times[pid] = sample.host_taken_ns, found
        return found

    def _form(self, pid: int, shape: _Shape) -> list[bytes]:
        """The text of an entry around its values."""
        known = self._forms.get(pid)
        if known is not None and known[0] == shape:
            return known[1]
        report = {
            name: {"period": SLOT, **_structure(name, group, shape), "error": _error(name, shape)}
            for name, group in zip(shape.names, shape.groups)
        }
        form = cut(_entry(pid, shape, report))
        self._forms[pid] = shape, form
        return form

    def _forget(self, processes: dict[int, ProcessReading]) -> None:
        for pid in self._forms.keys() - processes.keys():
            for known in (self._forms, self._times, self._memory_texts):
                known.pop(pid, None)
            self._groups_of_tags = [], {}


def _due(groups: Collection[Group], due: Collection[Group] | None) -> list[Group]:
    return [group for group in groups if due is None or group in due]


def _groups_of(process: ProcessReading, groups: list[tuple[RuntimeGroups, list[Group]]]) -> list[str]:
    """Names of the groups to report of a process, each once, in the order of the configuration."""
    names: dict[str, None] = {}
    for runtime, each in groups:
        if runtime.tag_filter.fullmatch(process.tag):
            names.update(dict.fromkeys(group.name for group in each))
    return list(names)


def _most_models(sample: Sample) -> int:
    """How many models each process's entry has."""
    return MODELS_REPORTED // max(1, len(sample.tree.processes))


def _architecture(sample: Sample) -> str:
    devices = sample.tree.devices
    return devices[0].facts.core_architecture if devices else ""


def _still_there(mark: Mark, processes: Container[int]) -> dict[int, ProcessWindow]:
    return {pid: window for pid, window in mark.windows.items() if pid in processes}


def _counters(window: ProcessWindow, shown: ProcessWindow) -> _Collected:
    return shown.cores, shown.counters if window.after.is_timed else ()


def _executions(window: ProcessWindow, shown: ProcessWindow) -> _Collected:
    total, device = latencies(window)
    return (len(total) > 0, len(device) > 0), (*execution_counts(window), *total, *device)


def _activity(window: ProcessWindow, shown: ProcessWindow) -> _Collected:
    is_told = len(shown.activity) > 0 and shown.activity[0] is not None
    return (shown.cores, is_told), shown.activity


_COLLECT: dict[str, Callable[[ProcessWindow, ProcessWindow], _Collected]] = {
    COUNTERS_GROUP: _counters,
    EXECUTIONS_GROUP: _executions,
    "neuroncore_activity": _activity,
}


def _structure(name: str, group: Any, shape: _Shape) -> dict[str, Any]:
    """The structure of a group that was collected."""
    size, is_timed = shape.logical_core_size, shape.is_timed
    if name == MEMORY_GROUP:
        return dict.fromkeys(group, SLOT)
    if name == TIME_GROUP:
        return vcpu_structure()
    if name == EXECUTIONS_GROUP:
        return executions_structure(has_total=group[0], has_device=group[1])
    if name == "neuroncore_activity":
        return activity_structure(group[0], size, is_timed=is_timed, is_told=group[1])
    return counters_structure(group, size, shape.keys, shape.core_architecture, is_timed=is_timed)


def _error(name: str, shape: _Shape) -> str:
    """Why a group's figures are not all that they could be; "" where they are."""
    if name in TIMED_GROUPS and not shape.is_timed:
        return _NOT_TIMED
    return _SHARED if shape.is_shared else ""


def _entry(pid: int, shape: _Shape, report: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"pid": pid}
    if shape.keys.has_address:
        entry["address"] = ""
    return {**entry, "neuron_runtime_tag": shape.tag, "error": "", "report": report}
