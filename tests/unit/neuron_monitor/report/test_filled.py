"""Reports that are filled into the last one's text, beside those that are made anew each time."""

import os
import random
import subprocess
from dataclasses import replace

import orjson
import pytest

from neuron_monitor.api.host import Host
from neuron_monitor.api.instance import Instance
from neuron_monitor.api.owners import Owners
from neuron_monitor.api.records import Rows, Told
from neuron_monitor.api.sample import Sampler
from neuron_monitor.api.tree import DeviceTree
from neuron_monitor.report.config import default_configuration, parse_configuration
from neuron_monitor.report.reporter import Reporter
from neuron_tools.device.driver.counts import CoreCounts, Memory
from neuron_tools.device.driver.own_files import OwnFiles
from neuron_tools.device.driver.processes import PublishedProcess, start_ticks
from tests.fixtures.neuron_sysfs import TRAINIUM2, SysfsTree

FACTS = {"target": "trn2", "logical_core_size": 2, "timing": True, "profile": None, "reserved_cores": []}
TWO_PERIODS = {
    "period": "1s",
    "neuron_runtimes": [
        {
            "tag_filter": ".*",
            "metrics": [
                {"type": "neuroncore_counters"},
                {"type": "execution_stats", "period": "2s"},
                {"type": "memory_used"},
            ],
        }
    ],
}


class Program:
    """A process that now and then counts on, allocates, loads, fails, or is no longer timed."""

    def __init__(self, root, pid, cores):
        self.process = PublishedProcess(pid, start_ticks(pid) or 0, {"tag": f"rank {cores[0]}", "rank": None})
        self.files = OwnFiles(root, self.process)
        self.cores = cores
        self.executed = self.failed = self.held = self.loaded = self.elapsed_s = 0

    def publish(self, chance):
        self.executed += chance.choice([0, 3, 3, 3, 40])
        self.failed += chance.random() < 0.1
        self.held = chance.choice([self.held, self.held, self.held + 4096])
        self.loaded += chance.random() < 0.1
        self.elapsed_s += 1
        self.process.cores = {core: self.counted(core) for core in self.cores}
        self.process.host_memory = {"application_memory": Memory(9, chance.choice([7, 7, 8]), 9)}
        models = [
            {"name": "step", "uuid": f"{number}", "core": self.cores[0], "is_running": True}
            for number in range(self.loaded)
        ]
        self.files.write({**FACTS, "timing": chance.random() > 0.03}, models, self.elapsed_s * 10**9)

    def counted(self, core):
        return CoreCounts(
            device=0,
            core=core,
            status={"success": self.executed, "timeout": self.failed},
            inference_count=self.executed,
            flop_count=10**9 * self.executed,
            busy_ns=10**6 * self.executed,
            elapsed_ns=10**9 * self.elapsed_s,
            engine_busy_ns={"tensor": 5 * self.executed},
            traffic={"dma_bytes": 17 * self.executed},
            device_memory={"tensors": Memory(self.held, self.held, self.held)},
            latency={kind: {1000 + kind_: self.executed} for kind_, kind in enumerate(("device", "total"))},
        )


@pytest.fixture
def programs(simulated):
    """Three programs of two cores each, on one device."""
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(3)]
    made = [Program(simulated.root, each.pid, (2 * at, 2 * at + 1)) for at, each in enumerate(sleepers)]
    yield made
    for program, sleeper in zip(made, sleepers):
        program.files.close()
        sleeper.kill()
        sleeper.wait()


def forgetful(reporter):
    """A reporter that fills nothing in."""
    made = reporter._runtime_data
    made._layout = made._rest = made._still = None
    return reporter


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("told", [None, TWO_PERIODS], ids=["default", "two periods"])
def test_reports_that_are_filled_in_equal_those_that_are_made_anew(
    make_sampler, clock, simulated, programs, seed, told
):
    chance = random.Random(seed)
    for program in programs:
        program.publish(chance)
    configuration = default_configuration(1.0) if told is None else parse_configuration(told)
    sampler = make_sampler(simulated)
    first = sampler.sample()
    filled, anew = Reporter(configuration, first), Reporter(configuration, first)
    for step in range(60):
        clock.pass_seconds(0.5)
        for program in programs:
            if chance.random() < 0.8 and step % 3:
                program.publish(chance)
        sample = sampler.sample()
        due = None if told is None or step % 2 else [*configuration.runtimes[0].groups[:1]]
        one, other = filled.report(sample, due), forgetful(anew).report(sample, due)
        assert orjson.loads(orjson.dumps(one)) == orjson.loads(orjson.dumps(other)), step


