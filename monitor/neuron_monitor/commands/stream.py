"""`neuron-monitor`: one JSON report a line on standard output, for ever."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import orjson

from neuron_monitor.api.kubernetes import PodWatch
from neuron_monitor.api.sample import Sampler
from neuron_monitor.report.config import Configuration
from neuron_monitor.report.reporter import Report, Reporter, as_values
from neuron_monitor.report.schedule import Schedule
from neuron_monitor.report.sinks import Sink
from neuron_monitor.report.spelling import DEFAULT_SPELLING, Spelling

# The first report is of this short first period, so that whoever started the monitor sees that it works.
FIRST_PERIOD_NS = 100_000_000
# As much as a user's pipe may hold (man 7 pipe, pipe-max-size).
PIPE_BYTES = 1 << 20


def reports(
    sampler: Sampler,
    configuration: Configuration,
    *,
    spelling: Spelling = DEFAULT_SPELLING,
    pods: PodWatch | None = None,
    clock: Callable[[], int] = time.monotonic_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Report]:
    """Reports, each when some group is due; endless."""
    first = sampler.sample()
    reporter = Reporter(configuration, first, spelling=spelling, pods=pods)
    shortest_ns = round(min(configuration.periods()) * 1e9)
    schedule = Schedule(configuration, first.taken_ns, min(FIRST_PERIOD_NS, shortest_ns))
    while True:
        remaining_ns = schedule.next_ns() - clock()
        if remaining_ns > 0:
            sleep(remaining_ns / 1e9)
        due = schedule.take_due(clock())
        if due:
            yield reporter.report(sampler.sample(), due)


class Lines:
    """Writes reports to standard output, each as one line at once."""

    def __init__(self) -> None:
        self._descriptor = sys.stdout.fileno()
        _widen_pipe(self._descriptor)

    def write(self, report: Report) -> None:
        """Write one report.

        Raises:
            OSError: Standard output cannot be written to: its reader is gone, or its disk is full.
        """
        _write_whole(self._descriptor, orjson.dumps(report, option=orjson.OPT_APPEND_NEWLINE))


def write_reports(found: Iterator[Report], sinks: Sequence[Sink], count: int | None = None) -> None:
    """Hand each report to all sinks; at most `count` of them.

    Standard output takes parts that are JSON text already as they are; every other sink gets plain values.
    """
    for number, report in enumerate(found, start=1):
        values: Report | None = None
        for sink in sinks:
            if isinstance(sink, Lines):
                sink.write(report)
            else:
                values = values or as_values(report)
                sink.write(values)
        if number == count:
            return


def _widen_pipe(descriptor: int) -> None:
    """Let a whole report go into a pipe at once, not bit by bit as its reader reads it."""
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        pass  # The user's pipes hold as much as they may.


def _write_whole(descriptor: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(descriptor, view) :]
