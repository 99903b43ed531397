"""How long cores that are used have done nothing."""

import pytest

from neuron_monitor.api.allocation import AllocationWatch
from neuron_monitor.api.layout import packed
from neuron_monitor.api.readings import CoreReading, DeviceFacts, DeviceReading, ProcessReading
from neuron_monitor.api.records import ROW_WIDTH, Arrangement, Rows, Told, TreeReading

SECOND_NS = 1_000_000_000


def looks(counts, users, *, in_rows):
    """Two cores, looked at each second: what they have executed, and which are used by a process."""
    made = {}
    for second, (each, used) in enumerate(zip(counts, users)):
        rows = [(0, count, *[0] * (ROW_WIDTH - 2)) for count in each]
        cores = tuple([CoreReading(number, 0, number, packed(row)) for number, row in enumerate(rows)])
        devices = (DeviceReading(DeviceFacts(0, 2), cores, {}, {}),)
        processes = (ProcessReading(7, "7", "", "", 1, {core: cores[core] for core in used}),) if used else ()
        words = b"".join(count.to_bytes(8, "little") for row in rows for count in row)
        arrangement = made.setdefault(used, Arrangement(devices, processes))
        records = Rows(arrangement, words) if in_rows else Told(devices, processes)
        yield TreeReading((second + 1) * SECOND_NS, "", records, ())


@pytest.mark.parametrize("in_rows", [True, False])
def test_a_core_is_idle_since_it_worked_or_was_first_used(in_rows):
    counts = [(0, 0), (0, 0), (0, 0), (0, 0), (1, 0), (1, 0), (2, 1), (2, 1)]
    users = [(), (), (0,), (0,), (0,), (0, 1), (0, 1), (0, 1)]
    watch = AllocationWatch()
    found = []
    for tree in looks(counts, users, in_rows=in_rows):
        allocation = watch.update(tree)
        found.append({core: known.idle_s for core, known in allocation.items()})
    expected = [{}, {}, {0: 0}, {0: 1}, {0: 0}, {0: 1, 1: 0}, {0: 0, 1: 0}, {0: 1, 1: 1}]
    assert found == expected
