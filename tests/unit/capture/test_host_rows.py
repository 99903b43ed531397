import json

import numpy as np
import pytest

from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.definitions import Definitions, ModuleName
from neuron_tools.capture.host_rows import host_spans, system_events
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.records.capture_log import Padding, RecordKind
from neuron_tools.records.program import Frame
from tests.unit.capture.logs import MODULES, NAMES, STACKS, both, host, one_step
from tests.unit.capture.replayed import plain


@pytest.fixture
def definitions():
    made = Definitions()
    made.stacks.update({number: tuple(Frame(*f) for f in frames) for number, frames in STACKS.items()})
    made.modules.update({number: ModuleName(*module) for number, module in MODULES.items()})
    made.names.update(NAMES)
    return made


def rows(table, *names):
    return list(zip(*(plain(table[name]) for name in names)))


def test_spans_of_a_step(definitions):
    table = host_spans(np.concatenate(one_step(0)), definitions, 3, TextPools(), StackRegistry())
    assert rows(table, "name", "kind", "start_ts", "end_ts", "thread_idx") == [
        ("copy_to_device", "copy", 10, 20, 1),
        ("aten::mul", "dispatch", 30, 40, 1),
        ("net.fc", "module", 25, 45, 1),
        ("aten::mul", "dispatch", 60, 70, 2),
        ("step", "dispatch", 80, 90, 1),
        ("AdamW.step", "optimizer", 100, 120, 1),
        ("copy_to_host", "copy", 130, 140, 1),
    ]
    assert plain(table["process_idx"]) == [3] * 7


def test_a_spans_place_is_its_innermost_frame_and_module(definitions):
    table = host_spans(np.concatenate(one_step(0)[2:5]), definitions, 0, TextPools(), StackRegistry())
    assert rows(table, "layer", "source_file", "source_line") == [
        ("/net/fc", "net.py", 11),
        ("/net/fc", "train.py", 40),
        ("", None, 0),
    ]


def test_what_is_not_defined_has_no_name_but_a_row(definitions):
    unknown = host(RecordKind.RANGE, 0, 5, name=99, stack=99, module=99)
    called = host(RecordKind.MODULE_CALL, 0, 5, module=99)
    table = host_spans(np.concatenate([unknown, called]), definitions, 0, TextPools(), StackRegistry())
    assert rows(table, "name", "layer", "source_file") == [("range", "", None), ("", "", None)]


def test_memory_and_views_are_no_spans(definitions):
    records = [host(kind, 0, 1) for kind in (RecordKind.ALLOCATE, RecordKind.FREE, RecordKind.VIEW)]
    table = host_spans(np.concatenate(records), definitions, 0, TextPools(), StackRegistry())
    assert plain(table["start_ts"]) == []


def events(definitions, records):
    return system_events(np.concatenate(records), definitions, 3, 77, 8, 1_000, TextPools())


def test_each_runtime_call_has_what_the_device_did_beside_it(definitions):
    table = events(definitions, one_step(0))
    assert rows(table, "id", "name", "trace_event_source", "start_ts", "end_ts") == [
        (1_002, "nrt_tensor_write", "neuron_rt", 10, 20),
        (1_004, "nrt_execute", "neuron_rt", 30, 40),
        (1_008, "nrt_execute", "neuron_rt", 60, 70),
        (1_010, "nrt_execute", "neuron_rt", 80, 90),
        (1_014, "nrt_tensor_read", "neuron_rt", 130, 140),
        (1_003, "dmem_buf_copyin", "neuron_hw", 20, 120),
        (1_005, "nc_exec_running", "neuron_hw", 200, 5_200),
        (1_009, "nc_exec_running", "neuron_hw", 5_300, 10_300),
        (1_011, "nc_exec_running", "neuron_hw", 10_400, 15_400),
        (1_015, "dmem_buf_copyout", "neuron_hw", 15_500, 15_550),
    ]


def test_both_rows_of_a_call_share_a_flow(definitions):
    table = events(definitions, one_step(0))
    flows = table["flow_id"]
    assert flows[:5] == flows[5:]
    assert len({flow for (flow,) in flows}) == 5


def test_a_synchronisation_has_no_device_row(definitions):
    table = events(definitions, [host(RecordKind.SYNCHRONIZE, 5, 50)])
    assert rows(table, "name", "start_ts", "end_ts") == [("nrt_synchronize", 5, 50)]


def test_events_name_process_and_core(definitions):
    table = events(definitions, [both(RecordKind.GRAPH, 0, 5, 5, device=1, executable=8, name=2)])
    assert rows(table, "process_idx", "process_id", "nc_idx") == [(3, 77, 9), (3, 77, 9)]


def test_a_copy_tells_how_far_its_sequences_are_padded(definitions):
    padding = Padding(rows=8, length=512, longest=90, mean=41)
    copies = [both(RecordKind.COPY_TO_DEVICE, 0, 5, 5, bytes=16, address=padding.packed())]
    (text, *_) = plain(events(definitions, copies)["extra_attributes_json"])
    assert Padding(**json.loads(text)["padding"]) == padding


def test_attributes_hold_what_is_known(definitions):
    table = events(
        definitions,
        [
            both(RecordKind.GRAPH, 0, 5, 5, executable=8, name=3),
            both(RecordKind.COPY_TO_HOST, 20, 25, 5, bytes=16),
        ],
    )
    found = [json.loads(text) for text in plain(table["extra_attributes_json"])[:2]]
    assert found == [{"operation": "epoch\n1", "executable_idx": 8}, {"operation": "", "bytes": 16}]
