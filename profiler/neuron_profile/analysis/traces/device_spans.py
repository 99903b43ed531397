"""What ran on the devices of an imported trace: kernels and copies on their streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from itertools import pairwise

import numpy as np

from neuron_profile.analysis.remembered import remembered
from neuron_profile.analysis.traces.stored_spans import (
    NO_CORRELATION,
    SpanRows,
    SpanTable,
    distinct,
    load_tracks,
    read_spans,
)
from neuron_tools.arrays import Ints, Mask
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.store.catalog import text_literal

NOT_LAUNCHED = -1


class Kind(IntEnum):
    """What a span on a device does."""

    COMPUTE = 0
    COMMUNICATION = 1
    MEMORY = 2
    OTHER = 3  # waits for other streams or the host


# Spans that stand beside or around work: annotations, steps, modules of a compiler. XLA's profilers draw some
# on lines of their own, which repeat what the streams and "XLA Ops" show. torch.profiler puts frames of
# threads that it does not know into process 0, which is a device, too; CUPTI's ranges all last as long as
# the kernels together. Of our own exports, operations stand around instructions, and throttling beside them.
_NO_WORK = frozenset(
    {
        "framework_operations", "modules", "hlo_operations", "collective_core_instructions", "throttling",
        "gpu_user_annotation", "user_annotation", "Trace", "overhead", "python_function", "cpu_op",
        "cuda_runtime", "cuda_driver", "hip_runtime", "cpu_instant_event", "cuda_profiler_range",
    }
)  # fmt: skip
INSTRUCTION = "instructions"
"""Category of a NeuronCore's instructions in our own exports."""
_EXECUTION = "nc_exec_running"
_COLLECTIVES = (
    r"^(nccl|rccl|ccl|hccl|hcom_|oneccl|c10d::).*|^(all-reduce|all-gather|reduce-scatter|all-to-all|"
    r"collective-permute|collective-broadcast)|^(AllReduce|AllGather|ReduceScatter|AllToAll|SendRecv)|"
    # Kernels of engines and libraries that move data themselves: PyTorch's symmetric memory, vLLM's and
    # TensorRT-LLM's reductions, NVSHMEM, DeepEP, MSCCL++.
    r"(?i:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|cross_device_reduce|nvshmem|deep_ep::|mscclpp)"
)
_FUSED = "^triton_[a-z]+_fused_"
"""Kernels of PyTorch's Inductor, which compute and are named after all operations around them:
`triton_poi_fused_all_reduce_0` prepares what is then reduced."""
_NO_WORK_LINES = frozenset(
    {
        "Steps", "XLA Modules", "XLA TraceMe", "Framework Ops", "Framework Name Scope", "TensorFlow Ops",
        "TensorFlow Name Scope", "Source", "Source code", "Launch Stats",
    }
)  # fmt: skip


def _sql_list(texts: frozenset[str]) -> str:
    return f"({', '.join(text_literal(text) for text in sorted(texts))})"


KIND = f"""
CASE
    WHEN category IN ('communication', 'collectives')
        OR (regexp_matches(name, '{_COLLECTIVES}') AND NOT regexp_matches(name, '{_FUSED}'))
        THEN {int(Kind.COMMUNICATION)}
    WHEN category IN ('gpu_memcpy', 'gpu_memset', 'Memcpy', 'Memset', 'dma_transfers')
        OR regexp_matches(name, '^(Memcpy|Memset|dma|dmem_buf_copy)') THEN {int(Kind.MEMORY)}
    WHEN category IN ('cuda_sync', 'sync') OR name LIKE '%Sync%' THEN {int(Kind.OTHER)}
    ELSE {int(Kind.COMPUTE)}
END
"""
DEVICE_SPANS = f"""
device AS (
    SELECT span.id, span.process_idx AS process, span.track_idx AS track, span.start_ts, span.end_ts,
        span.name, coalesce(span.category, '') AS category, span.correlation_id, span.arguments_json,
        track.device_idx
    FROM TraceSpan span JOIN TraceTrack track
        ON track.track_idx = span.track_idx AND track.process_idx = span.process_idx
    WHERE track.device_idx IS NOT NULL AND coalesce(span.category, '') NOT IN {_sql_list(_NO_WORK)}
        AND track.name NOT IN {_sql_list(_NO_WORK_LINES)}
), kinds AS (
    SELECT name, category, {KIND} AS kind FROM (SELECT DISTINCT name, category FROM device)
)
"""
_KINDS = f"""
SELECT {KIND} AS kind FROM (SELECT unnest($names) AS name, unnest($categories) AS category)
"""


