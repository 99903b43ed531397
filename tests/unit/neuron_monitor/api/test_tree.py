import shutil
import threading

import pytest

from neuron_monitor.api import device as device_module, kernels
from neuron_monitor.api.tree import DeviceTree
from tests.fixtures.neuron_sysfs import INFERENTIA2, TRAINIUM2, SysfsTree, held, process_core


@pytest.fixture
def open_tree(clock):
    trees = []

    def make(tree, **options):
        trees.append(DeviceTree(str(tree.root), clock=clock, **options))
        return trees[-1]

    yield make
    for tree in trees:
        tree.close()


def test_facts_of_a_device(real, open_tree):
    facts = open_tree(real).read().devices[0].facts
    assert (facts.index, facts.core_count, facts.name, facts.family) == (0, 8, "Trainium2", "Trn2")
    assert (facts.architecture, facts.core_architecture) == ("NDv3", "NCv3")


def test_counters_of_a_real_core(real, open_tree):
    real.count(2, success=5, flop_count=10**12, nc_time_in_use=250, inference_count=5, tensors=1 << 20)
    core = open_tree(real).read().devices[0].cores[2]
    assert (core.statuses["success"], core.count("flop_count"), core.busy_us) == (5, 10**12, 250)
    assert core.device_memory["tensors"] == 1 << 20
    assert core.elapsed_ns is None


def test_a_change_is_seen_at_the_next_reading(real, open_tree, clock):
    tree = open_tree(real)
    tree.read()
    real.count(0, inference_count=3, success=3, flop_count=9)
    clock.pass_seconds(0.05)
    core = tree.read().devices[0].cores[0]
    assert (core.statuses["success"], core.count("flop_count")) == (3, 9)


def test_an_error_that_moves_nothing_else_is_seen_within_two_seconds(real, open_tree, clock):
    tree = open_tree(real)
    tree.read()
    real.count(0, hw_error=1)
    clock.pass_seconds(2.1)
    assert tree.read().devices[0].cores[0].statuses["hw_error"] == 1


def test_an_error_among_executions_that_end_well_is_seen_within_six_seconds(real, open_tree, clock):
    tree = open_tree(real)
    seen = []
    for second in range(20):
        for core in range(8):
            real.count(core, success=second, hw_error=second)
        clock.pass_seconds(1)
        cores = tree.read().devices[0].cores
        assert {core.statuses["success"] for core in cores} == {second}
        seen.append([second - core.statuses["hw_error"] for core in cores])
    assert max(max(each) for each in seen[6:]) <= 6


def test_what_changed_since_the_last_look_is_read_for_all_devices_at_once(tmp_path, open_tree, clock):
    host = SysfsTree(tmp_path / "devices", TRAINIUM2, 3, simulated=False)
    tree = open_tree(host)
    for _ in range(4):
        tree.read()
        clock.pass_seconds(1.0)
    host.count(9, device_memory=5 << 20, tensors=5 << 20)
    host.write("neuron2/stats/hardware/mem_ecc_corrected/total", "7\n")
    host.write("neuron0/stats/power/utilization", "POWER_STATUS_VALID,1757400000,1.0,30.5,15.0\n")
    clock.pass_seconds(1.0)
    assert tree.read().devices[1].cores[1].device_memory["tensors"] == 5 << 20
    clock.pass_seconds(1.0)
    power, ecc = tree.read().devices[0].power, tree.read().devices[2].ecc
    assert power is not None
    assert power.average_percent == 15.0
    assert ecc["mem_ecc_corrected"] == 7


def test_a_reading_in_which_nothing_changed_is_the_same_object(real, open_tree, clock):
    tree = open_tree(real)
    first = tree.read()
    clock.pass_seconds(0.05)
    assert tree.read().devices[0] is first.devices[0]


def test_physical_cores_are_numbered_through_the_host(tmp_path, open_tree):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2, 3, simulated=False)
    reading = open_tree(tree).read()
    assert [core.id for device in reading.devices for core in device.cores] == [0, 1, 2, 3, 4, 5]


def test_a_tree_that_is_not_there_is_no_devices(tmp_path, clock):
    reading = DeviceTree(str(tmp_path / "none"), clock=clock).read()
    assert (reading.devices, reading.processes, reading.faults) == ((), (), ())


