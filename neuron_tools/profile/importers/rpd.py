"""rpd: databases of ROCm Profile Data (`runTracer.sh`, `rpdTracerControl`), in which rocpd has its origin.

Operations stand on the queues of their GPU, calls of HIP and markers on threads; clocks and loads of the GPUs
are counters. A call and the operations that it launched share the call's number. Texts are those of
`rocpd_string`; since version 3 those of arguments are in `rocpd_ustring`. Times are nanoseconds of the host's
clock since it was started (ROCm/rocmProfileData, rocpd_python/rocpd/schema_data/tableSchema.cmd).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.distinct import distinct_rows
from neuron_tools.profile.importers.emitted_operators import operators_of_ranges
from neuron_tools.profile.importers.json_columns import lists_of_columns, objects_of_columns
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import LANE, Clock, Recording
from neuron_tools.profile.importers.sqlite_file import SqliteFile, ends_of, times_of
from neuron_tools.profile.importers.sqlite_lookup import SqliteLookup
from neuron_tools.profile.importers.sqlite_rows import timed_rows, warn_of_unread_tables

NAME = "ROCm Profile Data"
_OPERATIONS, _CALLS, _LINKS, _MONITOR = "rocpd_op", "rocpd_api", "rocpd_api_ops", "rocpd_monitor"
_MARKER = "UserMarker"
_OVERHEAD = r"::writeRows$|^rpdflush$|^hcc_activity_callback$"
_COPY = r"^Copy(Host|Device)To(Host|Device)"
_KINDS = (("Copy", "gpu_memcpy"), ("Fill|Memset", "gpu_memset"), ("Barrier|Marker", "sync"))
_SIZES = ("gridX", "gridY", "gridZ", "workgroupX", "workgroupY", "workgroupZ")
_UNITS = {"sclk": "MHz", "mclk": "MHz", "power": "W"}
_MOST_NUMBER = 1 << 32


def recognise(database: SqliteFile) -> bool:
    """Whether the tables are those of ROCm Profile Data."""
    return database.has("rocpd_string", "id", "string") and any(
        database.has(table, "start", "end") for table in (_OPERATIONS, _CALLS)
    )


def read(database: SqliteFile, recording: Recording) -> None:
    """Stages the trace.

    Raises:
        TraceError: The database is damaged or has more rows than any trace.
    """
    reader = _Reader(database, recording)
    reader.add_operations()
    reader.add_calls()
    reader.add_monitor()
    recording.clock = Clock(None)
    read_tables = (_OPERATIONS, _CALLS, _MONITOR)
    warn_of_unread_tables(database, recording, read_tables, ("start", "op_id", "api_ptr_id"), _shown)


def _shown(table: str) -> str:
    """What is read beside the tables of events counts as these."""
    beside = (_LINKS, "rocpd_kernelapi", "rocpd_copyapi")
    return _OPERATIONS if table in beside else table


class _Reader:
    def __init__(self, database: SqliteFile, recording: Recording) -> None:
        self._database = database
        self._recording = recording
        self._texts = SqliteLookup(database, "rocpd_string", "id", texts=["string"])
        arguments = "rocpd_ustring" if "rocpd_ustring" in database.columns else "rocpd_string"
        self._arguments = SqliteLookup(database, arguments, "id", texts=["string"])
        self._lanes = Lanes(recording, lambda device: f"GPU {device}")
        self._callers = self._processes()

    def add_operations(self) -> None:
        """Stages what ran on the GPUs' queues."""
        calls = SqliteLookup(self._database, _LINKS, "op_id", integers=["api_id"])
        copies = SqliteLookup(self._database, "rocpd_copyapi", "api_ptr_id", integers=["size"])
        kernels = SqliteLookup(self._database, "rocpd_kernelapi", "api_ptr_id", integers=_SIZES)
        columns = ["id", "start", "end", "gpuId", "queueId", "description_id", "opType_id"]
        for batch in self._database.batches(_OPERATIONS, columns, ()):
            rows = timed_rows(batch, "start", _OPERATIONS, self._recording)
            if rows.num_rows:
                call = calls.look_up(rows["id"])
                told = {
                    "bytes": copies.look_up(call),
                    "grid": lists_of_columns(*(kernels.look_up(call, size) for size in _SIZES[:3])),
                    "workgroup": lists_of_columns(*(kernels.look_up(call, size) for size in _SIZES[3:])),
                }
                self._stage_operations(rows, call, told)

    def add_calls(self) -> None:
        """Stages calls and markers on their threads."""
        columns = ["id", "pid", "tid", "start", "end", "apiName_id", "args_id"]
        for batch in self._database.batches(_CALLS, columns, ()):
            rows = timed_rows(batch, "start", _CALLS, self._recording)
            if rows.num_rows:
                self._stage_calls(rows)

    def add_monitor(self) -> None:
        """Stages the clocks and loads that were watched."""
        columns = (["start", "deviceId"], ["deviceType", "monitorType", "value"])
        for batch in self._database.batches(_MONITOR, *columns):
            is_number = pc.match_substring_regex(batch["value"], r"^-?\d{1,15}(\.\d{1,15})?$")
            rows = timed_rows(batch.filter(is_number), "start", _MONITOR, self._recording)
            keys = list(zip(*(rows[name].to_pylist() for name in ("deviceType", "deviceId", "monitorType"))))
            lane_of = {key: self._counter(*key) for key in set(keys)}
            lanes = [lane_of[key] for key in keys]
            self._recording.append_samples(lanes, times_of(rows["start"]), rows["value"])

    def _counter(self, kind: str | None, device: int | None, name: str | None) -> int:
        owner = f"{(kind or 'device').upper()} {device or 0}"
        return self._lanes.counter(NO_NUMBER, owner, name or "value", _UNITS.get(name or ""))

    def _stage_operations(self, rows: pa.RecordBatch, call: pa.Array, told: dict[str, pa.Array]) -> None:
        kind = self._texts.look_up(rows["opType_id"]).fill_null("")
        description = self._texts.look_up(rows["description_id"])
        copy = pc.replace_substring_regex(kind, _COPY + ".*", r"Memcpy \1to\2")
        copy = pc.replace_substring(pc.replace_substring(copy, "Host", "H"), "Device", "D")
        is_named = pc.fill_null(pc.not_equal(description, ""), fill_value=False)
        start = times_of(rows["start"])
        different, places = distinct_rows(
            self._processes_of(call), _small(rows["gpuId"]), _small(rows["queueId"])
        )
        lanes = [
            self._lanes.stream(process, device, queue, f"queue {queue}")
            for process, device, queue in different.tolist()
        ]
        columns: dict[str, Any] = {
            LANE: pa.array(np.array(lanes, np.int32)[places]),
            "start_ts": pa.array(start),
            "end_ts": pa.array(ends_of(rows["end"], start)),
            "name": pc.if_else(is_named, description, copy).dictionary_encode(),
            "category": _kinds(kind).dictionary_encode(),
            "correlation_id": call,
        }
        if self._recording.with_arguments:
            columns["arguments_json"] = objects_of_columns(told)
        self._lanes.add_spans(columns)

    def _stage_calls(self, rows: pa.RecordBatch) -> None:
        names = self._texts.look_up(rows["apiName_id"]).fill_null("")
        arguments = self._arguments.look_up(rows["args_id"]).fill_null("")
        is_marker = pc.and_(pc.equal(names, _MARKER), pc.not_equal(arguments, ""))
        category = pc.case_when(
            pc.make_struct(
                pc.match_substring_regex(names, _OVERHEAD), pc.starts_with(names, "hsa_"),
                pc.match_substring_regex(names, "^_*hip"),
            ),
            "overhead", "hsa", "hip_runtime", "user_annotation",
        )  # fmt: skip
        start = times_of(rows["start"])
        with_arguments = self._recording.with_arguments
        columns = operators_of_ranges(
            pc.if_else(is_marker, arguments, names), category, with_arguments=with_arguments
        )
        if with_arguments:
            told = pc.if_else(
                pc.or_(is_marker, pc.equal(arguments, "")), pa.scalar(None, pa.string()), arguments
            )
            own = columns.get("arguments_json", pa.nulls(rows.num_rows, pa.string()))
            columns["arguments_json"] = pc.coalesce(own, objects_of_columns({"arguments": told}))
        self._lanes.add_spans(
            {
                LANE: self._lanes.threads(_small(rows["pid"]), _small(rows["tid"])),
                "start_ts": pa.array(start),
                "end_ts": pa.array(ends_of(rows["end"], start)),
                "correlation_id": rows["id"],
                **columns,
            }
        )

    def _processes(self) -> SqliteLookup | int:
        """The only process that called, or that of each call."""
        found: set[int] = set()
        for batch in self._database.batches(_CALLS, ["pid"], ()):
            found.update(np.unique(_small(batch.column(0))).tolist())
        if len(found) > 1:
            return SqliteLookup(self._database, _CALLS, "id", integers=["pid"])
        return found.pop() if found else NO_NUMBER

    def _processes_of(self, calls: pa.Array) -> Ints:
        if isinstance(self._callers, int):
            return np.full(len(calls), self._callers, np.int64)
        found: Ints = self._callers.look_up(calls).fill_null(NO_NUMBER).to_numpy(zero_copy_only=False)
        return found


def _kinds(told: pa.Array) -> pa.Array:
    """Categories of operations by their type; what is not known ran as a kernel."""
    conditions = pc.make_struct(*(pc.match_substring_regex(told, words) for words, _ in _KINDS))
    return pc.case_when(conditions, *(category for _, category in _KINDS), "kernel")


def _small(numbers: pa.Array) -> Ints:
    values: Ints = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    return np.where((values >= 0) & (values < _MOST_NUMBER), values, 0)
