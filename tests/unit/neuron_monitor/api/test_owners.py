import os

import pytest

from neuron_monitor.api.owners import Attribution, Owners, parse_cores
from neuron_monitor.api.tree import DeviceTree
from tests.fixtures.neuron_sysfs import INFERENTIA2, SysfsTree


@pytest.fixture
def processes(tmp_path):
    folder = tmp_path / "proc"
    folder.mkdir()
    (folder / "self").mkdir()
    return folder


def add_process(folder, pid, devices, environment=(), maps=""):
    place = folder / str(pid)
    (place / "fd").mkdir(parents=True)
    for number, index in enumerate(devices):
        os.symlink(f"/dev/neuron{index}", place / "fd" / str(number))
    (place / "environ").write_text("\0".join(environment))
    (place / "cmdline").write_text("python\0train.py\0")
    (place / "maps").write_text(maps)


def test_who_holds_a_device_file_uses_the_device(processes):
    add_process(processes, 10, [0, 2], ["NEURON_PROCESS_TAG=train"], "7f /opt/lib/libnrt.so.2.34.10\n")
    add_process(processes, 11, [])
    (owner,) = Owners(str(processes)).find(0)
    assert (owner.pid, owner.tag, owner.command) == (10, "train", "python train.py")
    assert (owner.devices, owner.runtime_version) == ({0, 2}, "2.34.10")


def test_a_new_user_is_found_within_two_seconds(processes):
    owners = Owners(str(processes))
    assert owners.find(0) == ()
    add_process(processes, 10, [0])
    assert owners.find(1_000_000_000) == ()
    assert len(owners.find(2_000_000_000)) == 1


def scanned(owners, scan):
    """The pids that are found in a scan, of which there is one every two seconds."""
    return [owner.pid for owner in owners.find(scan * 2_000_000_000)]


def open_files(monkeypatch, counts):
    """Let the kernel tell so many open files, by pid."""

    def told(folder, pids):
        return [counts[pid] for pid in pids]

    monkeypatch.setattr("neuron_monitor.api.owners.kernels.descriptor_counts", told)


def test_a_process_with_another_number_of_open_files_is_looked_at_again(processes, monkeypatch):
    counts = {10: 3, 11: 7, 12: 0}
    open_files(monkeypatch, counts)
    for pid in counts:
        add_process(processes, pid, [])
    owners = Owners(str(processes))
    assert scanned(owners, 0) == []
    os.symlink("/dev/neuron0", processes / "11" / "fd" / "3")
    counts[11] = 8
    assert scanned(owners, 1) == [11]
    assert scanned(owners, 2) == [11]


@pytest.mark.parametrize(("told", "scans"), [(3, 30), (0, 5)], ids=["told", "an old kernel"])
def test_a_process_of_which_nothing_is_told_is_looked_at_now_and_then(processes, monkeypatch, told, scans):
    open_files(monkeypatch, dict.fromkeys(range(100, 120), told))
    for pid in range(100, 120):
        add_process(processes, pid, [])
    owners = Owners(str(processes))
    for scan in range(10):
        assert scanned(owners, scan) == []
    for pid in range(100, 120):
        os.symlink("/dev/neuron0", processes / str(pid) / "fd" / "3")
    found = [scanned(owners, scan) for scan in range(10, 10 + scans)]
    assert 0 < len(found[0]) < 20
    assert found[-1] == [*range(100, 120)]


def test_on_an_old_kernel_new_processes_are_looked_at_each_time(processes, monkeypatch):
    open_files(monkeypatch, {10: 0})
    add_process(processes, 10, [])
    owners = Owners(str(processes))
    assert scanned(owners, 0) == scanned(owners, 1) == []
    os.symlink("/dev/neuron0", processes / "10" / "fd" / "3")
    assert scanned(owners, 2) == [10]


def test_processes_that_cannot_be_listed_stay_as_they_were(processes):
    add_process(processes, 10, [0])
    owners = Owners(str(processes))
    found = owners.find(0)
    processes.rename(processes.with_name("away"))
    assert owners.find(10_000_000_000) == found


def test_a_thousand_processes_and_one_user(processes):
    for pid in range(1000, 2000):
        (processes / str(pid)).mkdir()
    add_process(processes, 10, [0])
    assert [owner.pid for owner in Owners(str(processes)).find(0)] == [10]


@pytest.mark.parametrize(
    ("text", "cores"), [("0", {0}), ("0-3,6", {0, 1, 2, 3, 6}), ("", None), ("a-b", None), ("1-", {1})]
)
def test_visible_cores(text, cores):
    assert parse_cores(text) == cores


def test_counters_go_to_the_one_who_owns_the_core(tmp_path, processes, clock):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2, 1, simulated=False)
    tree.count(0, success=3, inference_count=3)
    tree.count(1, success=5, inference_count=5)
    devices = DeviceTree(str(tree.root), clock=clock, owners=Owners(str(processes))).read().devices
    add_process(processes, 10, [0], ["NEURON_RT_VISIBLE_CORES=0"])
    add_process(processes, 11, [0], ["NEURON_RT_VISIBLE_CORES=1"])
    first, second = Attribution().processes(Owners(str(processes)).find(0), devices, 1)
    assert [core.statuses["success"] for core in first.cores.values()] == [3]
    assert [core.statuses["success"] for core in second.cores.values()] == [5]
    assert not first.is_shared


def test_a_core_of_two_owners_is_marked(tmp_path, processes, clock):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2, 1, simulated=False)
    add_process(processes, 10, [0])
    add_process(processes, 11, [0])
    owners = Owners(str(processes))
    reading = DeviceTree(str(tree.root), clock=clock, owners=owners).read()
    assert [process.is_shared for process in reading.processes] == [True, True]


def test_only_processes_whose_cores_moved_are_other_objects(tmp_path, processes, clock):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2, 2, simulated=False)
    add_process(processes, 10, [0])
    add_process(processes, 11, [1])
    add_process(processes, 12, [0, 1])
    devices = DeviceTree(str(tree.root), clock=clock, owners=Owners(str(processes)))
    before = devices.read().processes
    clock.pass_seconds(0.1)
    assert devices.read().processes is before
    tree.count(3, success=1, inference_count=1)
    clock.pass_seconds(0.1)
    after = devices.read().processes
    assert [one is other for one, other in zip(before, after)] == [True, False, False]
    assert set(after[2].cores) == {0, 1, 2, 3}


def test_host_memory_of_several_devices_is_added(tmp_path, processes, clock):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2, 2, simulated=False)
    for device, held in ((0, 5), (1, 7)):
        tree.write(f"neuron{device}/stats/memory_usage/host_mem/tensors/total", held)
    add_process(processes, 10, [0])
    add_process(processes, 12, [0, 1])
    reading = DeviceTree(str(tree.root), clock=clock, owners=Owners(str(processes))).read()
    assert [process.host_memory["tensors"] for process in reading.processes] == [5, 12]


def test_a_device_that_comes_later_is_its_owners_too(tmp_path, processes, clock):
    SysfsTree(tmp_path / "tree", INFERENTIA2, 1, simulated=False)
    add_process(processes, 10, [0, 1])
    devices = DeviceTree(str(tmp_path / "tree"), clock=clock, owners=Owners(str(processes)))
    assert set(devices.read().processes[0].cores) == {0, 1}
    SysfsTree(tmp_path / "tree", INFERENTIA2, 2, simulated=False)
    clock.pass_seconds(1)
    assert set(devices.read().processes[0].cores) == {0, 1, 2, 3}