def test_a_device_that_vanishes_and_comes_back(real, open_tree, clock, tmp_path):
    tree = open_tree(real)
    tree.read()
    shutil.move(real.root / "neuron0", tmp_path / "away")
    clock.pass_seconds(1)
    assert tree.read().devices == ()
    shutil.move(tmp_path / "away", real.root / "neuron0")
    real.count(1, success=7, inference_count=7)
    clock.pass_seconds(1)
    reading = tree.read()
    assert reading.devices[0].cores[1].statuses["success"] == 7
    assert reading.faults == ()


def test_a_driver_that_was_loaded_anew_is_read_from_its_new_nodes(real, open_tree, clock):
    real.count(0, success=9, inference_count=9)
    tree = open_tree(real)
    tree.read()
    shutil.rmtree(real.root / "neuron0")
    again = SysfsTree(real.root, TRAINIUM2, simulated=False)
    again.count(0, success=1, inference_count=1)
    for _ in range(2):
        clock.pass_seconds(1)
        reading = tree.read()
    assert reading.devices[0].cores[0].statuses["success"] == 1


def test_garbage_in_a_node_is_told_and_the_rest_is_read(real, open_tree, clock):
    real.count(0, success=4, inference_count=4)
    real.write("neuron0/neuron_core0/stats/status/failure/total", "\x00garbage")
    real.write("neuron0/stats/hardware/mem_ecc_corrected/total", "")
    reading = open_tree(real).read()
    assert reading.devices[0].cores[0].statuses["success"] == 4
    assert sorted(fault.path.rpartition("stats/")[2] for fault in reading.faults) == [
        "hardware/mem_ecc_corrected/total",
        "status/failure/total",
    ]


def test_missing_counters_are_told(real, open_tree):
    shutil.rmtree(real.root / "neuron0/neuron_core3/stats/other_info/flop_count")
    reading = open_tree(real).read()
    assert [fault.path.rpartition("neuron_core3/")[2] for fault in reading.faults] == [
        "stats/other_info/flop_count/total"
    ]


def test_statuses_under_their_older_names_are_read(real, open_tree):
    folder = real.root / "neuron0/neuron_core0/stats/status"
    (folder / "execute_failed_to_queue").rename(folder / "infer_failed_to_queue")
    (folder / "infer_failed_to_queue/total").write_text("6\n")
    assert open_tree(real).read().devices[0].cores[0].statuses["execute_failed_to_queue"] == 6


def test_a_device_that_does_not_answer_leaves_the_others_readable(tmp_path, open_tree, clock, monkeypatch):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2, 2, simulated=False)
    released = threading.Event()
    read = device_module.DeviceNodes.read

    def hang_on_the_first(self, *arguments, **options):
        if self.facts.index == 0:
            released.wait()
        return read(self, *arguments, **options)

    monkeypatch.setattr(device_module.DeviceNodes, "read", hang_on_the_first)
    opened = open_tree(tree, timeout_s=0.05)
    reading = opened.read()
    while not reading.devices:  # On a busy machine the other one may be late too.
        clock.pass_seconds(1)
        reading = opened.read()
    released.set()
    assert [device.facts.index for device in reading.devices] == [1]
    assert "no answer" in {fault.path: fault.reason for fault in reading.faults}[f"{tree.root}/neuron0"]
    while len(reading.devices) < 2 or reading.faults:
        clock.pass_seconds(1)
        reading = opened.read()
    assert [device.facts.index for device in reading.devices] == [0, 1]


def test_a_device_that_hangs_between_looks_is_named_and_leaves_the_others_readable(
    tmp_path, open_tree, clock, monkeypatch
):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2, 2, simulated=False)
    opened = open_tree(tree, timeout_s=0.05)
    opened.read()
    released, refresh, within = threading.Event(), kernels.refresh, kernels.refresh_within
    hanging = {id(opened._devices[0]._nodes.table.words)}

    def hangs(tables):
        return any(id(words) in hanging for _, words, _, _ in tables)

    def hang_on_the_first(tables):
        if hangs(tables):
            released.wait()
        return refresh(tables)

    def hang_together(reader, tables, *options):
        return None if hangs(tables) and not released.is_set() else within(reader, tables, *options)

    monkeypatch.setattr(kernels, "refresh", hang_on_the_first)
    monkeypatch.setattr(kernels, "refresh_within", hang_together)
    monkeypatch.setattr(kernels, "is_reading", lambda reader: not released.is_set())
    reasons = {}
    while "no answer" not in reasons.get(f"{tree.root}/neuron0", ""):
        tree.count(2, success=7, nc_time_in_use=7)
        clock.pass_seconds(0.05)
        reading = opened.read()
        reasons = {fault.path: fault.reason for fault in reading.faults}
    assert reading.devices[1].cores[0].statuses["success"] == 7
    released.set()
    tree.count(0, success=9, nc_time_in_use=9)
    while reading.faults:
        clock.pass_seconds(0.05)
        reading = opened.read()
    assert [device.cores[0].statuses["success"] for device in reading.devices] == [9, 7]


