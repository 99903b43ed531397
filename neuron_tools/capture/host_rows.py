"""Rows that come straight from records: host spans and system events."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Table
from neuron_tools.capture.columns import TextPools
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


def host_spans(
    records: Table, definitions: Definitions, process_idx: int, pools: TextPools, stacks: StackRegistry
) -> dict[str, Any]:
    """HostSpan rows: what the user's threads did, in virtual host time."""
    chosen = records[np.isin(records["kind"], [int(kind) for kind in SPAN_KINDS])]
    kinds = {int(kind): text for kind, text in SPAN_KINDS.items()}
    called = [definitions.stacks.get(int(record["stack"]), ()) for record in chosen]
    frames = [stack[0] if stack else None for stack in called]
    texts = {
        "name": pools["name"].codes(_span_name(record, definitions) for record in chosen),
        "kind": pools["kind"].codes(_span_kind(record, kinds) for record in chosen),
        "layer": pools["layer"].codes(_layer(record, definitions) for record in chosen),
        "source_file": pools["source_file"].codes(frame.file if frame else None for frame in frames),
        "stack_frame_ids": pools["stack_frame_ids"].codes(stacks.leaf(stack) or None for stack in called),
    }
    numbers = {
        **_interval(chosen["host_start_ns"], chosen["host_end_ns"]),
        "process_idx": np.full(len(chosen), process_idx, np.int32),
        "thread_idx": chosen["thread"].astype(np.int32),
        "source_line": np.array([frame.line if frame else 0 for frame in frames], np.int32),
    }
    return pools.table(numbers, texts)


def _layer(record: np.void, definitions: Definitions) -> str:
    module = definitions.modules.get(int(record["module"]))
    return layer_path(module.path) if module else NO_LAYER


def _span_kind(record: np.void, kinds: dict[int, str]) -> str:
    in_optimizer = record["kind"] == RecordKind.RANGE and record["flags"] & IN_OPTIMIZER
    return "optimizer" if in_optimizer else kinds[int(record["kind"])]


def _span_name(record: np.void, definitions: Definitions) -> str:
    if record["kind"] == RecordKind.MODULE_CALL:
        module = definitions.modules.get(int(record["module"]))
        return module.path if module else ""
    if record["kind"] == RecordKind.COLLECTIVE:
        part = definitions.collectives.get(int(record["executable"]))
        return part.title if part else "collective"
    name = definitions.names.get(int(record["name"]), "")
    return name or RecordKind(int(record["kind"])).name.lower()


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
    places = np.flatnonzero(np.isin(records["kind"], [int(kind) for kind in EVENT_NAMES]))
    chosen, ids = records[places], first_id + (1 + logical_core_size) * places.astype(np.int64)
    device_names = [EVENT_NAMES[RecordKind(int(kind))][1] for kind in chosen["kind"]]
    parts = [_events(chosen, definitions, "host", ids, pools)]
    flows = [[str(number)] for number in ids]
    joined_flows = list(flows)
    for part in range(logical_core_size):
        wanted = [name == RUNNING_EVENT if part else name is not None for name in device_names]
        on_device = np.array(wanted, bool)
        numbers, names = _events(chosen[on_device], definitions, "device", ids[on_device] + 1 + part, pools)
        parts.append(({**numbers, "part": np.full(int(on_device.sum()), part, np.int64)}, names))
        joined_flows += [flow for flow, kept in zip(flows, on_device) if kept]
    parts[0][0]["part"] = np.zeros(len(chosen), np.int64)
    columns = {name: np.concatenate([part[0][name] for part in parts]) for name in parts[0][0]}
    texts = {name: np.concatenate([part[1][name] for part in parts]) for name in parts[0][1]}
    count = len(columns["id"])
    columns["nc_idx"] = (columns["nc_idx"] + first_core) * logical_core_size + columns.pop("part")
    table = pools.table(columns, texts)
    table["flow_id"] = joined_flows
    table["process_idx"] = np.full(count, process_idx, np.int32)
    table["process_id"] = np.full(count, process_id, np.int64)
    return table


def _events(
    records: Table, definitions: Definitions, side: str, ids: npt.NDArray[np.int64], pools: TextPools
) -> tuple[dict[str, Any], dict[str, Any]]:
    which, source = (0, RUNTIME_SOURCE) if side == "host" else (1, HARDWARE_SOURCE)
    names = [EVENT_NAMES[RecordKind(int(kind))][which] for kind in records["kind"]]
    numbers = {
        "id": ids,
        **_interval(records[f"{side}_start_ns"], records[f"{side}_end_ns"]),
        "thread_id": records["thread"].astype(np.int64),
        "nc_idx": records["device"].astype(np.int64),
    }
    texts = {
        "name": pools["name"].codes(names),
        "trace_event_source": pools["trace_event_source"].codes([source] * len(records)),
        "instance_id": pools["instance_id"].codes([INSTANCE_ID] * len(records)),
        "extra_attributes_json": pools["extra_attributes_json"].codes(_attributes(records, definitions)),
    }
    return numbers, texts


def _attributes(records: Table, definitions: Definitions) -> list[str]:
    known: dict[tuple[int, ...], str] = {}
    texts = []
    padded = np.where(records["kind"] == RecordKind.COPY_TO_DEVICE, records["address"], 0)
    for key in zip(*(records[each].tolist() for each in ("name", "executable", "bytes")), padded.tolist()):
        if key not in known:
            known[key] = _attribute_text(definitions.names.get(key[0], ""), *key[1:])
        texts.append(known[key])
    return texts


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


def _interval(start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.int64]]:
    return {"start_ts": start, "end_ts": end, "duration_ns": end - start}