def test_what_pages_tell_is_what_whoever_looks_for_the_first_time_finds(
    make_sampler, clock, simulated, programs
):
    chance = random.Random(1)
    sampler = make_sampler(simulated)
    for _ in range(40):
        for program in programs:
            program.publish(chance)
        clock.pass_seconds(0.5)
        kept = sampler.sample().tree.processes
        fresh = make_sampler(simulated)
        assert kept == fresh.sample().tree.processes
        fresh.close()


COUNTED = ("success", "hw_error", "nc_time_in_use", "flop_count")


def add_owner(folder, number, pid, cores, size):
    """A process that holds the device of the cores that it was given."""
    (folder / str(pid) / "fd").mkdir(parents=True)
    (folder / str(pid) / "fd" / "3").symlink_to(f"/dev/neuron{number}")
    told = f"NEURON_RT_VISIBLE_CORES={cores}\0NEURON_LOGICAL_NC_CONFIG={size}"
    (folder / str(pid) / "environ").write_text(told)


def count_on(tree, chance, counted):
    """Counters of a driver that now and then stands still, fails, is reset, or holds other memory."""
    for core in range(tree.devices * tree.chip.cores):
        if chance.random() < 0.2:
            continue
        known = counted.setdefault(
            core, dict.fromkeys(("success", "hw_error", "nc_time_in_use", "flop_count"), 0)
        )
        known["success"] += chance.randrange(9)
        known["hw_error"] += chance.random() < 0.05
        known["nc_time_in_use"] += chance.randrange(400_000)
        known["flop_count"] += chance.randrange(1 << 56)
        if chance.random() < 0.03:
            counted[core] = known = dict.fromkeys(known, 1)
        tree.count(core, **known)
        if chance.random() < 0.1:
            held = chance.randrange(1 << 40)
            tree.count(core, tensors=held, device_memory=held)
    if chance.random() < 0.1:
        tree.write("neuron1/stats/hardware/mem_ecc_corrected/total", chance.randrange(9))
        tree.write("neuron0/stats/memory_usage/host_mem/tensors/total", chance.randrange(9))


@pytest.mark.parametrize("size", [1, 2])
def test_reports_of_a_real_host_equal_those_of_its_records(tmp_path, clock, size):
    chance, counted = random.Random(size), {}
    tree, processes = SysfsTree(tmp_path / "tree", TRAINIUM2, 2, simulated=False), tmp_path / "proc"
    own = os.getpid(), os.getppid()
    add_owner(processes, 0, own[0], f"0-{7 // size}", size)
    add_owner(processes, 1, own[1], f"{8 // size}-{15 // size}", size)
    devices = DeviceTree(str(tree.root), clock=clock, owners=Owners(str(processes)))
    sampler = Sampler(devices, Host(), Instance(str(tmp_path / "none")), clock)
    configuration = default_configuration(1.0)
    seen, first = set(), sampler.sample()

    def in_records(sample):
        return replace(
            sample, tree=replace(sample.tree, records=Told(sample.tree.devices, sample.tree.processes))
        )

    filled, anew = Reporter(configuration, first), Reporter(configuration, in_records(first))
    for step in range(80):
        clock.pass_seconds(chance.choice([0.05, 0.5, 1]))
        count_on(tree, chance, counted)
        sample = sampler.sample()
        seen.add(type(sample.tree.records))
        one, other = filled.report(sample), anew.report(in_records(sample))
        assert orjson.loads(orjson.dumps(one)) == orjson.loads(orjson.dumps(other)), step
    assert seen == {Rows}
    fresh = DeviceTree(str(tree.root), clock=clock, owners=Owners(str(processes)))
    for _ in range(3):
        clock.pass_seconds(13)
        last = sampler.sample()
    assert last.tree.processes == fresh.read().processes
