import numpy as np
import pytest

from neuron_tools.capture.definitions import Definitions, TensorName
from neuron_tools.capture.device_memory import DeviceMemory
from neuron_tools.capture.table_template import ExecutionOrigin
from neuron_tools.records.capture_log import RecordKind
from tests.unit.capture.logs import host
from tests.unit.capture.replayed import plain

IN_OPTIMIZER = 1


def rows(table, *names):
    return list(zip(*(plain(table[name]) for name in names)))


def origin(layer="", file=None, line=0, *, backward=False):
    return ExecutionOrigin(
        texts={"layer": layer, "stack_frame_ids": "", "source_file": file},
        numbers={"source_line": line, "is_backward": backward},
    )


def tables(memory, *records, origins=None):
    taken = sum(int(record["kind"][0] == RecordKind.ALLOCATE) for record in records)
    definitions = Definitions(names={0: "", 1: "aten::mul"})
    return memory.tables(np.concatenate(records), origins or [origin()] * taken, definitions)


@pytest.fixture
def memory():
    return DeviceMemory(3, 8)


def test_memory_is_followed_over_blocks_and_devices(memory):
    first = tables(
        memory,
        host(RecordKind.ALLOCATE, 1, 1, bytes=100),
        host(RecordKind.ALLOCATE, 2, 2, bytes=7, device=1),
        host(RecordKind.ALLOCATE, 3, 3, bytes=50),
    )
    usage = first["SystemProfileHbmUsage"]
    names = ("timestamp", "device_idx", "total_bytes", "tensors_bytes", "weights_bytes", "process_idx")
    assert rows(usage, *names) == [(1, 8, 100, 100, 0, 3), (2, 9, 7, 7, 0, 3), (3, 8, 150, 150, 0, 3)]
    assert rows(first["MemoryEvent"], "event_idx", "pcore_idx", "held_bytes") == [
        (0, 8, 100),
        (1, 9, 7),
        (2, 8, 150),
    ]
    second = tables(memory, host(RecordKind.FREE, 4, 4, bytes=100))
    assert rows(second["SystemProfileHbmUsage"], "device_idx", "total_bytes") == [(8, 50)]
    assert rows(second["MemoryEvent"], "event_idx", "timestamp", "held_bytes", "kind") == [(3, 4, 50, "free")]


def test_what_was_held_before_a_window_is_counted():
    memory = DeviceMemory(0, 0, held_bytes=[300])
    found = tables(memory, host(RecordKind.FREE, 4, 4, bytes=100))
    assert plain(found["SystemProfileHbmUsage"]["total_bytes"]) == [200]
    assert plain(found["MemoryEvent"]["held_bytes"]) == [200]


def test_no_memory_records_are_no_rows(memory):
    found = tables(memory, host(RecordKind.RANGE, 0, 1))
    assert [len(plain(table["timestamp"])) for table in found.values()] == [0, 0]


def test_an_event_says_what_took_the_memory_and_where(memory):
    found = tables(
        memory,
        host(RecordKind.ALLOCATE, 1, 1, bytes=8, address=4, name=1, module=2),
        host(RecordKind.FREE, 2, 2, bytes=8, address=4),
        origins=[origin("/net/fc", "net.py", 11)],
    )
    columns = ("kind", "address", "size", "framework_name", "layer", "source_file", "source_line")
    assert rows(found["MemoryEvent"], *columns) == [
        ("allocate", 4, 8, "aten::mul", "/net/fc", "net.py", 11),
        ("free", 4, 8, None, None, None, 0),
    ]


def test_its_place_tells_what_memory_is_for(memory):
    found = tables(
        memory,
        host(RecordKind.ALLOCATE, 1, 1, module=2),
        host(RecordKind.ALLOCATE, 2, 2, module=2),
        host(RecordKind.ALLOCATE, 3, 3, module=2, flags=IN_OPTIMIZER),
        host(RecordKind.ALLOCATE, 4, 4),
        host(RecordKind.FREE, 5, 5),
        origins=[origin("/net"), origin("/net", backward=True), origin("/opt"), origin("/main()")],
    )
    assert plain(found["MemoryEvent"]["category"]) == ["activation", "gradient", "optimizer", "other", None]
    assert plain(found["MemoryEvent"]["is_backward"]) == [False, True, False, False, False]


def test_names_of_tensors(memory):
    named = memory.name_rows([TensorName(4, "net.fc.weight", "parameter")])
    assert rows(named, "address", "name", "category", "process_idx") == [(4, "net.fc.weight", "parameter", 3)]
