"""A monitor that runs for a long time: whether it grows, and whether a sample costs more in the end.

Nothing sleeps, and the clock is simulated: a million samples at 1 Hz are eleven days. The host is small, its
counters all change, and processes come and go, for what is kept of them must go too.
"""

from __future__ import annotations

import os
import time
from itertools import count
from pathlib import Path
from statistics import median

import orjson
import psutil

from neuron_monitor.api.host import Host
from neuron_monitor.api.instance import Instance
from neuron_monitor.api.owners import Owner, Owners
from neuron_monitor.api.sample import Sampler
from neuron_monitor.api.tree import DeviceTree
from neuron_monitor.api.view import Windows
from neuron_monitor.report.config import default_configuration
from neuron_monitor.report.reporter import Reporter
from neuron_monitor.watch.rules import Thresholds, Watcher, all_rules
from neuron_tools.frozen import frozen
from tests.fixtures.neuron_sysfs import INFERENTIA2, SysfsTree

SAMPLES_OF_A_PROCESS = 1000
PARTS = 10
CHUNKS_OF_A_PART = 50
_SECOND_NS = 1_000_000_000
_COUNTED = ("nc_time_in_use", "inference_count", "flop_count", "success")
_FIRST_PID = 1 << 22  # more than a host has


@frozen
class LongWatch:
    """What a long run showed.

    Attributes:
        grown_bytes: Memory at the end less that after the first tenth.
        first_ns, last_ns: Processor time of a sample in the first and the last tenth: the median of chunks.
    """

    grown_bytes: int
    first_ns: float
    last_ns: float


class _Passing(Owners):
    """One process at a time, each for so many samples."""

    def __init__(self) -> None:
        super().__init__()
        self.pid = _FIRST_PID
        self._found: tuple[Owner, ...] = ()

    def find(self, now_ns: int) -> tuple[Owner, ...]:
        """The process of now."""
        if not self._found or self._found[0].pid != self.pid:
            self._found = (Owner(self.pid, str(self.pid), "train.py", "2", frozenset({0}), None, 1),)
        return self._found


def watch(folder: Path, samples: int) -> LongWatch:
    """Take so many samples, each with its report and all rules, and see what it costs."""
    tree = SysfsTree(folder / "tree", INFERENTIA2, simulated=False)
    nodes = [os.open(path, os.O_WRONLY) for name in _COUNTED for path in tree.root.rglob(f"{name}/total")]
    clock, passing = count(0, _SECOND_NS // 2).__next__, _Passing()
    sampler = Sampler(DeviceTree(str(tree.root), clock=clock, owners=passing), Host(), Instance(), clock)
    first = sampler.sample()
    reporter, windows = Reporter(default_configuration(1.0), first), Windows(first)
    watcher, process = Watcher(all_rules(Thresholds()), 300.0), psutil.Process()

    def take(number: int) -> None:
        passing.pid = _FIRST_PID + number // SAMPLES_OF_A_PROCESS
        for node in nodes:
            os.pwrite(node, b"%d\n" % (number * 7), 0)
        sample = sampler.sample()
        orjson.dumps(reporter.report(sample))
        watcher.look(windows.advance(sample))

    chunk = max(1, samples // PARTS // CHUNKS_OF_A_PART)
    costs: list[float] = []
    held_bytes = 0
    for number in range(PARTS * CHUNKS_OF_A_PART):
        began_ns = time.process_time_ns()
        for each in range(number * chunk, (number + 1) * chunk):
            take(each)
        costs.append((time.process_time_ns() - began_ns) / chunk)
        if number == CHUNKS_OF_A_PART - 1:
            held_bytes = process.memory_info().rss
    grown_bytes = process.memory_info().rss - held_bytes
    sampler.close()
    for node in nodes:
        os.close(node)
    return LongWatch(grown_bytes, median(costs[:CHUNKS_OF_A_PART]), median(costs[-CHUNKS_OF_A_PART:]))
