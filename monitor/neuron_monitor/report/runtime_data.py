"""The report's `neuron_runtime_data`: one entry for each process, made of the groups that are due."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import orjson

from neuron_monitor.api import kernels
from neuron_monitor.api.latency import SHARES
from neuron_monitor.api.layout import MEMORY_SLICE
from neuron_monitor.api.rates import WINDOW_COLUMNS
from neuron_monitor.api.readings import ProcessReading
from neuron_monitor.api.records import ROW_WIDTH, Told, TreeReading, plain_pair
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
from neuron_monitor.report.sheet import SLOT, Number, Sheet, cut
from neuron_monitor.report.spelling import Keys
from neuron_monitor.report.windows import Mark, Shown, shown_window, window_since
from neuron_tools.frozen import frozen

COUNTERS_GROUP = "neuroncore_counters"
EXECUTIONS_GROUP = "execution_stats"
TIME_GROUP = "neuron_runtime_vcpu_usage"
MEMORY_GROUP = "memory_used"
_Groups = list[tuple[RuntimeGroups, list[Group]]]
_Span = tuple[int, int]
ACTIVITY_GROUP = "neuroncore_activity"
TIMED_GROUPS = (COUNTERS_GROUP, ACTIVITY_GROUP)
_NOWHERE = (-1, -1)
_NO_TIME = (0.0, 0.0)
_FORMS_KEPT = 4
_LATENCIES = ("total", "device")
_MEMORY_COLUMNS = (MEMORY_SLICE.start, MEMORY_SLICE.stop)
_NOT_TIMED = "utilization is not known: run the program under 'neuron-profile capture' to keep its times"
_SHARED = "cores are shared with other processes: counts are of all of them"


@dataclass(slots=True)
class _Entries:
    """The entries of one report before their text is made.

    Attributes:
        periods: Positions among the values at which each group's period stands.
        times: Position of each process's processor time.
        spans: Of each process, the positions at which the values of each group begin and end, and of each
            kind of latency.
    """

    sheet: Sheet = field(default_factory=Sheet)
    periods: dict[str, list[int]] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    spans: list[dict[str, _Span]] = field(default_factory=list)
    _packed: dict[str, bytes] = field(default_factory=dict)

    @property
    def all_periods(self) -> bytes:
        """Where all periods stand, as `kernels.put` takes it."""
        if "periods" not in self._packed:
            each = [position for positions in self.periods.values() for position in positions]
            self._packed["periods"] = _packed(sorted(each))
        return self._packed["periods"]

    @property
    def all_times(self) -> bytes:
        """Where all processor times stand: in user mode, and behind it in the kernel."""
        if "times" not in self._packed:
            self._packed["times"] = _packed([at + mode for at in self.times.values() for mode in (0, 1)])
        return self._packed["times"]


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


class _Still(NamedTuple):
    """Entries of which only periods and processor times change while no process tells anything.

    Attributes:
        key: What else the text around the values is made of.
        counted: What the values are of.
    """

    key: Hashable
    counted: object
    entries: _Entries


@frozen
class _Layout:
    """Entries to be filled anew while the processes count on and are otherwise the same.

    Attributes:
        key: What else the text around the values is made of.
        tree: What the values are of.
        places: Of each process, as `kernels.refill` takes them.
        is_clocked: Whether the processes tell their own time, and so now and then nothing.
    """

    key: Hashable
    groups: _Groups
    tree: TreeReading
    entries: _Entries
    places: list[tuple[int, ...]]
    is_clocked: bool

    def of(self, tree: TreeReading) -> _Layout:
        """The same with the values of another tree."""
        return _Layout(self.key, self.groups, tree, self.entries, self.places, self.is_clocked)


@frozen
class _Rest:
    """Entries of a report between two publications, of the same form as those of the report before.

    Attributes:
        told: The entries of reports in which the processes told something.
        entries: Of the others: rates stand there as they were, and nothing was executed.
    """

    told: _Entries
    entries: _Entries

    def follow(self) -> None:
        """Take over the rates and memory that were told last."""
        told, sheet = self.told.sheet, self.entries.sheet
        for old, new in zip(self.told.spans, self.entries.spans):
            for name in TIMED_GROUPS:
                if name in new:
                    sheet.numbers[slice(*new[name])] = told.numbers[slice(*old[name])]
            if MEMORY_GROUP in new:
                texts = [told.texts[position] for position in range(*old[MEMORY_GROUP])]
                sheet.texts.update(zip(range(*new[MEMORY_GROUP]), texts))


def _layout(key: Hashable, groups: _Groups, tree: TreeReading, entries: _Entries) -> _Layout | None:
    """A layout, None where a process is not timed, or others tell their own time."""
    processes = tree.records.outlines[1]
    clocked = {process.elapsed_ns is not None for process in processes}
    if len(clocked) != 1 or not all(process.is_timed for process in processes):
        return None
    places = [_place(spans, process) for spans, process in zip(entries.spans, processes)]
    return _Layout(key, groups, tree, entries, places, clocked.pop())


def _place(spans: dict[str, _Span], process: ProcessReading) -> tuple[int, ...]:
    """Where the groups of a process stand; a real driver tells no activity, which stays as it is."""
    counters, executions = spans.get(COUNTERS_GROUP, _NOWHERE), spans.get(EXECUTIONS_GROUP, _NOWHERE)
    activity = _NOWHERE if process.elapsed_ns is None else spans.get(ACTIVITY_GROUP, _NOWHERE)
    return (
        counters[0],
        counters[1] - counters[0],
        executions[0],
        process.logical_core_size,
        activity[0],
        activity[1] - activity[0],
        *(spans.get(kind, _NOWHERE)[0] for kind in _LATENCIES),
    )


@frozen
class _Told:
    """What a report is made of.

    Attributes:
        key: What the text around the values is made of beside the processes.
        marks: Where the period of each group that is due begins.
    """

    key: Hashable
    groups: _Groups
    sample: Sample
    marks: dict[str, Mark]
    keys: Keys

    @property
    def mark(self) -> Mark:
        """The first group's."""
        return next(iter(self.marks.values()))

    @property
    def passed_ns(self) -> int:
        """The first group's period."""
        return self.sample.taken_ns - self.mark.sample.taken_ns


