"""rocprofiler-sdk: the JSON of `rocprofv3 --output-format json`.

Dispatches of kernels stand on the queues of their agents, copies on a line of their own, calls of HIP, HSA,
RCCL and markers on threads. Names of kernels and calls stand in tables before the records; times are
nanoseconds of the host's clock since it was started.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.devices import stage_devices
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_columns import lists_of_columns, objects_of_columns
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.json_document import JsonDocument
from neuron_tools.profile.importers.json_rows import JsonRows, KeySet
from neuron_tools.profile.importers.json_text import whole_number
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import LANE, Clock, Recording
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "rocprofiler-sdk"
_ROOT = "rocprofiler-sdk-tool"
_GPU = 2
_CATEGORIES = {
    "hip_api": "hip_runtime",
    "hsa_api": "hsa",
    "rccl_api": "rccl",
    "marker_api": "user_annotation",
}
_TIMES = ("start_timestamp", "end_timestamp")
_RECORD = KeySet([*_TIMES, "thread_id", "correlation_id", "kind", "operation", "dispatch_info",
                  "src_agent_id", "dst_agent_id", "bytes"])  # fmt: skip
_DISPATCH = KeySet(["agent_id", "queue_id", "kernel_id", "workgroup_size", "grid_size"])
_SYMBOL = KeySet(["kernel_id", "formatted_kernel_name", "demangled_kernel_name", "kernel_name"])
_HANDLE, _INTERNAL, _AXES = KeySet(["handle"]), KeySet(["internal"]), KeySet(["x", "y", "z"])
COPY_NAMES = {
    "MEMORY_COPY_HOST_TO_DEVICE": "Memcpy HtoD",
    "MEMORY_COPY_DEVICE_TO_HOST": "Memcpy DtoH",
    "MEMORY_COPY_DEVICE_TO_DEVICE": "Memcpy DtoD",
    "MEMORY_COPY_HOST_TO_HOST": "Memcpy HtoH",
}


def recognise(head: Head) -> bool:
    """Whether the document is one of rocprofiler-sdk's tool."""
    return head.is_json and (_ROOT in head.json_keys or head.text[:64].split(b'"')[1:2] == [_ROOT.encode()])


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the trace of each process in the file."""
    document = JsonDocument(file)
    reader = _Reader(document, recording)
    for key in document.members():
        if key == _ROOT:
            reader.read()
    reader.finish()
    recording.warn_all(document.damage.sentences())


class _Reader:
    def __init__(self, document: JsonDocument, recording: Recording) -> None:
        self._document = document
        self._recording = recording
        self._lanes = Lanes(recording, lambda device: f"GPU {device}")
        self._process = NO_NUMBER
        self._gpus: dict[int, int] = {}
        self._devices: list[dict[str, Any]] = []
        self._kernels: dict[int, str] = {}
        self._operations: dict[tuple[int, int], str] = {}
        self._markers: dict[int, str] = {}
        self._left: dict[str, int] = {}
        self._host: str | None = None

    def read(self) -> None:
        """Takes the members of each process: its tables first, as the tool writes them."""
        for key in self._document.descend():
            if key == "metadata":
                self._add_process(self._document.value())
            elif key == "agents":
                self._add_agents(self._document.value())
            elif key == "strings":
                self._add_strings(self._document.value())
            elif key == "kernel_symbols":
                for rows in self._document.objects(_SYMBOL):
                    self._add_symbols(rows)
            elif key == "buffer_records":
                for kind in self._document.descend():
                    self._add_records(kind)
            elif key == "callback_records":
                for kind in self._document.descend():
                    self._leave_out(kind)

    def finish(self) -> None:
        """Stages the devices and tells what was left out."""
        known = {device["id"]: device for device in self._devices}
        for process, device in self._lanes.devices():
            stage_devices(self._recording, [known[device]] if device in known else [], process)
        for kind, count in self._left.items():
            self._recording.warn(f"{count:,} records of {kind} were left out.")
        self._recording.clock = Clock(None, self._host)

    def _add_process(self, about: Any) -> None:
        about = about if isinstance(about, dict) else {}
        pid, command, node = whole_number(about.get("pid"), 1 << 32), about.get("command"), about.get("node")
        self._process = NO_NUMBER if pid is None else pid
        index = self._lanes.process(self._process)
        if isinstance(command, list) and all(isinstance(word, str) for word in command):
            self._recording.processes[index].command = " ".join(command)
        host = node.get("hostname") if isinstance(node, dict) else None
        self._host = host if isinstance(host, str) and host else self._host

    def _add_agents(self, agents: Any) -> None:
        self._gpus, self._devices = {}, []
        for agent in agents if isinstance(agents, list) else []:
            handle = whole_number(_member(_member(agent, "id"), "handle"), 1 << 64)
            if _member(agent, "type") == _GPU and handle is not None:
                number = len(self._gpus)
                self._gpus[handle] = number
                name = _member(agent, "product_name") or _member(agent, "name")
                self._devices.append({"id": number, "name": name, "numSms": _member(agent, "cu_count")})

    def _add_strings(self, strings: Any) -> None:
        kinds = _member(strings, "buffer_records")
        for number, kind in enumerate(kinds if isinstance(kinds, list) else []):
            names = _member(kind, "operations")
            for operation, name in enumerate(names if isinstance(names, list) else []):
                if isinstance(name, str):
                    self._operations[(number, operation)] = name
        markers = _member(strings, "marker_api")
        for marker in markers if isinstance(markers, list) else []:
            key, value = whole_number(_member(marker, "key"), 1 << 64), _member(marker, "value")
            if key is not None and isinstance(value, str):
                self._markers[key] = value

    def _add_symbols(self, rows: JsonRows) -> None:
        names = pc.coalesce(*(_texts(rows, key) for key in list(_SYMBOL.numbers)[1:]))
        for number, name in zip(rows.integers("kernel_id").to_pylist(), names.to_pylist()):
            if number is not None and name:
                self._kernels[number] = name

    def _add_records(self, kind: str) -> None:
        for rows in self._document.objects(_RECORD):
            (start, has_start), (end, has_end) = (rows.scaled(key, 0) for key in _TIMES)
            timed = has_start & has_end
            self._count(kind, int(np.count_nonzero(~timed)))
            if timed.any():
                self._stage(kind, rows.take(timed), start[timed], end[timed])

    def _stage(self, kind: str, rows: JsonRows, start: Ints, end: Ints) -> None:
        columns: dict[str, Any] = {
            "start_ts": pa.array(start),
            "end_ts": pa.array(np.minimum(end, LARGEST_TIME)),
            "correlation_id": rows.objects("correlation_id", _INTERNAL).integers("internal"),
        }
        if kind == "kernel_dispatch":
            columns |= self._dispatches(rows)
        elif kind == "memory_copy":
            columns |= self._copies(rows)
        else:
            columns |= self._calls(rows, kind, columns["correlation_id"])
        self._lanes.add_spans(columns)

    def _dispatches(self, rows: JsonRows) -> dict[str, Any]:
        inside = rows.objects("dispatch_info", _DISPATCH)
        devices = np.maximum(self._device_numbers(_handles(inside, "agent_id")), 0)
        queues = _numbers(_handles(inside, "queue_id"))
        found = {
            LANE: self._lanes.streams(self._own(len(rows)), devices, queues),
            "name": _named(inside.integers("kernel_id"), self._kernels, "kernel"),
            "category": pa.repeat("kernel", len(rows)).dictionary_encode(),
        }
        if self._recording.with_arguments:
            sizes = {"grid": "grid_size", "workgroup": "workgroup_size"}
            members = {name: _size(inside, key) for name, key in sizes.items()}
            members = {"device": pa.array(devices), "queue": pa.array(queues), **members}
            found["arguments_json"] = objects_of_columns(members)
        return found

    def _copies(self, rows: JsonRows) -> dict[str, Any]:
        ends = [self._device_numbers(_handles(rows, key)) for key in ("dst_agent_id", "src_agent_id")]
        devices = np.where(ends[0] != NO_NUMBER, ends[0], np.maximum(ends[1], 0))
        count = len(rows)
        names = [COPY_NAMES.get(name, name) for name in self._operation_names(rows, "Memcpy")]
        lanes = self._lanes.streams(self._own(count), devices, np.full(count, 1 << 20), "copies")
        return {
            LANE: lanes,
            "name": pa.array(names).dictionary_encode(),
            "category": pa.repeat("gpu_memcpy", count).dictionary_encode(),
            "arguments_json": objects_of_columns({"bytes": rows.integers("bytes")}),
        }

    def _calls(self, rows: JsonRows, kind: str, correlation: pa.Array) -> dict[str, Any]:
        count = len(rows)
        names: Iterable[str] = self._operation_names(rows, kind)
        if kind == "marker_api":
            names = [self._markers.get(number, name) for number, name in zip(correlation.to_pylist(), names)]
        threads = _numbers(rows.integers("thread_id"))
        return {
            LANE: self._lanes.threads(self._own(count), threads),
            "name": pa.array(names, pa.string()).dictionary_encode(),
            "category": pa.repeat(_CATEGORIES.get(kind, kind), count).dictionary_encode(),
        }

    def _operation_names(self, rows: JsonRows, otherwise: str) -> list[str]:
        keys = zip(rows.integers("kind").to_pylist(), rows.integers("operation").to_pylist())
        return [self._operations.get(key, otherwise) for key in keys]

    def _own(self, count: int) -> Ints:
        return np.full(count, self._process, np.int64)

    def _device_numbers(self, handles: pa.Array) -> Ints:
        """Number of each agent among the GPUs; `NO_NUMBER` for one that is none."""
        known = [self._gpus.get(handle, NO_NUMBER) for handle in handles.to_pylist()]
        return np.array(known, np.int64)

    def _leave_out(self, kind: str) -> None:
        self._count(kind, sum(len(rows) for rows in self._document.objects(KeySet(()))))

    def _count(self, kind: str, count: int) -> None:
        if count:
            self._left[kind] = self._left.get(kind, 0) + count


def _member(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _handles(rows: JsonRows, key: str) -> pa.Array:
    return rows.objects(key, _HANDLE).integers("handle")


def _numbers(column: pa.Array) -> Ints:
    values: Ints = column.fill_null(0).to_numpy(zero_copy_only=False)
    return values


def _texts(rows: JsonRows, key: str) -> pa.Array:
    texts = rows.texts(key).cast(pa.string())
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _size(rows: JsonRows, key: str) -> pa.Array:
    axes = rows.objects(key, _AXES)
    return lists_of_columns(*(axes.integers(axis) for axis in "xyz"))


def _named(numbers: pa.Array, names: dict[int, str], otherwise: str) -> pa.DictionaryArray:
    coded = numbers.fill_null(NO_NUMBER).dictionary_encode()
    texts = [names.get(number, f"{otherwise} {number}") for number in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices).dictionary_encode()
