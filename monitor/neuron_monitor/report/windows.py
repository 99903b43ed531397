"""The windows of one report: each process at the start and the end of a group's period."""

from __future__ import annotations

from dataclasses import dataclass

from neuron_monitor.api.readings import ProcessReading, TreeReading
from neuron_monitor.api.sample import Sample
from neuron_monitor.report.process_groups import ProcessWindow, make_window


@dataclass(slots=True)
class Mark:
    """A group's last collection.

    Attributes:
        sample: What it was made of.
        processes: The processes of that sample by pid.
        windows: Of each process, the last window in which it told something.
    """

    sample: Sample
    processes: dict[int, ProcessReading]
    windows: dict[int, ProcessWindow]


class WindowMaker:
    """Makes the windows of one report: groups whose periods began together share them."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._made: dict[int, dict[int, ProcessWindow]] = {}
        self._last: tuple[ProcessReading | None, Sample, ProcessWindow | None] = (None, sample, None)

    def make(self, process: ProcessReading, mark: Mark) -> ProcessWindow:
        """The window of a process since a mark."""
        last, since, known = self._last
        if last is process and since is mark.sample and known is not None:
            return known
        made = self._made.setdefault(id(mark.sample), {})
        window = made.get(process.pid)
        if window is None:
            wall_ns = self._sample.taken_ns - mark.sample.taken_ns
            window = made[process.pid] = _window(process, mark, wall_ns)
        self._last = process, mark.sample, window
        return window

    def shown_window(self, process: ProcessReading, mark: Mark) -> ProcessWindow:
        """The window whose rates are reported: the last one in which the process told something.

        A simulated process publishes four times a second: a report made between two of its publications shows
        the rates of the last.
        """
        return _shown(self.make(process, mark), mark)

    def shown(self, mark: Mark) -> dict[int, ProcessWindow]:
        """The windows that are reported of the processes, by pid."""
        here = {process.pid for process in self._sample.tree.processes}
        windows = {pid: window for pid, window in mark.windows.items() if pid in here}
        made = self._made.get(id(mark.sample), {})
        windows.update((pid, _shown(window, mark)) for pid, window in made.items())
        return windows


def _shown(window: ProcessWindow, mark: Mark) -> ProcessWindow:
    after = window.after
    if after.elapsed_ns is None or after.published_at_s != window.before.published_at_s:
        return window
    return mark.windows.get(after.pid, window)


def by_pid(tree: TreeReading) -> dict[int, ProcessReading]:
    """The processes of a reading by their pid."""
    return {process.pid: process for process in tree.processes}


def _window(process: ProcessReading, mark: Mark, wall_ns: int) -> ProcessWindow:
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
