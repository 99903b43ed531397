"""A tree under attack: nodes torn, huge, negative, binary, unreadable, gone; devices half made or plugged."""

import random
import shutil
from collections import Counter

import orjson
import pytest

from neuron_monitor.api.device import LOOK_INTERVAL_NS
from neuron_monitor.api.tree import DeviceTree
from neuron_monitor.prometheus.exporter import Exporter
from neuron_monitor.report.config import default_configuration
from neuron_monitor.report.reporter import Reporter
from tests.fixtures.neuron_sysfs import INFERENTIA2, SysfsTree, process_core

BAD_NODES = 1000
AT_A_TIME = 20
# What a device is (its family, its serial number) may be read while it is spoilt, and holds until then.
UNTIL_A_FULL_LOOK_S = LOOK_INTERVAL_NS / 1e9 + 1
HUGE = b"1234567890123456789012345\n"
TEXTS = (b"", HUGE, b"-5\n", b"\xff\xfe\x00\x81", b"12 34\n", b"9" * 4096, b"nan\n", b"\0\0\0\0", b"{", b"[")


def spoil(place, chance):
    """Do something bad to a node; gives back what it was, for `mend`."""
    content = place.read_bytes()
    kind = chance.randrange(len(TEXTS) + 4)
    if kind < len(TEXTS):
        place.write_bytes(TEXTS[kind])
        return content
    place.unlink()
    if kind == len(TEXTS):
        place.mkdir()
    elif kind == len(TEXTS) + 1:
        place.symlink_to(place)
    elif kind == len(TEXTS) + 2:
        place.write_bytes(content[: len(content) // 2])
    return content


def mend(place, content):
    if place.is_dir() and not place.is_symlink():
        place.rmdir()
    else:
        place.unlink(missing_ok=True)
    place.write_bytes(content)


def totals(tree):
    reading = tree.read()
    return [(device.facts, device.cores, device.ecc, device.host_memory) for device in reading.devices]


@pytest.mark.parametrize("simulated", [True, False])
def test_a_thousand_bad_nodes_end_nothing_and_leave_no_wrong_total(
    tmp_path, make_sampler, clock, pid, simulated
):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2, 2, simulated=simulated)
    for core in range(4):
        tree.count(core, success=7, inference_count=7, nc_time_in_use=500, tensors=1 << 20)
    if simulated:
        tree.publish(pid, [0, 1], cores={str(core): process_core(tree, core) for core in (0, 1)})
    nodes = sorted(place for place in tree.root.rglob("*") if place.is_file())
    sampler = make_sampler(tree)
    reporter, exporter = Reporter(default_configuration(1.0), sampler.sample()), Exporter(sampler, 1.0)
    chance = random.Random(20)
    for _ in range(BAD_NODES // AT_A_TIME):
        chosen = chance.sample(nodes, AT_A_TIME)
        contents = [spoil(place, chance) for place in chosen]
        clock.pass_seconds(3)
        sample = sampler.sample()
        report = orjson.loads(orjson.dumps(reporter.report(sample)))
        exporter.update()
        assert exporter.text()
        faults = report["system_data"]["neuron_device_status"]["unreadable"]
        assert len({str(fault) for fault in faults}) == len(faults)
        for place, content in zip(chosen, contents):
            mend(place, content)
    clock.pass_seconds(UNTIL_A_FULL_LOOK_S)
    sampler.sample()
    clock.pass_seconds(3)
    last = sampler.sample()
    assert last.tree.faults == ()
    fresh = DeviceTree(str(tree.root), clock=clock)
    assert [
        (device.facts, device.cores, device.ecc, device.host_memory) for device in last.tree.devices
    ] == totals(fresh)


def plugged(tree, away):
    """Take a device away or plug it in again, whole, as a driver does."""
    if away.exists():
        away.rename(tree.root / away.name)
        return
    away.parent.mkdir(exist_ok=True)
    (tree.root / away.name).rename(away)


def warnings_of(sample):
    """How often each node is told of in one sample."""
    return Counter(fault.path for fault in sample.tree.faults)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_devices_come_and_go_while_nodes_are_attacked(tmp_path, make_sampler, clock, seed):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2, 3, simulated=False)
    for core in range(6):
        tree.count(core, success=7 + core, inference_count=7, nc_time_in_use=500, tensors=1 << 20)
    nodes = sorted(
        place for place in tree.root.rglob("*") if place.is_file() and "neuron2" not in place.parts
    )
    sampler = make_sampler(tree)
    reporter = Reporter(default_configuration(1.0), sampler.sample())
    chance = random.Random(seed)
    for _ in range(100):
        place = chance.choice(nodes)
        content = spoil(place, chance)
        if chance.random() < 0.3:
            plugged(tree, tmp_path / "away" / "neuron2")
        clock.pass_seconds(3)
        sample = sampler.sample()
        orjson.dumps(reporter.report(sample))
        assert all(times == 1 for times in warnings_of(sample).values())
        assert len(warnings_of(sample)) <= 1
        mend(place, content)
        clock.pass_seconds(UNTIL_A_FULL_LOOK_S)
        sampler.sample()
        clock.pass_seconds(3)
        after = sampler.sample()
        reading = [(each.facts, each.cores, each.ecc, each.host_memory) for each in after.tree.devices]
        fresh = DeviceTree(str(tree.root), clock=clock)
        assert reading == totals(fresh)
        fresh.close()


@pytest.mark.parametrize("simulated", [True, False])
@pytest.mark.parametrize("node", ["success", "tensors", "nc_time_in_use", "flop_count"])
def test_a_number_of_25_digits_is_one_fault_and_keeps_the_last_value(tmp_path, clock, node, simulated):
    made = SysfsTree(tmp_path / "tree", INFERENTIA2, simulated=simulated)
    made.count(1, **{node: 42})
    tree = DeviceTree(str(made.root), clock=clock)
    tree.read()
    made.count(1, **{node: HUGE.decode().strip()})
    clock.pass_seconds(13)  # memory by category is read anew then, whatever its total
    reading = tree.read()
    clock.pass_seconds(13)
    again = tree.read()
    assert reading.devices[0].cores[1].count(node) == 42
    assert [fault.reason for fault in again.faults] == ["out of range: 123456789012345678901234"]
    made.count(1, **{node: 43})
    clock.pass_seconds(3)
    healed = tree.read()
    assert (healed.devices[0].cores[1].count(node), healed.faults) == (43, ())


@pytest.mark.parametrize(
    "told",
    [
        {"cores": {"0": {"device": 0, "core": 0, "status": {"success": 1e25}}}},
        {"cores": {"0": {"device": 0, "core": 0, "status": {"success": -1}}}},
        {"cores": {"0": {"device": 0, "core": 0, "device_memory": {"tensors": {"present": 1 << 60}}}}},
        {"logical_core_size": -2},
        {"models": [3]},
        {"models": [{"execution_count": "many"}]},
        {"host_memory": {"tensors": {"present": 1e30}}},
        {"rank": {"a": 1}},
    ],
)
def test_a_process_that_tells_nonsense_is_one_fault(tmp_path, clock, pid, told):
    made = SysfsTree(tmp_path / "tree", INFERENTIA2)
    made.publish(pid, [0], **told)
    tree = DeviceTree(str(made.root), clock=clock)
    reading = tree.read()
    assert reading.processes == ()
    assert len(reading.faults) == 1
    made.publish(pid, [0])
    clock.pass_seconds(1)
    assert [process.pid for process in tree.read().processes] == [pid]


def test_a_device_that_is_read_while_it_is_made_is_right_in_the_next_period(tmp_path, clock):
    made = SysfsTree(tmp_path / "tree", INFERENTIA2, 3, simulated=False)
    device = made.root / "neuron0"
    held = tmp_path / "held"
    held.mkdir()
    for name in ("core_count", "info", "neuron_core1"):
        shutil.move(device / name, held / name)
    tree = DeviceTree(str(made.root), clock=clock)
    early = tree.read()
    assert early.devices[0].facts.architecture == ""
    for name in ("core_count", "info", "neuron_core1"):
        shutil.move(held / name, device / name)
    clock.pass_seconds(1)
    tree.read()
    clock.pass_seconds(1)
    late = tree.read()
    assert [core.id for each in late.devices for core in each.cores] == [0, 1, 2, 3, 4, 5]
    assert late.core_count() == 6
    assert {each.facts.architecture for each in late.devices} == {"NDv2"}


def test_a_device_that_goes_leaves_the_numbers_of_the_others(tmp_path, clock):
    made = SysfsTree(tmp_path / "tree", INFERENTIA2, 3, simulated=False)
    tree = DeviceTree(str(made.root), clock=clock)
    tree.read()
    shutil.move(made.root / "neuron0", tmp_path / "away")
    clock.pass_seconds(1)
    assert [core.id for each in tree.read().devices for core in each.cores] == [2, 3, 4, 5]


def test_a_simulated_tree_that_is_being_made_has_no_devices_yet(tmp_path, clock):
    made = SysfsTree(tmp_path / "tree", INFERENTIA2, 2)
    (made.root / "processes").rename(tmp_path / "later")
    tree = DeviceTree(str(made.root), clock=clock)
    assert tree.read().devices == ()
    (tmp_path / "later").rename(made.root / "processes")
    clock.pass_seconds(1)
    assert len(tree.read().devices) == 2


def test_a_torn_description_of_the_driver_leaves_the_last_one(tmp_path, clock):
    made = SysfsTree(tmp_path / "tree", INFERENTIA2)
    tree = DeviceTree(str(made.root), clock=clock)
    tree.read()
    (made.root / "driver.json").write_text('{"driver": ')
    clock.pass_seconds(1)
    reading = tree.read()
    assert (reading.instance_type, reading.is_simulated) == ("inf2.xlarge", True)
    assert [fault.path for fault in reading.faults] == [str(made.root / "driver.json")]
