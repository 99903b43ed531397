"""The windows of a report: each process at the start and the end of a group's period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neuron_monitor.api.readings import ProcessReading
from neuron_monitor.api.sample import Sample
from neuron_monitor.report.process_groups import ProcessWindow, make_window


class Shown:
    """Of each process that publishes, the last window in which it told something.

    Args:
        windows: Those that are made.
        before: Readings of all processes, of which the others are made when they are asked for.
        after: The same later.
        flops_copies: How often the report has each core's FLOP a second.
    """

    def __init__(
        self,
        windows: dict[int, ProcessWindow] | None = None,
        before: Sequence[ProcessReading] = (),
        after: Sequence[ProcessReading] = (),
        flops_copies: int = 0,
    ) -> None:
        self._windows = {} if windows is None else windows
        self._pairs = before, after
        self._flops_copies = flops_copies

    def get(self, pid: int, otherwise: ProcessWindow) -> ProcessWindow:
        """A process's window."""
        if self._pairs[0]:
            pairs = zip(*self._pairs)
            self._windows = {new.pid: make_window(old, new, 0, self._flops_copies) for old, new in pairs}
            self._pairs = (), ()
        return self._windows.get(pid, otherwise)

    def put(self, window: ProcessWindow) -> None:
        """Take a process's window."""
        self._windows[window.after.pid] = window


@dataclass(slots=True)
class Mark:
    """A group's last collection.

    Attributes:
        sample: What it was made of.
        shown: What was reported last of them.
    """

    sample: Sample
    shown: Shown
    _by_pid: dict[int, ProcessReading] | None = None

    def process(self, pid: int) -> ProcessReading | None:
        """A process as it was then."""
        if self._by_pid is None:
            self._by_pid = {process.pid: process for process in self.sample.tree.processes}
        return self._by_pid.get(pid)


def window_since(mark: Mark, process: ProcessReading, taken_ns: int, flops_copies: int) -> ProcessWindow:
    """The window of a process between a mark and now.

    Args:
        flops_copies: How often the report has each core's FLOP a second.
    """
    before = mark.process(process.pid)
    if before is None or (process.elapsed_ns or 0) < (before.elapsed_ns or 0):
        before = _at_start(process)  # It is new, or another process of the same pid.
    return make_window(before, process, taken_ns - mark.sample.taken_ns, flops_copies)


def shown_window(window: ProcessWindow, mark: Mark) -> ProcessWindow:
    """The window whose rates are reported: the last one in which the process told something.

    A simulated process publishes four times a second: a report made between two of its publications shows
    the rates of the last.
    """
    after = window.after
    if after.elapsed_ns is None or after.published_at_s != window.before.published_at_s:
        return window
    return mark.shown.get(after.pid, window)


def _at_start(process: ProcessReading) -> ProcessReading:
    """What a process that is new had counted when the period began: nothing, where its counts are its own.

    A real driver counts for the core, which may have worked for others before: there its period begins now.
    """
    if process.elapsed_ns is None:
        return process
    return process._replace(cores={}, elapsed_ns=0, published_at_s=0.0)
