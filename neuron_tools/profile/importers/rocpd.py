"""rocpd: databases of rocprofiler-sdk (`rocprofv3 --output-format rocpd`) and of ROCm Systems Profiler.

Dispatches and copies stand on the HIP stream that they were put into, or on their queue where it is not told;
calls of HIP, HSA and RCCL, markers and instrumented functions on threads; counters beside them. A dispatch
and the call that launched it share a stack id. Each traced process has tables of its own, told apart by how
their names end. Times are nanoseconds of the host's clock since it was started (ROCm/rocm-systems,
rocprofiler-sdk-rocpd, rocpd_tables.sql, versions 3.0.0 to 3.0.5; where rows name only their track, as drafts
of version 4 do, the track tells where they ran).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.devices import stage_devices
from neuron_tools.profile.importers.distinct import distinct_rows
from neuron_tools.profile.importers.emitted_operators import operators_of_ranges
from neuron_tools.profile.importers.json_columns import lists_of_columns, objects_of_columns
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import LANE, Clock, Recording
from neuron_tools.profile.importers.rocpd_counters import RocpdCounters
from neuron_tools.profile.importers.rocpd_details import EventDetails, details_of_events
from neuron_tools.profile.importers.rocpd_memory import RocpdMemory
from neuron_tools.profile.importers.rocpd_session import PREFIX, Session, ToldProcess, base_name, endings
from neuron_tools.profile.importers.rocprofiler import COPY_NAMES
from neuron_tools.profile.importers.sqlite_file import SqliteFile, ends_of, times_of
from neuron_tools.profile.importers.sqlite_rows import warn_of_unread_tables

NAME = "rocpd"
_EVENTS = ("kernel_dispatch", "memory_copy", "region", "sample", "memory_allocate")
_NO_EVENTS = ("info_node", "info_process", "info_thread")
_CATEGORIES = {"hip": "hip_runtime", "hsa": "hsa", "rccl": "rccl", "marker": "user_annotation"}
_COPIES_LINE, _COPIES = 1 << 20, "copies"
_AXES = "xyz"


def recognise(database: SqliteFile) -> bool:
    """Whether the tables are those of rocpd."""
    return any(
        database.has(f"{PREFIX}{table}{ending}", "start", "end")
        for ending in endings(database)
        for table in ("kernel_dispatch", "memory_copy", "region", "memory_allocate")
    )


def read(database: SqliteFile, recording: Recording) -> None:
    """Stages the trace.

    Raises:
        TraceError: The database is damaged or has more rows than any trace.
    """
    lanes = Lanes(recording, lambda device: f"GPU {device}")
    processes: dict[int, ToldProcess] = {}
    for ending in endings(database):
        _Reader(Session(database, ending, recording), lanes, recording, processes).read()
    _tell_ranks(recording, processes)
    known = endings(database)
    read_tables = {f"{PREFIX}{table}" for table in (*_EVENTS, *_NO_EVENTS, "pmc_event")}
    stamps = ("start", "timestamp", "event_id")
    warn_of_unread_tables(database, recording, read_tables, stamps, lambda table: base_name(table, known))


def _tell_ranks(recording: Recording, processes: dict[int, ToldProcess]) -> None:
    hosts = {process.host for process in processes.values()}
    recording.clock = Clock(None, hosts.pop() if len(hosts) == 1 else None)
    if len(processes) == 1:
        (only,) = processes.values()
        recording.rank, recording.world_size = only.rank, only.world_size


@dataclass(eq=False)
class _Reader:
    """Reads the tables of one traced process.

    Args:
        session: Has them.
        lanes: Of all traced processes.
        recording: Receives the rows.
        processes: Those told so far by number among the lanes; gets this one's.
    """

    session: Session
    lanes: Lanes
    recording: Recording
    processes: dict[int, ToldProcess]

    def __post_init__(self) -> None:
        self._numbers = {key: self._add(told) for key, told in self.session.processes.items()}
        self._counters = RocpdCounters(self.session, self.lanes, self.recording)
        self._memory = RocpdMemory(self.lanes, self.recording)

    def read(self) -> None:
        """Stages everything."""
        self._add_kernels()
        self._add_copies()
        self._add_regions()
        self._add_samples()
        self._add_memory()
        self._memory.finish()
        self._counters.finish()
        self._add_devices()

    def _add(self, told: ToldProcess) -> int:
        """Number of a process among the lanes: its own, unless one of another node has that, too."""
        known = self.processes
        number = told.process_id if told.process_id not in known else -2 - len(known)
        known[number] = told
        process = self.recording.processes[self.lanes.process(number)]
        process.process_id, process.command, process.host = told.process_id, told.command, told.host
        process.rank = told.rank
        return number

    def _add_kernels(self) -> None:
        symbols = self.session.lookup(
            "info_kernel_symbol", integers=["arch_vgpr_count"], texts=["display_name", "kernel_name"]
        )
        sizes = [f"{size}_size_{axis}" for size in ("grid", "workgroup") for axis in _AXES]
        columns = ["end", "pid", "agent_id", "kernel_id", "queue_id", "stream_id", *sizes]
        columns += ["group_segment_size", "graph_exec_id", "graph_node_id"]
        for rows in self.session.timed("kernel_dispatch", columns):
            devices = np.maximum(self._devices(rows["agent_id"]), 0)
            names = [symbols.look_up(rows["kernel_id"], name) for name in ("display_name", "kernel_name")]
            number = pc.binary_join_element_wise("kernel", rows["kernel_id"].cast(pa.string()), " ")
            told = {
                "device": pa.array(devices),
                "stream": rows["stream_id"],
                "queue": rows["queue_id"],
                "grid": lists_of_columns(*(rows[f"grid_size_{axis}"] for axis in _AXES)),
                "workgroup": lists_of_columns(*(rows[f"workgroup_size_{axis}"] for axis in _AXES)),
                "registers per thread": symbols.look_up(rows["kernel_id"], "arch_vgpr_count"),
                "shared memory": rows["group_segment_size"],
                "graph id": rows["graph_exec_id"],
                "graph node id": rows["graph_node_id"],
            }
            self._stage_work(rows, devices, pc.coalesce(*names, number, "kernel"), "kernel", told)

    def _add_copies(self) -> None:
        columns = ["end", "pid", "dst_agent_id", "src_agent_id", "queue_id", "stream_id", "name_id", "size"]
        for rows in self.session.timed("memory_copy", columns):
            ends = [self._devices(rows[f"{end}_agent_id"]) for end in ("dst", "src")]
            devices = np.where(ends[0] != NO_NUMBER, ends[0], np.maximum(ends[1], 0))
            told = self.session.strings.look_up(rows["name_id"]).fill_null("Memcpy").dictionary_encode()
            names = [COPY_NAMES.get(name, name) for name in told.dictionary.to_pylist()]
            name = pa.array(names, pa.string()).take(told.indices)
            self._stage_work(rows, devices, name, "gpu_memcpy", {"bytes": rows["size"]})

    def _stage_work(
        self,
        rows: pa.RecordBatch,
        devices: Ints,
        names: pa.Array,
        category: str,
        told: dict[str, pa.Array],
    ) -> None:
        processes = self._processes(rows["pid"])
        start = times_of(rows["start"])
        end = ends_of(rows["end"], start)
        columns: dict[str, Any] = {
            LANE: self._lines(processes, devices, rows, is_copy=category == "gpu_memcpy"),
            "start_ts": pa.array(start),
            "end_ts": pa.array(end),
            "name": names.dictionary_encode(),
            "category": pa.repeat(category, rows.num_rows).dictionary_encode(),
            "correlation_id": self._links(rows),
        }
        if self.recording.with_arguments:
            columns["arguments_json"] = objects_of_columns(told)
        self.lanes.add_spans(columns)
        self._counters.stage(rows["event_id"], processes, start, end)

    def _add_regions(self) -> None:
        sampled = self.session.lookup("sample", "event_id", integers=["track_id"])
        for rows in self.session.timed("region", ["end", "pid", "tid", "name_id"]):
            processes, start = self._processes(rows["pid"]), times_of(rows["start"])
            end = ends_of(rows["end"], start)
            line = self.session.tracks.look_up(sampled.look_up(rows["event_id"]), "name_id")
            lanes = self._threads(processes, rows["tid"], self.session.strings.look_up(line))
            names = self.session.strings.look_up(rows["name_id"]).fill_null("")
            self._stage_calls(rows, lanes, names, start, end)
            self._counters.stage(rows["event_id"], processes, start)

    def _add_samples(self) -> None:
        """Stages moments; those of regions and of counters stand there already."""
        if not self.session.has("sample"):
            return
        regions = self.session.lookup("region", "event_id")
        for rows in self.session.timed("sample", ["name_id"], start="timestamp"):
            track = rows["track_id"]
            processes = self._processes(self.session.tracks.look_up(track, "pid"))
            start = times_of(rows["timestamp"])
            is_counter = self._counters.stage(rows["event_id"], processes, start)
            place = ~is_counter & ~regions.knows(rows["event_id"])
            chosen = rows.filter(pa.array(place))
            if not chosen.num_rows:
                continue
            lanes = self._threads(processes[place], self.session.tracks.look_up(chosen["track_id"], "tid"))
            numbers = pc.coalesce(
                chosen["name_id"], self.session.tracks.look_up(chosen["track_id"], "name_id")
            )
            names = self.session.strings.look_up(numbers).fill_null("")
            self._stage_calls(chosen, lanes, names, start[place], start[place])

    def _add_memory(self) -> None:
        columns = ["end", "pid", "tid", "agent_id", "address", "size"]
        for rows in self.session.timed("memory_allocate", columns, ["type", "level"]):
            processes, start = self._processes(rows["pid"]), times_of(rows["start"])
            end = ends_of(rows["end"], start)
            told = self._memory.columns(rows, processes, self._devices(rows["agent_id"]), end)
            self.lanes.add_spans(
                {
                    LANE: self._threads(processes, rows["tid"]),
                    "start_ts": pa.array(start),
                    "end_ts": pa.array(end),
                    **told,
                }
            )

    def _stage_calls(
        self, rows: pa.RecordBatch, lanes: pa.Array, names: pa.Array, start: Ints, end: Ints
    ) -> None:
        details = self._details(rows)
        told = self.session.categories(rows).fill_null("").dictionary_encode()
        kinds = [_category(text) for text in told.dictionary.to_pylist()]
        columns = operators_of_ranges(
            pc.coalesce(details.messages, names),
            pa.array(kinds, pa.string()).take(told.indices),
            with_arguments=self.recording.with_arguments,
        )
        if self.recording.with_arguments:
            own = columns.get("arguments_json", pa.nulls(rows.num_rows, pa.string()))
            columns["arguments_json"] = pc.coalesce(own, details.arguments)
        self.lanes.add_spans(
            {
                LANE: lanes,
                "start_ts": pa.array(start),
                "end_ts": pa.array(end),
                "correlation_id": self._links(rows),
                "source_file": details.files.dictionary_encode(),
                "source_line": details.lines,
                **columns,
            }
        )

    def _details(self, rows: pa.RecordBatch) -> EventDetails:
        carried = (self.session.event(rows, name) for name in ("extdata", "call_stack", "line_info"))
        return details_of_events(*carried)

    def _links(self, rows: pa.RecordBatch) -> pa.Array:
        """What a call shares with the work that it launched; null where there is none."""
        stacks = self.session.event(rows, "stack_id")
        return pc.if_else(pc.greater(stacks, 0), stacks, pa.scalar(None, pa.int64()))

    def _processes(self, keys: pa.Array) -> Ints:
        return _mapped(keys, lambda key: self._numbers.get(key, NO_NUMBER))

    def _devices(self, keys: pa.Array) -> Ints:
        """Numbers of GPUs; `NO_NUMBER` for what is none."""
        agents = self.session.agents
        return _mapped(keys, lambda key: agents[key].device if key in agents else NO_NUMBER)

    def _lines(self, processes: Ints, devices: Ints, rows: pa.RecordBatch, *, is_copy: bool) -> pa.Array:
        """Lanes of work: of its stream, or of its queue."""
        streams, queues = (_numbers(rows[f"{kind}_id"]) for kind in ("stream", "queue"))
        different, places = distinct_rows(processes, devices, streams, queues)
        lanes = [self._line(*key, is_copy=is_copy) for key in different.tolist()]
        return pa.array(np.array(lanes, np.int32)[places])

    def _line(self, process: int, device: int, stream: int, queue: int, *, is_copy: bool) -> int:
        names = self.session.names
        if stream:
            return self.lanes.stream(process, device, stream, names["stream"].get(stream, f"stream {stream}"))
        if is_copy and not queue:
            return self.lanes.stream(process, device, _COPIES_LINE, _COPIES)
        return self.lanes.stream(process, device, queue, names["queue"].get(queue, f"queue {queue}"))

    def _threads(self, processes: Ints, keys: pa.Array, lines: pa.Array | None = None) -> pa.Array:
        """Lanes of threads; `lines` names those of samples, which stand beside what the thread did."""
        coded = (pa.nulls(len(keys), pa.string()) if lines is None else lines).dictionary_encode()
        codes = coded.indices.cast(pa.int64()).fill_null(NO_NUMBER).to_numpy(zero_copy_only=False)
        named = coded.dictionary.to_pylist()
        threads = keys.fill_null(NO_NUMBER).to_numpy(zero_copy_only=False)
        different, places = distinct_rows(processes, threads, codes)
        lanes = []
        for process, thread, code in different.tolist():
            number, name = self.session.threads.get(thread, (thread, None))
            lanes.append(self.lanes.thread(process, number, name if code == NO_NUMBER else named[code]))
        return pa.array(np.array(lanes, np.int32)[places])

    def _add_devices(self) -> None:
        indices = {self.lanes.process(number) for number in self._numbers.values()}
        known = {agent.device: agent for agent in self.session.agents.values()}
        for process, device in self.lanes.devices():
            if process in indices and device in known:
                about = {"id": device, "name": known[device].name, "numSms": known[device].compute_units}
                stage_devices(self.recording, [about], process)


def _category(told: str) -> str:
    """What a kind of events is called here: `HIP_RUNTIME_API_EXT`, `rocm_hip_api` are one."""
    words = re.split(r"[^a-z]+", told.lower())
    return next((name for word, name in _CATEGORIES.items() if word in words), told.lower())


def _numbers(column: pa.Array) -> Ints:
    values: Ints = column.fill_null(0).to_numpy(zero_copy_only=False)
    return np.maximum(values, 0)


def _mapped(keys: pa.Array, value_of: Callable[[int], int]) -> Ints:
    """A number for each key, asked once per different one; `NO_NUMBER` for null."""
    coded = keys.dictionary_encode()
    values = np.array([*map(value_of, coded.dictionary.to_pylist()), NO_NUMBER], np.int64)
    found: Ints = values[coded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)]
    return found