class RuntimeData:
    """Makes `neuron_runtime_data`; remembers where each group's period began.

    Args:
        configuration: Which groups there are.
        first: A sample from which the first periods count.
    """

    def __init__(self, configuration: Configuration, first: Sample) -> None:
        self._configuration = configuration
        self._first = Mark(first, Shown())
        self._marks: dict[str, Mark] = {}
        self._together: tuple[list[str], Mark] | None = None
        self._memory_texts: dict[int, tuple[Any, dict[str, bytes]]] = {}
        self._forms: dict[int, list[tuple[_Shape, list[bytes]]]] = {}
        self._times: dict[int, tuple[int, tuple[float, float]]] = {}
        self._still: _Still | None = None
        self._due: tuple[Collection[Group] | None, _Groups, list[str]] | None = None
        self._layout: _Layout | None = None
        self._rest: _Rest | None = None
        self._groups_of_tags: tuple[_Groups, dict[str, list[str]]] = ([], {})

    def prepare(self, keys: Keys) -> None:
        """Make the text around the values ahead, as it is once processes have executed something.

        The first report would take several times as long as those after it else.
        """
        first = self._first.sample
        nothing = replace(first, tree=replace(first.tree, records=Told(first.tree.records.outlines[0], ())))
        groups, names = self._groups_due(None)
        mark = Mark(nothing, Shown())
        self._entries(first, groups, dict.fromkeys(names, mark), {id(mark): Mark(first, Shown())}, keys)

    def report(self, sample: Sample, due: Collection[Group] | None, keys: Keys) -> Any:
        """The list of entries, with the groups that are due; with all of them where `due` is None."""
        groups, names = self._groups_due(due)
        if not names:
            return []
        text = self._counted_on(sample, groups, names, keys)
        if text is not None:
            return text
        self._part_ways()
        marks = {name: self._marks.get(name, self._first) for name in names}
        counted = sample.tree.counted
        told_nothing = all(mark.sample.tree.counted is counted for mark in marks.values())
        key = (tuple(marks), keys)
        still = self._still
        if told_nothing and still and still.key == key and still.counted is counted:
            return self._again(still.entries, sample, marks)
        distinct = {id(mark): mark for mark in marks.values()}
        told = _Told((key, _architecture(sample)), groups, sample, marks, keys)
        entries, shown = self._filled(told, told_nothing=told_nothing)
        new = {key: Mark(sample, shown or Shown()) for key in distinct}
        if entries is None:
            entries = self._entries(sample, groups, marks, new, keys)
            self._keep(told, entries, is_rest=told_nothing)
            self._forget(process.pid for process in sample.tree.records.outlines[1])
        self._still = _Still(key, counted, entries) if told_nothing else None
        for name, mark in marks.items():
            self._marks[name] = new[id(mark)]
        if len(distinct) == 1:
            self._together = names, new.popitem()[1]
        return entries.sheet.text()

    def _counted_on(
        self, sample: Sample, groups: _Groups, names: list[str], keys: Keys
    ) -> orjson.Fragment | None:
        """The entries of a report in which real cores counted on and nothing else is new; None elsewhere.

        All that is due was collected together before: one mark stands for all of it, until `_part_ways`.
        """
        layout, together = self._layout, self._together
        if layout is None or layout.is_clocked or together is None or together[0] is not names:
            return None
        last, marks = together[1].sample.tree.counted, dict.fromkeys(names, together[1])
        key = (tuple(names), keys), _architecture(sample)
        if layout.tree.counted is not last or sample.tree.counted is last:
            return None
        if layout.groups is not groups or layout.key != key:
            return None
        entries = self._refilled(layout, _Told(key, groups, sample, marks, keys))
        if entries is None:
            self._layout = None
            return None
        self._together, self._still = (names, Mark(sample, Shown())), None
        return entries.sheet.text()

    def _part_ways(self) -> None:
        """Give each group that was collected together its own mark."""
        if self._together is not None:
            names, mark = self._together
            self._marks.update(dict.fromkeys(names, mark))
            self._together = None

    def _groups_due(self, due: Collection[Group] | None) -> tuple[_Groups, list[str]]:
        """The groups that are due and their names, sorted; made once for the same object."""
        if self._due is None or self._due[0] is not due:
            groups = [(runtime, _due(runtime.groups, due)) for runtime in self._configuration.runtimes]
            self._due = due, groups, sorted({group.name for _, each in groups for group in each})
        return self._due[1:]

    def _filled(self, told: _Told, *, told_nothing: bool) -> tuple[_Entries | None, Shown | None]:
        """Entries that were made before, with the values of now, and the windows of their processes.

        None where their text is another.
        """
        layout, mark = self._layout, told.mark
        if (
            layout is None
            or layout.tree.counted is not mark.sample.tree.counted
            or layout.key != told.key
            or layout.groups != told.groups
        ):
            self._layout = None
            return None, None
        if told_nothing and layout.is_clocked:
            entries = self._rested(layout, told)
            return entries, None if entries is None else mark.shown
        self._layout = None
        entries = self._refilled(layout, told)
        if entries is None or not layout.is_clocked:
            return entries, None
        before, after = layout.tree.processes, told.sample.tree.processes
        return entries, Shown(before=before, after=after, flops_copies=len(told.keys.flops))

    def _rested(self, layout: _Layout, told: _Told) -> _Entries | None:
        """The entries of a report between two publications; None where there was none of this form yet."""
        if self._rest is None or self._rest.told is not layout.entries:
            return None
        self._rest.follow()
        entries = self._rest.entries
        _put_periods(entries, told.sample, told.marks)
        self._put_times(entries, told.sample, told.mark)
        return entries

    def _keep(self, told: _Told, entries: _Entries, *, is_rest: bool) -> None:
        """Keep entries that were made anew, to be filled the next time."""
        if is_rest and self._layout is not None:
            self._rest = _Rest(self._layout.entries, entries)
            return
        is_one = len({id(mark) for mark in told.marks.values()}) == 1
        self._layout = _layout(told.key, told.groups, told.sample.tree, entries) if is_one else None

    def _refilled(self, layout: _Layout, told: _Told) -> _Entries | None:
        """The entries of the last report with the values of now; None where their text is another."""
        sample, entries = told.sample, layout.entries
        others = _refill(layout, told)
        if others is None:
            return None
        for index in others if MEMORY_GROUP in told.marks else ():
            process = sample.tree.processes[index]
            texts = self._memory_text(process, told.keys, _most_models(sample)).values()
            entries.sheet.texts.update(zip(range(*entries.spans[index][MEMORY_GROUP]), texts))
        _put_periods(entries, sample, told.marks)
        if sample.host_taken_ns != told.mark.sample.host_taken_ns:
            self._put_times(entries, sample, told.mark)
        self._layout = layout.of(sample.tree)
        return entries

    def _put_times(self, entries: _Entries, sample: Sample, mark: Mark) -> None:
        """Put the processes' processor time into the entries."""
        numbers, host_taken_ns = entries.sheet.numbers, sample.host_taken_ns
        is_new = host_taken_ns != mark.sample.host_taken_ns
        if is_new and sample.process_times is mark.sample.process_times:  # None of them has worked.
            self._times = dict.fromkeys(entries.times, (host_taken_ns, _NO_TIME))
            kernels.put(numbers, entries.all_times, 0.0)
            return
        for pid, position in entries.times.items():
            numbers[position : position + 2] = self._time_since(mark, pid, sample)

    def _again(self, entries: _Entries, sample: Sample, marks: dict[str, Mark]) -> orjson.Fragment:
        """The entries once more, with new periods and processor times."""
        _put_periods(entries, sample, marks)
        if TIME_GROUP in marks and sample.host_taken_ns != marks[TIME_GROUP].sample.host_taken_ns:
            self._put_times(entries, sample, marks[TIME_GROUP])
        distinct = {id(mark): mark for mark in marks.values()}
        new = {key: Mark(sample, mark.shown) for key, mark in distinct.items()}
        for name, mark in marks.items():
            self._marks[name] = new[id(mark)]
        return entries.sheet.text()

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
            spans: dict[str, _Span] = {}
            since = None
            entries.spans.append(spans)
            for name in names:
                mark, period_s, collect, positions = collectors[name]
                if mark is not since:
                    since, window = mark, window_since(mark, process, sample.taken_ns, len(keys.flops))
                    shown = shown_window(window, mark)
                    if process.elapsed_ns is not None:
                        new[id(mark)].shown.put(shown)
                positions.append(len(numbers))
                numbers.append(period_s)
                begin = len(numbers)
                if name == MEMORY_GROUP:
                    texts = self._memory_text(process, keys, _most_models(sample))
                    for text in texts.values():
                        sheet.add_text(text)
                    shapes.append(tuple(texts))
                    spans[name] = begin, len(numbers)
                    continue
                shape, values = collect(window, shown)
                shapes.append(shape)
                numbers += values
                spans[name] = begin, len(numbers)
                if name == TIME_GROUP:
                    entries.times[process.pid] = begin
                elif name == EXECUTIONS_GROUP:
                    spans.update(_latency_spans(begin + len(OUTCOME_COLUMNS), latencies(window)))
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
            return known[1] if known else _NO_TIME
        seconds = (sample.host_taken_ns - mark.sample.host_taken_ns) / 1e9
        processors = len(sample.host.cpu_ticks) if sample.host else 1
        before, after = mark.sample.process_times.get(pid), sample.process_times.get(pid)
        found = runtime_vcpu_usage(before, after, seconds, processors)
        self._times[pid] = sample.host_taken_ns, found
        return found

    def _form(self, pid: int, shape: _Shape) -> list[bytes]:
        """The text of an entry around its values; the last ones are kept, for executions come and go."""
        known = self._forms.setdefault(pid, [])
        for number, (other, form) in enumerate(known):
            if other == shape:
                if number:
                    known.insert(0, known.pop(number))
                return form
        report = {
            name: {"period": SLOT, **_structure(name, group, shape), "error": _error(name, shape)}
            for name, group in zip(shape.names, shape.groups)
        }
        form = cut(_entry(pid, shape, report))
        known.insert(0, (shape, form))
        del known[_FORMS_KEPT:]
        return form

    def _forget(self, pids: Iterable[int]) -> None:
        """Forget all processes but these."""
        for pid in self._forms.keys() - set(pids):
            for known in (self._forms, self._times, self._memory_texts):
                known.pop(pid, None)
            self._groups_of_tags = [], {}


