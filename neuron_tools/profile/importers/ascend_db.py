"""Databases of Ascend profilers: `ascend_pytorch_profiler*.db` of torch_npu, `msprof*.db` of msprof.

Tasks stand on the streams of their NPU, named after their operator; collective operations on a line of their
group; calls of PyTorch and CANN and marks of mstx on threads. Numbers of threads hold the process in their
upper half, times are nanoseconds since 1970. A task and the CANN call that launched it share a connection
(MindStudio's documentation of the profiler's db data, tables TASK, CANN_API, PYTORCH_API).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.devices import stage_devices
from neuron_tools.profile.importers.json_columns import objects_of_columns
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import LANE, Clock, Recording
from neuron_tools.profile.importers.sqlite_file import SqliteFile, ends_of, times_of
from neuron_tools.profile.importers.sqlite_lookup import SqliteLookup
from neuron_tools.profile.importers.sqlite_rows import timed_rows, warn_of_unread_tables

NAME = "Ascend profiler database"
NO_CONNECTION = (1 << 32) - 1
"""What stands where nothing launched a task."""
_TASKS, _COMPUTE, _PARTS, _OPERATIONS = (
    "TASK", "COMPUTE_TASK_INFO", "COMMUNICATION_TASK_INFO", "COMMUNICATION_OP",
)  # fmt: skip
_TIMED = (_TASKS, _OPERATIONS, "CANN_API", "PYTORCH_API", "MSTX_EVENTS", "STEP_TIME")
_CALLS = {"CANN_API": "cann", "PYTORCH_API": "cpu_op", "MSTX_EVENTS": "user_annotation"}
_OPERATOR, _FUNCTION = "op", "trace"
_GROUP_LINE = "collectives"
_COPIES, _WAITS = "MEMCPY|MEMSET|SDMA", "WAIT|RECORD|PROFILING_|NOTIFY"
_COUNTERS = {
    ("MEMORY_RECORD", "component"): {"totalAllocated": "bytes", "totalReserved": "bytes"},
    ("NPU_MEM", "type"): {"hbm": "bytes", "ddr": "bytes"},
    ("AICORE_FREQ", ""): {"freq": "MHz"},
}
_UNTOLD = "N/A"
_MOST_NUMBER = 1 << 20


def recognise(database: SqliteFile) -> bool:
    """Whether the tables are those of an Ascend profiler."""
    return database.has("STRING_IDS", "id", "value") and any(
        database.has(table, "startNs", "endNs") for table in _TIMED
    )


def read(database: SqliteFile, recording: Recording) -> None:
    """Stages the trace.

    Raises:
        TraceError: The database is damaged or has more texts than any trace.
    """
    reader = _Reader(database, recording)
    reader.add_tasks()
    reader.add_operations()
    for table, category in _CALLS.items():
        reader.add_calls(table, category)
    reader.add_steps()
    reader.add_counters()
    reader.finish()


class _Reader:
    def __init__(self, database: SqliteFile, recording: Recording) -> None:
        self._database = database
        self._recording = recording
        self._texts = SqliteLookup(database, "STRING_IDS", "id", texts=["value"])
        self._kinds = SqliteLookup(database, "ENUM_API_TYPE", "id", texts=["name"])
        self._lanes = Lanes(recording, lambda device: f"NPU {device}")
        self._process = self._owner()

    def add_tasks(self) -> None:
        """Stages what ran on the NPUs' streams."""
        names = self._names_of_tasks()
        columns = ["startNs", "endNs", "deviceId", "streamId", "connectionId", "globalTaskId", "taskType"]
        for batch in self._database.batches(_TASKS, columns, ()):
            rows = timed_rows(batch, "startNs", _TASKS, self._recording)
            if rows.num_rows:
                self._stage_tasks(rows, names)

    def add_operations(self) -> None:
        """Stages collective operations, each on the line of its group."""
        device = self._only_device()
        columns = ["startNs", "endNs", "connectionId", "opName", "groupName", "count"]
        for batch in self._database.batches(_OPERATIONS, [*columns, "deviceId", "algType"], ()):
            rows = timed_rows(batch, "startNs", _OPERATIONS, self._recording)
            if not rows.num_rows:
                continue
            devices, groups = _small(rows["deviceId"], device), _small(rows["groupName"], 0)
            keys = [*zip(devices.tolist(), groups.tolist())]
            lane_of = {key: self._lanes.stream(self._process, key[0], key[1], _GROUP_LINE) for key in {*keys}}
            lanes = pa.array([lane_of[key] for key in keys], pa.int32())
            told = {"count": rows["count"], "algorithm": self._texts.look_up(rows["algType"])}
            self._stage(rows, lanes, self._texts.look_up(rows["opName"]), "communication", told)

    def add_calls(self, table: str, category: str) -> None:
        """Stages what threads of the host did."""
        columns = ["startNs", "endNs", "globalTid", "connectionId", "name", "message", "type"]
        columns += ["sequenceNumber", "fwdThreadId", "inputShapes"]
        for batch in self._database.batches(table, columns, ()):
            rows = timed_rows(batch, "startNs", table, self._recording)
            if rows.num_rows:
                self._stage_calls(rows, table, category)

    def add_steps(self) -> None:
        """Stages the steps as torch.profiler calls them."""
        for batch in self._database.batches("STEP_TIME", ["startNs", "endNs", "id"], ()):
            rows = timed_rows(batch, "startNs", "STEP_TIME", self._recording)
            if rows.num_rows:
                lane = self._lanes.thread(self._process, NO_NUMBER, "steps")
                names = pc.binary_join_element_wise(
                    "ProfilerStep#", rows["id"].fill_null(0).cast(pa.string()), ""
                )
                lanes = pa.array(np.full(rows.num_rows, lane, np.int32))
                self._stage(rows, lanes, names, "user_annotation", {})

    def add_counters(self) -> None:
        """Stages memory and clock rates."""
        for (table, kind), series in _COUNTERS.items():
            stamps = ["timestampNs", "timestamp", "deviceId", *([kind] if kind else [])]
            for batch in self._database.batches(table, stamps, (), list(series)):
                for name, unit in series.items():
                    self._stage_counter(batch, table, kind, name, unit)

    def finish(self) -> None:
        """Stages the devices; tells rank, host and clock, and what was not read."""
        self._add_devices()
        self._recording.clock = Clock(0, self._first_text("HOST_INFO", "hostName"))
        ranks = self._numbers("RANK_DEVICE_MAP", "rankId")
        if len(ranks) == 1 and 0 <= ranks[0] < _MOST_NUMBER:
            self._recording.rank = ranks[0]
        read_tables = {*_TIMED, *(table for table, _ in _COUNTERS), "SESSION_TIME_INFO", "OP_MEMORY"}
        stamps = ("startNs", "timestampNs", "timestamp")
        warn_of_unread_tables(self._database, self._recording, read_tables, stamps)

    def _names_of_tasks(self) -> dict[str, dict[int, int]]:
        """Number of the name of each task, by the table that has it."""
        found: dict[str, dict[int, int]] = {}
        for table, column in ((_COMPUTE, "name"), (_PARTS, "taskType")):
            found[table] = {}
            for batch in self._database.batches(table, ["globalTaskId", column], ()):
                found[table] |= dict(zip(*batch.to_pydict().values()))
        return found

    def _stage_tasks(self, rows: pa.RecordBatch, names: dict[str, dict[int, int]]) -> None:
        numbers = rows["globalTaskId"].to_pylist()
        told = {
            table: self._texts.look_up(pa.array([known.get(number) for number in numbers], pa.int64()))
            for table, known in names.items()
        }
        kind = self._texts.look_up(rows["taskType"]).fill_null("")
        upper = pc.utf8_upper(kind)
        category = pc.case_when(
            pc.make_struct(
                told[_COMPUTE].is_valid(), told[_PARTS].is_valid(), pc.match_substring_regex(upper, _COPIES),
                pc.match_substring_regex(upper, _WAITS),
            ),
            "kernel", "communication", "gpu_memcpy", "sync", "kernel",
        )  # fmt: skip
        devices, streams = _small(rows["deviceId"], 0), _small(rows["streamId"], 0)
        processes = np.full(rows.num_rows, self._process, np.int64)
        lanes = self._lanes.streams(processes, devices, streams)
        is_told = pc.not_equal(told[_PARTS], _UNTOLD)
        part = pc.if_else(is_told, told[_PARTS], pa.scalar(None, pa.string()))
        name = pc.coalesce(told[_COMPUTE], part, kind)
        self._stage(rows, lanes, name, category, {"task type": kind})

    def _stage_calls(self, rows: pa.RecordBatch, table: str, category: str) -> None:
        threads = rows["globalTid"].fill_null(0).to_numpy(zero_copy_only=False)
        lanes = self._lanes.threads(threads >> 32, threads & 0xFFFFFFFF)
        told: dict[str, pa.Array] = {}
        categories: pa.Array | str = category
        if table == "PYTORCH_API":
            kinds = self._kinds.look_up(rows["type"]).fill_null(_OPERATOR)
            is_plain = [pc.equal(kinds, kind) for kind in (_OPERATOR, _FUNCTION)]
            categories = pc.case_when(pc.make_struct(*is_plain), category, "python_function", kinds)
            told = {
                "Sequence number": rows["sequenceNumber"],
                "Fwd thread id": rows["fwdThreadId"],
                "Input Dims": self._texts.look_up(rows["inputShapes"]),
            }
        name = self._texts.look_up(rows["message" if table == "MSTX_EVENTS" else "name"])
        linked = rows if table == "CANN_API" else rows.drop_columns(["connectionId"])
        self._stage(linked, lanes, name, categories, told)

    def _stage(
        self,
        rows: pa.RecordBatch,
        lanes: pa.Array,
        names: pa.Array,
        category: pa.Array | str,
        told: dict[str, pa.Array],
    ) -> None:
        start = times_of(rows["startNs"])
        columns: dict[str, Any] = {
            LANE: lanes,
            "start_ts": pa.array(start),
            "end_ts": pa.array(ends_of(rows["endNs"], start)),
            "name": names.fill_null("").dictionary_encode(),
        }
        texts = pa.repeat(category, rows.num_rows) if isinstance(category, str) else category
        columns["category"] = texts.dictionary_encode()
        if "connectionId" in rows.schema.names:
            columns["correlation_id"] = _connections(rows["connectionId"])
        if told and self._recording.with_arguments:
            columns["arguments_json"] = objects_of_columns(told)
        self._lanes.add_spans(columns)

    def _stage_counter(self, batch: pa.RecordBatch, table: str, kind: str, name: str, unit: str) -> None:
        stamp = pc.coalesce(batch["timestampNs"], batch["timestamp"])
        rows = batch.filter(pc.and_(stamp.is_valid(), batch[name].is_valid()))
        labels = self._texts.look_up(rows[kind]).fill_null("").to_pylist() if kind else [""] * rows.num_rows
        keys = [*zip(_small(rows["deviceId"], 0).tolist(), labels)]
        lane_of = {
            key: self._lanes.counter(
                self._process, f"NPU {key[0]}: {table.lower()}", f"{key[1]} {name}".strip(), unit
            )
            for key in set(keys)
        }
        if keys:
            times = pc.coalesce(rows["timestampNs"], rows["timestamp"])
            self._recording.append_samples([lane_of[key] for key in keys], times_of(times), rows[name])

    def _owner(self) -> int:
        """The process whose threads called CANN or PyTorch; none if several did or nobody tells."""
        found: set[int] = set()
        for table in ("CANN_API", "PYTORCH_API"):
            for batch in self._database.batches(table, ["globalTid"], ()):
                numbers = batch.column(0).fill_null(0).to_numpy(zero_copy_only=False) >> 32
                found.update(np.unique(numbers).tolist())
        return found.pop() if len(found) == 1 else NO_NUMBER

    def _only_device(self) -> int:
        devices = set(self._numbers(_TASKS, "deviceId"))
        return devices.pop() if len(devices) == 1 else 0

    def _add_devices(self) -> None:
        names: dict[int, str] = {}
        for batch in self._database.batches("NPU_INFO", ["id"], ["name"]):
            names |= {number: name for number, name in zip(*batch.to_pydict().values()) if name}
        for process, device in self._lanes.devices():
            if device in names:
                stage_devices(self._recording, [{"id": device, "name": names[device]}], process)

    def _numbers(self, table: str, column: str) -> list[int]:
        """Numbers in a column that are of a device or a rank."""
        found: list[int] = []
        for batch in self._database.batches(table, [column], ()):
            found += [number for number in pc.unique(batch.column(0)).to_pylist() if number is not None]
        return found

    def _first_text(self, table: str, column: str) -> str | None:
        for batch in self._database.batches(table, (), [column]):
            for text in batch.column(0).to_pylist():
                return str(text) if text else None
        return None


def _connections(column: pa.Array) -> pa.Array:
    """Connections, null where there is none."""
    is_none = pc.or_kleene(column.is_null(), pc.equal(column, NO_CONNECTION))
    return pc.if_else(is_none, pa.scalar(None, pa.int64()), column)


def _small(numbers: pa.Array, otherwise: int) -> Ints:
    """Numbers of devices, streams or groups; another where a row has none that is sensible."""
    values: Ints = numbers.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.where((values >= 0) & (values < 1 << 32), values, otherwise)
