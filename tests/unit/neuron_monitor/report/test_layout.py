"""Reports of a real host whose text is filled anew: the same as those that are made from nothing."""

import random

import orjson
import pytest

from neuron_monitor.api.layout import COLUMN_OF
from neuron_monitor.api.owners import Owner, Owners
from neuron_monitor.api.sample import Sampler
from neuron_monitor.api.tree import DeviceTree
from neuron_monitor.report.config import default_configuration
from neuron_monitor.report.reporter import Reporter
from tests.fixtures.neuron_sysfs import STATUSES, TRAINIUM1, TRAINIUM2, SysfsTree

COUNTED = ("nc_time_in_use", "inference_count", "flop_count", "success")


class ChangingOwners(Owners):
    """Processes that a test names."""

    def __init__(self, owners):
        super().__init__()
        self.owners = tuple(owners)

    def find(self, now_ns):
        return self.owners


def owner(pid, device, cores, size=1):
    return Owner(pid, f"job-{pid}", "python train.py", "2.31", frozenset({device}), frozenset(cores), size)


@pytest.fixture
def host(tmp_path, clock):
    """Makes a real host of two devices with a process on each, and what samples it."""

    def make(chip=TRAINIUM1, size=1):
        tree = SysfsTree(tmp_path / "tree", chip, 2, simulated=False)
        logical = chip.cores // size
        owners = ChangingOwners(
            owner(number + 1, number, range(number * logical, (number + 1) * logical), size)
            for number in range(2)
        )
        devices = DeviceTree(str(tree.root), clock=clock, owners=owners)
        return tree, owners, Sampler(devices, clock=clock)

    return make


def text(report):
    return orjson.loads(orjson.dumps(report))


def made_anew(reporter):
    """A reporter that fills no text of before."""

    def report(sample):
        reporter._runtime_data._layout = None
        return text(reporter.report(sample))

    return report


@pytest.mark.parametrize(("chip", "size"), [(TRAINIUM1, 1), (TRAINIUM2, 1), (TRAINIUM2, 2)])
def test_a_report_that_is_filled_anew_is_that_which_is_made_anew(host, clock, chip, size):
    tree, owners, sampler = host(chip, size)
    first = sampler.sample()
    configuration = default_configuration(0.1)
    filled, anew = Reporter(configuration, first), made_anew(Reporter(configuration, first))
    chance, counted = random.Random(7), dict.fromkeys(range(2 * chip.cores), 0)
    was_filled = 0
    for look in range(60):
        for core in counted:
            counted[core] = 0 if chance.random() < 0.02 else counted[core] + chance.randrange(3)
            tree.count(core, **dict.fromkeys(COUNTED, 1000 * counted[core]))
        core = chance.randrange(len(counted))
        if look % 5 == 1:
            tree.count(core, **{chance.choice(STATUSES): look})
        if look % 7 == 1:
            tree.count(core, device_memory=look << 20, tensors=look << 20)
        if look % 20 == 19:
            owners.owners = owners.owners[::-1]
        clock.pass_seconds(0.3)
        sample = sampler.sample()
        was_filled += filled._runtime_data._layout is not None
        assert text(filled.report(sample)) == anew(sample)
    assert was_filled > 50


def test_a_core_that_goes_and_a_process_that_comes_make_another_text(host, clock):
    tree, owners, sampler = host(TRAINIUM2)
    reporter = Reporter(default_configuration(0.1), sampler.sample())

    def cores():
        clock.pass_seconds(11)
        report = text(reporter.report(sampler.sample()))
        told = [entry["report"]["neuroncore_counters"] for entry in report["neuron_runtime_data"]]
        return [sorted(map(int, each["neuroncores_in_use"])) for each in told]

    both = [list(range(8)), list(range(8, 16))]
    assert cores() == cores() == both
    (tree.root / "neuron0/neuron_core3").rename(tree.root / "gone")
    assert cores() == cores() == [[0, 1, 2, 4, 5, 6, 7], both[1]]
    (tree.root / "gone").rename(tree.root / "neuron0/neuron_core3")
    owners.owners = (*owners.owners, owner(9, 1, [8]))
    assert cores() == cores() == [*both, [8]]


def test_the_columns_of_memory_and_statuses_stand_together():
    names = list(COLUMN_OF)
    assert names[COLUMN_OF["success"] :][: len(STATUSES)] == list(STATUSES)
