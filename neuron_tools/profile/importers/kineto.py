"""torch.profiler: Chrome trace events with device streams, call stacks, memory and distributed information.

Its producer is Kineto (https://github.com/pytorch/kineto): processes 0, 1, ... with a label `GPU n` are
devices whose threads are streams, as are those on which kernels stand; the processes `Spans` and `Traces` are
marks of the profiler. Times are microseconds after `baseTimeNanoseconds`. Tools that filter or join traces
leave out headers, or put their own before them: then the categories of the events tell the format.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.chrome_trace import read_events
from neuron_tools.profile.importers.collectives import CollectiveEnds
from neuron_tools.profile.importers.devices import stage_devices
from neuron_tools.profile.importers.dialect import CounterTracks, Dialect
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_rows import JsonRows
from neuron_tools.profile.importers.kineto_devices import KernelPlaces
from neuron_tools.profile.importers.names import device_number, places, python_function_place
from neuron_tools.profile.importers.recording import Clock, Recording
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "torch.profiler"
MARKS = frozenset({'"Spans"', '"Traces"', '""', ""})
LARGEST_RANK = 1 << 31

_HEADER_KEYS = frozenset(
    {"schemaVersion", "deviceProperties", "baseTimeNanoseconds", "distributedInfo", "trace_id", "with_stack",
     "record_shapes", "profile_memory", "with_modules", "cuda_runtime_version"}
)  # fmt: skip
_CATEGORY = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|python_function|cuda_runtime|cuda_driver|hip_runtime|kernel|gpu_memcpy|gpu_memset|'
    rb'user_annotation|gpu_user_annotation|cpu_instant_event|ac2g|fwdbwd|xpu_runtime|privateuse1_runtime)"'
)
"""Of an event: no other producer has these categories."""
_DEVICE_TYPES = {0: "CPU", 1: "GPU", 12: "XPU", 20: "PrivateUse1"}
_ASCEND = "Ascend Hardware"
"""Process whose threads are the streams of an NPU, as torch_npu writes it."""
_COUNTED = ("Total Allocated", "Total Reserved")


def recognise(head: Head) -> bool:
    """Whether a file's beginning is that of a torch.profiler trace."""
    if not head.is_json or head.json_keys & head.FOREIGN_KEYS - {"traceEvents"}:
        return False
    return bool(head.json_keys & _HEADER_KEYS) or bool(_CATEGORY.search(head.text))


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the trace."""
    read_events(file, recording, KinetoDialect())


class KinetoDialect(Dialect):
    """What torch.profiler adds to the format."""

    def __init__(self) -> None:
        self._headers: dict[str, Any] = {}
        self._collectives = CollectiveEnds()
        self._kernels = KernelPlaces()

    def add_header(self, key: str, value: Any) -> None:
        """Keeps the small members of the file."""
        self._headers[key] = value

    argument_keys = ("correlation", "Total Allocated", "Total Reserved", "Device Type", "Device Id", "device")

    def columns(self, rows: JsonRows, arguments: JsonRows) -> dict[str, Any]:
        """Correlation ids, and source lines of Python functions."""
        found: dict[str, Any] = {"correlation_id": arguments.integers("correlation")}
        names, categories = rows.texts("name"), rows.texts("cat")
        if "python_function" not in categories.dictionary.to_pylist():
            return found
        place = places(names, python_function_place)
        if place is not None:
            is_python = pc.fill_null(pc.equal(categories.cast(pa.string()), "python_function"), False)
            none = pa.scalar(None, pa.string())
            found["source_file"] = pc.if_else(is_python, place[0].cast(pa.string()), none).dictionary_encode()
            found["source_line"] = pc.if_else(is_python, place[1], pa.scalar(None, pa.int32()))
        return found

    def add_instants(
        self,
        rows: JsonRows,
        arguments: JsonRows,
        time_ns: Ints,
        layout: CounterTracks,
        recording: Recording,
    ) -> None:
        """Makes counters of memory events, and remembers when collectives ended."""
        names = rows.texts("name")
        self._collectives.add(rows, names, time_ns)
        self._kernels.add(rows, arguments.integers("device"))
        texts = names.dictionary.to_pylist()
        if "[memory]" in texts:
            is_memory = pc.fill_null(pc.equal(names.indices, texts.index("[memory]")), False)
            chosen = np.flatnonzero(is_memory.to_numpy(zero_copy_only=False))
            _add_memory(rows.take(chosen), arguments.take(chosen), time_ns[chosen], layout, recording)

    def device_of(self, pid: str, name: str | None, labels: str | None) -> int | None:
        """The number of the label `GPU n`, or of the device whose kernels stand there."""
        if name == _ASCEND:
            return device_number(labels or "") or 0
        found = None if labels is None else device_number(labels)
        return self._kernels.device_of(pid) if found is None else found

    def device_of_thread(self, pid: str, tid: str) -> int | None:
        """The device whose kernels stand on a thread of a process of the host."""
        return self._kernels.device_of_thread(pid, tid)

    def is_host_thread(self, pid: str, tid: str) -> bool:
        """Whether a thread of a device's process is the host's: PyTorch puts Python frames on process 0."""
        return self._kernels.is_host_thread(pid, tid)

    def launches(self, pid: str) -> bool:
        """Whether calls of a runtime or driver stand on the process."""
        return self._kernels.launches(pid)

    def is_annotation(self, pid: str) -> bool:
        """Whether the process is one of the profiler's own marks."""
        return pid in MARKS

    def finish(self, recording: Recording) -> None:
        """Tells the clock, the host and the rank."""
        base, host = self._headers.get("baseTimeNanoseconds"), self._headers.get("host_name")
        known_base = base if isinstance(base, int) and abs(base) < 1 << 62 else 0
        is_absolute = known_base > 0 or (recording.first_ns or 0) > YEAR_2001_NS
        recording.clock = Clock(known_base if is_absolute else None, host if isinstance(host, str) else None)
        about = self._headers.get("distributedInfo")
        about = about if isinstance(about, dict) else {}
        recording.rank, recording.world_size = _small(about.get("rank")), _small(about.get("world_size"))
        recording.collectives = self._collectives.ends()
        stage_devices(recording, self._headers.get("deviceProperties"))


YEAR_2001_NS = 1_000_000_000 * 1_000_000_000
"""Times above it can only be counted from 1970."""


def _small(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < LARGEST_RANK else None


def _add_memory(
    rows: JsonRows, inside: JsonRows, time_ns: Ints, layout: CounterTracks, recording: Recording
) -> None:
    kind, _ = inside.scaled("Device Type", 0)
    number, _ = inside.scaled("Device Id", 0)
    pids = rows.spelled("pid").to_pylist()
    keys = list(zip(pids, kind.tolist(), number.tolist()))
    for series in _COUNTED:
        values, valid = inside.scaled(series, 0)
        lanes = {
            key: layout.counter_lane(key[0] or "", f"{_device_name(key[1], key[2])} memory", series)
            for key in set(keys)
        }
        lane = np.array([lanes[key] for key in keys], np.int32)
        recording.append_samples(lane[valid], time_ns[valid], values[valid])


def _device_name(kind: int, number: int) -> str:
    name = _DEVICE_TYPES.get(kind, f"device type {kind}")
    return name if number < 0 else f"{name} {number}"