@pytest.mark.parametrize(
    ("text", "status", "average"),
    [
        ("POWER_STATUS_VALID,1781370720,1.50,3.50,2.00", "POWER_STATUS_VALID", 2.0),
        ("POWER_STATUS_NO_DATA,0,0.00,0.00,0.00", "POWER_STATUS_NO_DATA", 0.0),
    ],
)
def test_power(real, open_tree, text, status, average):
    real.write("neuron0/stats/power/utilization", text)
    power = open_tree(real).read().devices[0].power
    assert (power.status, power.average_percent) == (status, average)


def test_power_that_makes_no_sense_is_a_fault(real, open_tree):
    real.write("neuron0/stats/power/utilization", "1,2")
    reading = open_tree(real).read()
    assert reading.devices[0].power is None
    assert "utilization" in reading.faults[0].path


def test_a_simulated_core_has_what_its_processes_told(simulated, open_tree, pid):
    core = process_core(
        simulated,
        1,
        status={"success": 3},
        inference_count=3,
        busy_ns=5_000,
        engine_busy_ns={"tensor": 4_000},
        device_memory=held(tensors=100),
    )
    simulated.publish(pid, [1], cores={"1": core}, elapsed_ns=9_000)
    found = open_tree(simulated).read().devices[0].cores[1]
    assert (found.statuses["success"], found.busy_us, found.elapsed_ns) == (3, 5, 9_000)
    assert (found.engine_busy_ns["tensor"], found.device_memory_bytes) == (4_000, 100)


def test_a_core_without_a_user_is_a_link_until_it_is_used(simulated, open_tree, clock):
    core = simulated.root / "neuron0/neuron_core5"
    shutil.move(core, simulated.root / "zeros")
    core.symlink_to("../zeros")
    tree = open_tree(simulated)
    assert tree.read().devices[0].cores[5].statuses["success"] == 0
    core.unlink()
    shutil.copytree(simulated.root / "zeros", core)
    simulated.count(5, success=8, inference_count=8)
    clock.pass_seconds(1)
    assert tree.read().devices[0].cores[5].statuses["success"] == 8


def test_two_processes_on_one_core_add_up_and_share_its_clock(simulated, open_tree, pid):
    core = process_core(simulated, 0, inference_count=2, flop_count=10)
    simulated.publish(pid, [0], cores={"0": core}, elapsed_ns=500)
    path = simulated.publish(1, [0], cores={"0": core}, elapsed_ns=700)
    assert path.exists()
    found = open_tree(simulated).read().devices[0].cores[0]
    assert (found.count("inference_count"), found.count("flop_count"), found.elapsed_ns) == (4, 20, 700)


def test_listing_reads_no_counters(real, open_tree):
    real.count(0, success=5, inference_count=5)
    device = open_tree(real, with_counts=False).read().devices[0]
    assert len(device.cores) == 8
    assert device.cores[0].statuses["success"] == 0


@pytest.mark.parametrize(("chip", "size"), [(TRAINIUM2, 2), (INFERENTIA2, 1)])
def test_a_real_host_joins_two_cores_from_trainium2_on(tmp_path, open_tree, monkeypatch, chip, size):
    monkeypatch.delenv("NEURON_LOGICAL_NC_CONFIG", raising=False)
    tree = SysfsTree(tmp_path / "tree", chip, simulated=False)
    assert open_tree(tree).read().logical_core_size == size


def test_cores_are_numbered_as_the_processes_number_them_if_they_agree(tmp_path, open_tree, clock, pid):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2, lnc=2)
    reader = open_tree(tree)
    assert reader.read().logical_core_size == 2
    tree.publish(pid, [0], logical_core_size=1)
    clock.pass_seconds(1)
    assert reader.read().logical_core_size == 1
    tree.publish(1, [2], logical_core_size=2)
    clock.pass_seconds(1)
    assert reader.read().logical_core_size == 2