def _refill(layout: _Layout, told: _Told) -> list[int] | None:
    """Put what processes did since into the numbers of a layout, as `kernels.refill` does."""
    numbers, pair = layout.entries.sheet.numbers, plain_pair(layout.tree.records, told.sample.tree.records)
    copies = len(told.keys.flops)
    if pair is not None:
        return kernels.refill_rows(
            numbers,
            layout.places,
            pair[1].arrangement.cores,
            pair[0].words,
            pair[1].words,
            ROW_WIDTH,
            told.passed_ns,
            (WINDOW_COLUMNS, copies),
            OUTCOME_COLUMNS,
            _MEMORY_COLUMNS,
        )
    return kernels.refill(
        numbers,
        layout.places,
        layout.tree.processes,
        told.sample.tree.processes,
        told.passed_ns,
        WINDOW_COLUMNS,
        copies,
        OUTCOME_COLUMNS,
        _MEMORY_COLUMNS,
        SHARES,
    )


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
    return MODELS_REPORTED // max(1, len(sample.tree.records.outlines[1]))


def _architecture(sample: Sample) -> str:
    devices = sample.tree.records.outlines[0]
    return devices[0].facts.core_architecture if devices else ""


def _put_periods(entries: _Entries, sample: Sample, marks: Mapping[str, Mark]) -> None:
    """Put the time since each group's mark into the entries, which mostly is the same for all groups."""
    begins = {mark.sample.taken_ns for mark in marks.values()}
    if len(begins) == 1:
        kernels.put(entries.sheet.numbers, entries.all_periods, (sample.taken_ns - begins.pop()) / 1e9)
        return
    for name, positions in entries.periods.items():
        period_s = (sample.taken_ns - marks[name].sample.taken_ns) / 1e9
        kernels.put(entries.sheet.numbers, _packed(positions), period_s)


def _packed(positions: Sequence[int]) -> bytes:
    return array("i", positions).tobytes()


def _latency_spans(begin: int, each: Iterable[Sequence[float]]) -> Iterator[tuple[str, _Span]]:
    """Where the percentiles of each kind of latency stand, of those that are told."""
    for kind, told in zip(_LATENCIES, each):
        if told:
            yield kind, (begin, begin + len(told))
            begin += len(told)


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
    ACTIVITY_GROUP: _activity,
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
    if name == ACTIVITY_GROUP:
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