@dataclass(frozen=True)
class DeviceSpans:
    """Spans by process, stream and start.

    Attributes:
        process, track: (spans,) int64: whose, and TraceTrack.track_idx of its stream.
        device: (spans,) int64, number of the device in its process.
        start_ns, end_ns: (spans,) int64.
        kind: (spans,) int64, a `Kind`.
        name: (spans,) int64, places in `names`.
        correlation: (spans,) int64, what a span shares with its host call; `NO_CORRELATION` = none.
        call_start_ns, call_end_ns: (spans,) int64, the first host call that launched it; `NOT_LAUNCHED` =
            not known.
        names: Distinct names.
    """

    process: Ints
    track: Ints
    device: Ints
    start_ns: Ints
    end_ns: Ints
    kind: Ints
    name: Ints
    correlation: Ints
    call_start_ns: Ints
    call_end_ns: Ints
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def is_launched(self) -> Mask:
        """(spans,) whether the host call that launched it is known."""
        known: Mask = self.call_start_ns != NOT_LAUNCHED
        return known

    def chosen(self, which: Mask | Ints | slice) -> DeviceSpans:
        """Some of the spans, by mask, by place, or as a slice, which copies nothing."""
        if isinstance(which, np.ndarray) and which.dtype == bool and which.all():
            return self
        columns = {column.name: getattr(self, column.name)[which] for column in fields(self)[:-1]}
        return replace(self, **columns)

    def streams(self) -> Iterator[DeviceSpans]:
        """The spans of each stream."""
        changed = (self.process[1:] != self.process[:-1]) | (self.track[1:] != self.track[:-1])
        edges = [0, *(np.flatnonzero(changed) + 1).tolist(), len(self)] if len(self) else []
        for begin, end in pairwise(edges):
            yield self.chosen(slice(begin, end))


@remembered
def load_device_spans(profile: Profile) -> DeviceSpans:
    """The device spans of a profile; none where it was not imported from a trace. O(spans * log(spans)).

    Raises:
        DamagedProfileError: A part of the profile cannot be read.
    """
    tracks = load_tracks(profile)
    is_host, draws_work = tracks.is_host, ~np.array([name in _NO_WORK_LINES for name in tracks.names], bool)

    def keep(rows: SpanRows) -> Mask:
        calls = is_host[rows.place] & (rows.correlation != NO_CORRELATION)
        kept: Mask = calls | (~is_host & draws_work)[rows.place]
        return kept

    table = read_spans(profile, keep)
    of_host = is_host[table.rows.place]
    device = _without_executions(table.chosen(~of_host & ~table.has_category(_NO_WORK)))
    device = device.chosen(np.lexsort((device.rows.start_ns, device.rows.place)))
    return _device_spans(device, _kinds(profile, device), _first_calls(table.chosen(of_host), device))


def _without_executions(table: SpanTable) -> SpanTable:
    """The spans without the executions of NeuronCores that have instructions, which say it in more detail."""
    device = table.tracks.process[table.rows.place] << 32 | table.tracks.device[table.rows.place]
    detailed = np.isin(device, device[table.has_category(frozenset({INSTRUCTION}))])
    is_execution = np.array([name == _EXECUTION for name in table.names], bool)[table.rows.name]
    return table.chosen(~(detailed & is_execution))


def _device_spans(table: SpanTable, kinds: Ints, calls: tuple[Ints, Ints]) -> DeviceSpans:
    rows, tracks = table.rows, table.tracks
    return DeviceSpans(
        tracks.process[rows.place], tracks.number[rows.place], tracks.device[rows.place], rows.start_ns,
        rows.end_ns, kinds, rows.name, rows.correlation, *calls, table.names,
    )  # fmt: skip


def _kinds(profile: Profile, table: SpanTable) -> Ints:
    """(spans,) the `Kind` of each, told once for each name and category."""
    if not len(table.rows):
        return np.zeros(0, np.int64)
    several = len(table.categories)
    pairs, places = distinct(table.rows.name * several + table.rows.category)
    texts = {
        "names": [table.names[pair // several] for pair in pairs.tolist()],
        "categories": [table.categories[pair % several] for pair in pairs.tolist()],
    }
    kinds: Ints = profile.query(_KINDS, texts)["kind"].to_numpy().astype(np.int64)[places]
    return kinds


def _first_calls(host: SpanTable, device: SpanTable) -> tuple[Ints, Ints]:
    """Start and end of the first host call of each device span's process and correlation."""
    found = np.full((2, len(device.rows)), NOT_LAUNCHED, np.int64)
    process_of, device_process = (each.tracks.process[each.rows.place] for each in (host, device))
    for process in distinct(device_process)[0].tolist():
        mine = np.flatnonzero(device_process == process)
        calls = host.rows.chosen(process_of == process)
        if not len(calls):
            continue
        calls = calls.chosen(np.lexsort((calls.start_ns, calls.correlation)))
        wanted = device.rows.correlation[mine]
        place = np.minimum(np.searchsorted(calls.correlation, wanted), len(calls) - 1)
        is_known = calls.correlation[place] == wanted
        found[:, mine[is_known]] = calls.start_ns[place[is_known]], calls.end_ns[place[is_known]]
    return found[0], found[1]


def stream_names(profile: Profile) -> dict[tuple[int, int], str]:
    """Name of each track by process and number, behind the device it belongs to."""
    rows = profile.query(
        "SELECT track.process_idx AS process, track.track_idx AS number, track.name, parent.name AS device "
        "FROM TraceTrack track LEFT JOIN TraceTrack parent ON parent.process_idx = track.process_idx "
        "AND parent.track_idx = track.parent_track_idx"
    ).to_pylist()
    return {
        (row["process"], row["number"]): " / ".join(filter(None, (row["device"], row["name"])))
        for row in rows
    }
