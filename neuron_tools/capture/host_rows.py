"""Rows that come straight from records: host spans and system events."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Ints, Table
from neuron_tools.capture.columns import Codes, TextPool, TextPools
from neuron_tools.capture.definitions import Definitions
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.capture.tables.origin import NO_LAYER, layer_path
from neuron_tools.records.capture_log import Padding, RecordKind

SPAN_KINDS = {
    RecordKind.OPERATION: "dispatch",
    RecordKind.FUSED_OPERATION: "dispatch",
    RecordKind.GRAPH: "dispatch",
    RecordKind.COPY_TO_DEVICE: "copy",
    RecordKind.COPY_TO_HOST: "copy",
    RecordKind.SYNCHRONIZE: "synchronize",
    RecordKind.RANGE: "range",
    RecordKind.STEP: "step",
    RecordKind.MODULE_CALL: "module",
    RecordKind.COLLECTIVE: "collective",
}
RUNNING_EVENT = "nc_exec_running"
EVENT_NAMES = {
    RecordKind.OPERATION: ("nrt_execute", RUNNING_EVENT),
    RecordKind.GRAPH: ("nrt_execute", RUNNING_EVENT),
    RecordKind.FUSED: ("nrt_execute", RUNNING_EVENT),
    RecordKind.COPY_TO_DEVICE: ("nrt_tensor_write", "dmem_buf_copyin"),
    RecordKind.COPY_TO_HOST: ("nrt_tensor_read", "dmem_buf_copyout"),
    RecordKind.SYNCHRONIZE: ("nrt_synchronize", None),
}
RUNTIME_SOURCE, HARDWARE_SOURCE = "neuron_rt", "neuron_hw"
INSTANCE_ID = "simulated"
IN_OPTIMIZER = 1  # bit of the record column `flags`
MODULE_CALL, COLLECTIVE, COPY_TO_DEVICE = (
    int(kind) for kind in (RecordKind.MODULE_CALL, RecordKind.COLLECTIVE, RecordKind.COPY_TO_DEVICE)
)
KIND_BITS = 8
KIND_MASK = (1 << KIND_BITS) - 1


def host_spans(
    records: Table, definitions: Definitions, process_idx: int, pools: TextPools, stacks: StackRegistry
) -> dict[str, Any]:
    """HostSpan rows: what the user's threads did, in virtual host time."""
    chosen = records[np.isin(records["kind"], list(SPAN_KINDS))]
    called, stack = np.unique(chosen["stack"], return_inverse=True)
    stacks_called = [definitions.stacks.get(number, ()) for number in called.tolist()]
    frames = [frames[0] if frames else None for frames in stacks_called]
    leaves = [stacks.leaf(frames) or None for frames in stacks_called]
    texts = {
        "name": pools["name"].codes_by(_name_keys(chosen), lambda key: _span_name(key, definitions)),
        "kind": pools["kind"].codes_by(
            chosen["kind"] | (chosen["flags"] & IN_OPTIMIZER) << KIND_BITS, _span_kind
        ),
        "layer": pools["layer"].codes_by(chosen["module"], lambda number: _layer(number, definitions)),
        "source_file": pools["source_file"].codes(frame.file if frame else None for frame in frames)[stack],
        "stack_frame_ids": pools["stack_frame_ids"].codes(leaves)[stack],
    }
    numbers = {
        **_interval(chosen["host_start_ns"], chosen["host_end_ns"]),
        "process_idx": np.full(len(chosen), process_idx, np.int32),
        "thread_idx": chosen["thread"].astype(np.int32),
        "source_line": np.array([frame.line if frame else 0 for frame in frames], np.int32)[stack],
    }
    return pools.table(numbers, texts)


def _layer(module: int, definitions: Definitions) -> str:
    found = definitions.modules.get(module)
    return layer_path(found.path) if found else NO_LAYER


def _span_kind(key: int) -> str:
    """The kind's text; `key` has the kind in its lowest bits, above them whether an optimizer steps."""
    kind = RecordKind(key & KIND_MASK)
    return "optimizer" if kind == RecordKind.RANGE and key >> KIND_BITS else SPAN_KINDS[kind]


def _name_keys(records: Table) -> Ints:
    """What each record's name follows from: its kind, and above it the number of what it names."""
    kind = records["kind"]
    named = np.where(kind == MODULE_CALL, records["module"], records["name"])
    named = np.where(kind == COLLECTIVE, records["executable"], named)
    keys: Ints = named.astype(np.int64) << KIND_BITS | kind
    return keys


