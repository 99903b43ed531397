from __future__ import annotations

from neuron_tools.device.driver.counts import CoreCounts, Memory
from neuron_tools.device.driver.nodes import DEVICE_MEMORY, STATUSES, Node, core_nodes, histogram_text


def test_every_node_of_the_driver_is_there_even_where_nothing_happened() -> None:
    nodes = core_nodes(CoreCounts(), CoreCounts())
    assert {f"stats/status/{name}" for name in STATUSES} <= nodes.keys()
    assert {f"stats/memory_usage/device_mem/{name}" for name in DEVICE_MEMORY} <= nodes.keys()
    assert {node.total for node in nodes.values()} == {0}
    assert [name for name, _ in nodes["stats/memory_usage/device_mem"].files()] == [
        "total",
        "present",
        "peak",
    ]
    assert [name for name, _ in nodes["stats/status/success"].files()] == ["total", "present"]


def test_totals_count_all_and_present_the_living_and_memory_is_what_is_held() -> None:
    ever = CoreCounts(busy_ns=9_999, status={"success": 5}, device_memory={"tensors": Memory(90, 8, 50)})
    live = CoreCounts(busy_ns=1_000, status={"success": 2}, device_memory={"tensors": Memory(40, 8, 20)})
    nodes = core_nodes(ever, live)
    assert nodes["stats/other_info/nc_time_in_use"] == Node(9, 1)
    assert nodes["stats/status/success"] == Node(5, 2)
    assert nodes["stats/memory_usage/device_mem/tensors"] == Node(8, 8, 50)
    assert nodes["stats/memory_usage/device_mem"] == Node(8, 8, 50)


def test_a_histogram_has_one_line_for_each_bound_in_order() -> None:
    assert histogram_text({30: 1, 4: 2}) == "4 2\n30 1\n"
