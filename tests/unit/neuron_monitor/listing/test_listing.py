import random

import pytest

from neuron_monitor.api.instance import InstanceFacts
from neuron_monitor.api.readings import DeviceFacts
from neuron_monitor.api.tree import DeviceTree
from neuron_monitor.errors import NoDevicesError
from neuron_monitor.listing.devices import ListedDevice, Listing, as_json, make_listing
from neuron_monitor.listing.show import show
from neuron_monitor.listing.table import as_table
from neuron_monitor.listing.topology import ASCII_STROKES, draw_topology, find_torus, links_of
from tests.fixtures.monitor_structure import observed, structure
from tests.fixtures.neuron_sysfs import INFERENTIA2, TRAINIUM2, SysfsTree


@pytest.fixture
def listing_of(clock):
    def make(tree, **options):
        reading = DeviceTree(str(tree.root), clock=clock, with_counts=False).read()
        return make_listing(reading, InstanceFacts("trn2.48xlarge", "i-0"), **options)

    return make


def linked(links):
    """A listing of devices with these links."""
    devices = [
        ListedDevice(DeviceFacts(index, 8, connected_to=tuple(others)), (), ())
        for index, others in links.items()
    ]
    return Listing(InstanceFacts(), 1, tuple(devices))


def torus(rows, columns, names):
    def at(row, column):
        return names[row % rows * columns + column % columns]

    return {
        at(row, column): {at(row - 1, column), at(row + 1, column), at(row, column - 1), at(row, column + 1)}
        for row in range(rows)
        for column in range(columns)
    }


def test_json_is_as_a_real_host_prints_it(tmp_path, listing_of, pid):
    tree = SysfsTree(tmp_path / "tree", TRAINIUM2, 2, lnc=2)
    tree.publish(pid, [0], runtime_version="2.34.10")
    told = as_json(listing_of(tree))
    assert structure(told[:1]) == observed("neuron-ls trn2")
    assert [entry["neuroncore_ids"] for entry in told] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert told[0]["neuron_processes"][0]["pid"] == pid
    assert told[1]["neuron_processes"] == []


def test_the_table(tmp_path, listing_of, pid):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2, 2)
    tree.publish(pid, [0], command="python " + "x" * 50, runtime_version="0.1.0")
    lines = as_table(listing_of(tree)).splitlines()
    assert lines[:3] == ["instance-type: trn2.48xlarge", "instance-id: i-0", "logical-neuroncore-config: 1"]
    assert [cell.strip() for cell in lines[4].split("|")[1:-1]] == [
        "NEURON",
        "NEURON",
        "NEURON",
        "NEURON",
        "CONNECTED",
        "PID",
        "COMMAND",
        "RUNTIME",
    ]
    cells = [cell.strip() for cell in lines[7].split("|")[1:-1]]
    assert cells == ["0", "2", "0-1", "32 GB", "1", str(pid), "python " + "x" * 30 + "...", "0.1.0"]
    assert len({len(line) for line in lines[3:]}) == 1


def test_a_wide_table_shows_more_of_a_command(tmp_path, listing_of, pid):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2)
    tree.publish(pid, [0], command="python " + "x" * 50, runtime_version="0.1.0")
    assert "x" * 50 in as_table(listing_of(tree), wide=True)


def test_processes_without_a_runtime_are_listed_when_asked_for(tmp_path, listing_of, pid):
    tree = SysfsTree(tmp_path / "tree", INFERENTIA2)
    tree.publish(pid, [0], runtime_version="NA")
    assert listing_of(tree).devices[0].processes == ()
    assert len(listing_of(tree, with_all=True).devices[0].processes) == 1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 5), (2, 6)])
def test_a_torus_is_found_whatever_its_devices_are_called(seed, rows, columns):
    names = random.Random(seed).sample(range(rows * columns), rows * columns)
    links = torus(rows, columns, names)
    grid = find_torus(links_of(linked(links)), rows, columns)
    found = torus(rows, columns, [name for row in grid for name in row])
    assert found == links


def test_a_ring_is_no_torus_and_a_chain_is_no_ring():
    ring = {index: {(index - 1) % 6, (index + 1) % 6} for index in range(6)}
    assert find_torus(links_of(linked(ring)), 2, 3) is None
    assert find_torus(links_of(linked(ring)), 1, 6) is not None
    chain = {0: {1}, 1: {0, 2}, 2: {1}}
    assert find_torus(links_of(linked(chain)), 1, 3) is None


def test_the_drawing_of_a_ring_and_of_a_torus():
    ring = {index: {(index - 1) % 5, (index + 1) % 5} for index in range(5)}
    drawn = draw_topology(linked(ring), ASCII_STROKES).splitlines()
    assert drawn[0] == "..[  0]--[  1]--[  2]--[  3]--[  4].."
    assert draw_topology(linked({0: {1}, 1: {0}}), ASCII_STROKES) == "  [  0]--[  1]"
    grid = draw_topology(linked(torus(4, 4, list(range(16)))), ASCII_STROKES).splitlines()
    assert grid[1] == "..[  0]--[  1]--[  2]--[  3].."
    assert grid[2].split() == ["|"] * 4
    assert grid[0].split() == [":"] * 4


def test_links_to_devices_that_are_not_visible_are_named():
    assert draw_topology(linked({0: [12, 1, 9, 14]})) == (
        "[  0] is linked to no other device (not visible here: 12, 1, 9, 14)"
    )


def test_no_device_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(NoDevicesError, match="load the driver"):
        show(str(tmp_path), wide=False, with_all=False, topology=False, as_json=False)