def _span_name(key: int, definitions: Definitions) -> str:
    kind, number = RecordKind(key & KIND_MASK), key >> KIND_BITS
    if kind == RecordKind.MODULE_CALL:
        module = definitions.modules.get(number)
        return module.path if module else ""
    if kind == RecordKind.COLLECTIVE:
        part = definitions.collectives.get(number)
        return part.title if part else "collective"
    return definitions.names.get(number, "") or kind.name.lower()


def system_events(
    records: Table,
    definitions: Definitions,
    process_idx: int,
    process_id: int,
    first_core: int,
    first_id: int,
    pools: TextPools,
    logical_core_size: int = 1,
) -> dict[str, Any]:
    """SystemProfileEvents rows: each runtime call and, beside it, what the hardware did for it.

    The rows of one call share a `flow_id`: the call's, and for what runs one of each physical core. Those of
    record i have the ids from first_id + (1 + logical_core_size) i on.
    """
    places = np.flatnonzero(np.isin(records["kind"], list(EVENT_NAMES)))
    chosen, ids = records[places], first_id + (1 + logical_core_size) * places.astype(np.int64)
    device_names = pools["name"].codes_by(chosen["kind"], lambda kind: EVENT_NAMES[RecordKind(kind)][1])
    is_running = device_names == pools["name"].code(RUNNING_EVENT)
    on_device = [
        np.flatnonzero(is_running if part else device_names >= 0) for part in range(logical_core_size)
    ]
    call = np.concatenate([np.arange(len(chosen)), *on_device])
    part = np.repeat(np.arange(logical_core_size + 1) - 1, [len(chosen), *map(len, on_device)])
    is_host, called = part < 0, chosen[call]
    columns = {
        "id": ids[call] + 1 + part,
        **_interval(
            *(
                np.where(is_host, called[f"host_{end}_ns"], called[f"device_{end}_ns"])
                for end in ("start", "end")
            )
        ),
        "thread_id": called["thread"].astype(np.int64),
        "nc_idx": (called["device"].astype(np.int64) + first_core) * logical_core_size + np.maximum(part, 0),
        "flow_id": _one_each(pa.array(ids).cast(pa.string()).take(pa.array(call))),
        "process_idx": np.full(len(call), process_idx, np.int32),
        "process_id": np.full(len(call), process_id, np.int64),
    }
    host_names = pools["name"].codes_by(chosen["kind"], lambda kind: EVENT_NAMES[RecordKind(kind)][0])
    host_source, device_source = pools["trace_event_source"].codes([RUNTIME_SOURCE, HARDWARE_SOURCE])
    texts = {
        "name": np.where(is_host, host_names[call], device_names[call]),
        "trace_event_source": np.where(is_host, host_source, device_source),
        "instance_id": np.full(len(call), pools["instance_id"].code(INSTANCE_ID), np.int32),
        "extra_attributes_json": _attributes(chosen, definitions, pools["extra_attributes_json"])[call],
    }
    return pools.table(columns, texts)


def _one_each(values: pa.Array) -> pa.ListArray:
    """A list of one value for each."""
    return pa.ListArray.from_arrays(np.arange(len(values) + 1, dtype=np.int32), values)


def _attributes(records: Table, definitions: Definitions, pool: TextPool) -> Codes:
    known: dict[tuple[int, ...], int] = {}
    codes = []
    padded = np.where(records["kind"] == COPY_TO_DEVICE, records["address"], 0)
    for key in zip(*(records[each].tolist() for each in ("name", "executable", "bytes")), padded.tolist()):
        code = known.get(key)
        if code is None:
            text = _attribute_text(definitions.names.get(key[0], ""), *key[1:])
            code = known[key] = pool.code(text)
        codes.append(code)
    return np.array(codes, np.int32)


def _attribute_text(name: str, executable: int, byte_count: int, packed_padding: int) -> str:
    fields: dict[str, Any] = {"operation": name}
    if executable:
        fields["executable_idx"] = executable
    if byte_count:
        fields["bytes"] = byte_count
    padding = Padding.unpacked(packed_padding)
    if padding is not None:
        fields["padding"] = asdict(padding)
    return json.dumps(fields)


def _interval(start: Ints, end: Ints) -> dict[str, Any]:
    return {"start_ts": start, "end_ts": end, "duration_ns": end - start}
