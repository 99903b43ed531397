"""Nsight Systems: what `nsys export --type sqlite` writes.

Kernels, copies, fills and waits stand on streams, calls of the CUDA API and of other libraries and NVTX
ranges on threads, metrics of the GPUs are counters. Times are nanoseconds after the session's start. Which
tables and columns there are depends on the version and on what was traced: what is absent is null, what is
not read is told. Numbers of threads hold the process (https://docs.nvidia.com/nsight-systems, SQLite schema).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.importers.devices import stage_devices
from neuron_tools.profile.importers.emitted_operators import operators_of_ranges
from neuron_tools.profile.importers.json_columns import lists_of_columns, objects_of_columns
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import LANE, Clock, Recording
from neuron_tools.profile.importers.sqlite_file import SqliteFile, ends_of, times_of
from neuron_tools.profile.importers.sqlite_lookup import SqliteLookup
from neuron_tools.profile.importers.sqlite_rows import timed_rows, warn_of_unread_tables

NAME = "Nsight Systems"
_PID_SHIFT, _NUMBER_MASK = 24, 0xFFFFFF
_MOST_DEVICES = 1 << 10
_NVTX_RANGES = (34, 37, 59, 60, 65, 70, 71)
"""Marks, and ranges by push and pop or by start and end: of NVTX and of its text files."""
_COPY_KINDS = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH",
    10: "PtoP", 11: "Unified HtoD", 12: "Unified DtoH", 13: "Unified DtoD",
}  # fmt: skip
_WAITS = {
    1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync",
}  # fmt: skip


@frozen
class _Work:
    """A table of what ran on devices: its category, and how its rows are called and described."""

    category: str
    name: str
    columns: Sequence[str]
    names: Sequence[str] = ()


_DEVICE_TABLES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": _Work(
        "kernel",
        "kernel",
        ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
         "dynamicSharedMemory", "graphId"),
        ("demangledName", "shortName", "mangledName"),
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": _Work("gpu_memcpy", "Memcpy", ("bytes", "copyKind")),
    "CUPTI_ACTIVITY_KIND_MEMSET": _Work("gpu_memset", "Memset", ("bytes", "value")),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": _Work("cuda_sync", "Sync", ("syncType", "eventId")),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": _Work("kernel", "CUDA graph", ("graphId", "graphExecId")),
}  # fmt: skip
_HOST_TABLES = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "cuda_runtime",
    "CUPTI_ACTIVITY_KIND_DRIVER": "cuda_driver",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "overhead",
    "PROFILER_OVERHEAD": "overhead",
    "OSRT_API": "os_runtime",
    "CUDNN_EVENTS": "cudnn",
    "CUBLAS_EVENTS": "cublas",
    "OPENMP_EVENT_KIND_THREAD": "openmp",
    "OPENMP_EVENT_KIND_PARALLEL": "openmp",
    "OPENMP_EVENT_KIND_TASK_CREATE": "openmp",
    "OPENMP_EVENT_KIND_SYNC_WAIT": "openmp",
    "MPI_P2P_EVENTS": "mpi",
    "MPI_COLLECTIVES_EVENTS": "mpi",
    "MPI_OTHER_EVENTS": "mpi",
    "MPI_START_WAIT_EVENTS": "mpi",
    "UCP_EVENTS": "ucx",
    "NVTX_EVENTS": "user_annotation",
}
_METRICS = "GPU_METRICS"
_NAMES = {NO_NUMBER: "GPUs"}
"""Of what belongs to no process: samples of whole devices."""


def recognise(database: SqliteFile) -> bool:
    """Whether the tables are those of Nsight Systems."""
    return "StringIds" in database.columns and any(
        database.has(table, "start") for table in (*_DEVICE_TABLES, *_HOST_TABLES)
    )


def read(database: SqliteFile, recording: Recording) -> None:
    """Stages the trace.

    Raises:
        TraceError: The database is damaged or has more texts than any trace.
    """
    reader = _Reader(database, recording)
    for table, work in _DEVICE_TABLES.items():
        reader.add_work(table, work)
    for table, category in _HOST_TABLES.items():
        reader.add_calls(table, category)
    reader.add_metrics()
    reader.finish()


class _Reader:
    def __init__(self, database: SqliteFile, recording: Recording) -> None:
        self._database = database
        self._recording = recording
        self._texts = SqliteLookup(database, "StringIds", "id", texts=["value"])
        self._lanes = Lanes(recording, lambda device: f"GPU {device}")
        self._process_names = self._named_processes()
        self._only_process = self._caller()

    def add_work(self, table: str, work: _Work) -> None:
        """Stages what ran on devices."""
        integers = ["start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphNodeId"]
        columns = [*integers, *work.columns, *work.names]
        for batch in self._database.batches(table, columns, ()):
            self._stage_work(timed_rows(batch, "start", table, self._recording), work)

    def add_calls(self, table: str, category: str) -> None:
        """Stages what threads of the host did."""
        integers = ["start", "end", "globalTid", "correlationId", "nameId", "textId", "eventType"]
        for batch in self._database.batches(table, integers, ["text"]):
            timed = timed_rows(batch, "start", table, self._recording)
            if table == "NVTX_EVENTS" and self._database.has(table, "eventType"):
                timed = timed.filter(pc.is_in(timed["eventType"], value_set=pa.array(_NVTX_RANGES)))
            if timed.num_rows:
                self._stage_calls(timed, category)

    def add_metrics(self) -> None:
        """Stages metrics that were sampled on the GPUs."""
        if not self._database.has(_METRICS, "timestamp", "metricId", "value"):
            return
        names = self._metric_names()
        for batch in self._database.batches(_METRICS, ["timestamp", "typeId", "metricId"], (), ["value"]):
            known = batch.filter(pc.and_(batch["timestamp"].is_valid(), batch["value"].is_valid()))
            keys = list(
                zip(known["typeId"].fill_null(0).to_pylist(), known["metricId"].fill_null(0).to_pylist())
            )
            lane_of = {key: self._metric_lane(key, names) for key in set(keys)}
            lanes = [lane_of[key] for key in keys]
            self._recording.append_samples(lanes, times_of(known["timestamp"]), known["value"])

    def finish(self) -> None:
        """Stages the devices, tells the clock and what was not read."""
        self._add_devices()
        starts = [
            batch.column(0)[0].as_py()
            for batch in self._database.batches("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs"], ())
        ]
        start = starts[0] if starts and starts[0] is not None and 0 < starts[0] < LARGEST_TIME else None
        self._recording.clock = Clock(start)
        read_tables = {*_DEVICE_TABLES, *_HOST_TABLES, _METRICS}
        warn_of_unread_tables(self._database, self._recording, read_tables, ("start", "timestamp"))

    def _stage_work(self, rows: pa.RecordBatch, work: _Work) -> None:
        if not rows.num_rows:
            return
        processes = _process_numbers(rows["globalPid"])
        processes = np.where(processes == NO_NUMBER, self._only_process, processes)
        devices = _small(rows["deviceId"], _MOST_DEVICES)
        streams = _small(rows["streamId"], 1 << 32)
        start = times_of(rows["start"])
        name = self._work_names(rows, work)
        self._lanes.add_spans(
            {
                LANE: self._lanes.streams(processes, devices, streams),
                "start_ts": pa.array(start),
                "end_ts": pa.array(ends_of(rows["end"], start)),
                "name": name.dictionary_encode(),
                "category": pa.repeat(work.category, rows.num_rows).dictionary_encode(),
                "correlation_id": rows["correlationId"],
                **self._arguments(_work_arguments(rows, work)),
            }
        )

    def _arguments(self, members: dict[str, pa.Array]) -> dict[str, Any]:
        if not members or not self._recording.with_arguments:
            return {}
        return {"arguments_json": objects_of_columns(members)}

    def _work_names(self, rows: pa.RecordBatch, work: _Work) -> pa.Array:
        if work.names:
            return pc.coalesce(*(self._texts.look_up(rows[name]) for name in work.names), work.name)
        kinds = {"gpu_memcpy": ("copyKind", _COPY_KINDS), "cuda_sync": ("syncType", _WAITS)}
        if work.category not in kinds:
            return pa.repeat(work.name, rows.num_rows)
        column, names = kinds[work.category]
        described = _mapped(rows[column], names)
        if work.category == "cuda_sync":
            return pc.coalesce(described, work.name)
        return pc.coalesce(pc.binary_join_element_wise(work.name, described, " "), work.name)

    def _stage_calls(self, rows: pa.RecordBatch, category: str) -> None:
        threads = rows["globalTid"].fill_null(NO_NUMBER).to_numpy(zero_copy_only=False)
        lanes = self._lanes.threads(_process_numbers(rows["globalTid"]), threads & _NUMBER_MASK)
        start = times_of(rows["start"])
        name = pc.coalesce(
            rows["text"], self._texts.look_up(rows["textId"]), self._texts.look_up(rows["nameId"]), ""
        )
        columns: dict[str, Any] = {
            LANE: lanes,
            "start_ts": pa.array(start),
            "end_ts": pa.array(ends_of(rows["end"], start)),
            "name": name.dictionary_encode(),
            "category": pa.repeat(category, rows.num_rows).dictionary_encode(),
            "correlation_id": rows["correlationId"],
        }
        if category == "user_annotation":
            kinds = pa.repeat(category, rows.num_rows)
            with_arguments = self._recording.with_arguments
            columns |= operators_of_ranges(name, kinds, with_arguments=with_arguments)
        self._lanes.add_spans(columns)

    def _named_processes(self) -> dict[int, str]:
        names: dict[int, str] = {}
        for batch in self._database.batches("PROCESSES", ["pid"], ["name"]):
            names |= {pid: name for pid, name in zip(*batch.to_pydict().values()) if pid and name}
        return names

    def _caller(self) -> int:
        """The process that called CUDA, for exports whose kernels do not tell theirs; none if several did."""
        found: set[int] = set()
        for batch in self._database.batches("CUPTI_ACTIVITY_KIND_RUNTIME", ["globalTid"], ()):
            found.update(np.unique(_process_numbers(batch.column(0))).tolist())
        return found.pop() if len(found) == 1 else NO_NUMBER

    def _metric_names(self) -> dict[tuple[int, int], str]:
        found: dict[tuple[int, int], str] = {}
        for batch in self._database.batches(
            "TARGET_INFO_GPU_METRICS", ["typeId", "metricId"], ["metricName"]
        ):
            kinds, numbers, names = batch.to_pydict().values()
            found |= {key: name for key, name in zip(zip(kinds, numbers), names) if name}
        return found

    def _metric_lane(self, key: tuple[int, int], names: dict[tuple[int, int], str]) -> int:
        name = names.get(key, f"metric {key[1]}")
        unit = "%" if "%" in name else None
        return self._lanes.counter(NO_NUMBER, f"GPU {key[0] & 0xFF}", name, unit)

    def _add_devices(self) -> None:
        """Rows of Device, numbered as CUDA numbers them; names of processes, ranks by their order."""
        for number, index in self._lanes.process_numbers():
            self._recording.processes[index].name = self._process_names.get(number, _NAMES.get(number))
        known: dict[int, dict[str, Any]] = {}
        for batch in self._database.batches("TARGET_INFO_GPU", ["id", "totalMemory", "smCount"], ["name"]):
            for number, memory, units, name in zip(*batch.to_pydict().values()):
                if number is not None:
                    known[number] = {"name": name, "totalGlobalMem": memory, "numSms": units}
        cuda_of: dict[tuple[int, int], int] = {}
        for batch in self._database.batches("TARGET_INFO_CUDA_DEVICE", ["gpuId", "cudaId", "pid"], ()):
            for gpu, cuda, pid in zip(*batch.to_pydict().values()):
                if gpu is not None and cuda is not None and pid is not None:
                    cuda_of[(pid, cuda)] = gpu
        numbers = {index: number for number, index in self._lanes.process_numbers()}
        for process, device in self._lanes.devices():
            about = known.get(cuda_of.get((numbers[process], device), device))
            if about is not None:
                stage_devices(self._recording, [{"id": device, **about}], process)


def _work_arguments(rows: pa.RecordBatch, work: _Work) -> dict[str, pa.Array]:
    """As torch.profiler calls them, where it has them."""
    found = {"device": rows["deviceId"], "stream": rows["streamId"]}
    if work.category == "kernel" and work.names:
        found["grid"] = lists_of_columns(*(rows[f"grid{axis}"] for axis in "XYZ"))
        found["block"] = lists_of_columns(*(rows[f"block{axis}"] for axis in "XYZ"))
        found["registers per thread"] = rows["registersPerThread"]
        shared = [rows[name].fill_null(0) for name in ("staticSharedMemory", "dynamicSharedMemory")]
        found["shared memory"] = pc.add(*shared)
    if "bytes" in work.columns:
        found["bytes"] = rows["bytes"]
    if "graphId" in work.columns:
        found["graph id"] = rows["graphId"]
    found["graph node id"] = rows["graphNodeId"]
    return found


def _process_numbers(numbers: pa.Array) -> Ints:
    """Process in each serialized number of a process or thread; `NO_NUMBER` where there is none."""
    values: Ints = numbers.fill_null(NO_NUMBER).to_numpy(zero_copy_only=False)
    return np.where(values > 0, (values >> _PID_SHIFT) & _NUMBER_MASK, NO_NUMBER)


def _small(numbers: pa.Array, limit: int) -> Ints:
    """Numbers of devices or streams; 0 where a row has none that is sensible."""
    values: Ints = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    return np.where((values >= 0) & (values < limit), values, 0)


def _mapped(column: pa.Array, names: dict[int, str]) -> pa.Array:
    place = pc.index_in(column, value_set=pa.array(list(names), pa.int64()))
    return pa.array(list(names.values())).take(place)
