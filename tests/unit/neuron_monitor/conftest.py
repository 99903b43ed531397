from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from neuron_monitor.api.host import Host
from neuron_monitor.api.instance import Instance
from neuron_monitor.api.published import PublishedProcesses
from neuron_monitor.api.sample import Sampler
from neuron_monitor.api.tree import DeviceTree
from tests.fixtures.neuron_sysfs import TRAINIUM2, SysfsTree

# A busy machine may not run a test for longer than a driver may take: only tests of that wait for less.
PATIENT = {DeviceTree: {"timeout_s": 60.0}, Host: {}, PublishedProcesses: {}}


class Clock:
    """A monotonic clock that tests set forward."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000_000

    def __call__(self) -> int:
        return self.now_ns

    def pass_seconds(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


@pytest.fixture
def tmp_path(tmp_path):
    """A folder in memory where there is one: a device's tree is a thousand small files."""
    if not os.path.isdir("/dev/shm"):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="neuron-monitor-", dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def simulated(tmp_path):
    """A simulated tree of one Trainium2 device."""
    return SysfsTree(tmp_path / "tree", TRAINIUM2)


@pytest.fixture
def real(tmp_path):
    """The same device as the real driver shows it."""
    return SysfsTree(tmp_path / "tree", TRAINIUM2, simulated=False)


@pytest.fixture
def make_sampler(clock, tmp_path):
    """Makes what reads a tree, on the test's clock and away from the machine's firmware."""
    samplers = []

    def make(tree: SysfsTree) -> Sampler:
        sampler = Sampler(
            DeviceTree(str(tree.root), clock=clock), Host(), Instance(str(tmp_path / "none")), clock
        )
        samplers.append(sampler)
        return sampler

    yield make
    for sampler in samplers:
        sampler.close()


@pytest.fixture
def pid():
    """A process that is alive."""
    return os.getpid()


@pytest.fixture(autouse=True)
def closed_descriptors():
    """Closes every tree and host that a test opened, when all else is undone: each keeps its files open.

    A tree waits for its driver as long as `PATIENT` says, where the test says nothing.
    """
    opened = []

    def remembered(kind):
        initialise = kind.__init__

        def remember(made, *arguments, **options):
            initialise(made, *arguments, **{**PATIENT[kind], **options})
            opened.append(made)

        return initialise, remember

    kinds = {kind: remembered(kind) for kind in PATIENT}
    for kind, (_, remember) in kinds.items():
        kind.__init__ = remember
    yield
    for kind, (initialise, _) in kinds.items():
        kind.__init__ = initialise
    for made in opened:
        made.close()
