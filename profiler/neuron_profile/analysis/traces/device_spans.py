"""What ran on the devices of an imported trace: kernels and copies on their streams."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_profile.analysis.remembered import remembered
from neuron_tools.profile.reader import Profile

Ints = npt.NDArray[np.int64]
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
# the kernels together.
_NO_WORK = (
    "('gpu_user_annotation', 'user_annotation', 'Trace', 'overhead', 'python_function', 'cpu_op', "
    "'cuda_runtime', 'cuda_driver', 'hip_runtime', 'cpu_instant_event', 'cuda_profiler_range')"
)
_COLLECTIVES = (
    r"^(nccl|rccl|ccl|hccl|oneccl|c10d::).*|^(all-reduce|all-gather|reduce-scatter|all-to-all|"
    r"collective-permute|collective-broadcast)|^(AllReduce|AllGather|ReduceScatter|AllToAll|SendRecv)"
)
_NO_WORK_LINES = (
    "('Steps', 'XLA Modules', 'XLA TraceMe', 'Framework Ops', 'Framework Name Scope', 'TensorFlow Ops', "
    "'TensorFlow Name Scope', 'Source', 'Source code', 'Launch Stats')"
)
KIND = f"""
CASE
    WHEN regexp_matches(name, '{_COLLECTIVES}') THEN {int(Kind.COMMUNICATION)}
    WHEN category IN ('gpu_memcpy', 'gpu_memset', 'Memcpy', 'Memset')
        OR regexp_matches(name, '^(Memcpy|Memset|dma)') THEN {int(Kind.MEMORY)}
    WHEN category = 'cuda_sync' OR name LIKE '%Sync%' THEN {int(Kind.OTHER)}
    ELSE {int(Kind.COMPUTE)}
END
"""
DEVICE_SPANS = f"""
device AS (
    SELECT span.id, span.process_idx AS process, span.track_idx AS track, span.start_ts, span.end_ts,
        span.name, coalesce(span.category, '') AS category, span.correlation_id, track.device_idx
    FROM TraceSpan span JOIN TraceTrack track
        ON track.track_idx = span.track_idx AND track.process_idx = span.process_idx
    WHERE track.device_idx IS NOT NULL AND coalesce(span.category, '') NOT IN {_NO_WORK}
        AND track.name NOT IN {_NO_WORK_LINES}
), kinds AS (
    SELECT name, category, {KIND} AS kind FROM (SELECT DISTINCT name, category FROM device)
)
"""
_SPANS = f"""
WITH {DEVICE_SPANS}
SELECT process, track, device_idx, start_ts, end_ts, kind FROM device JOIN kinds USING (name, category)
ORDER BY process, track, start_ts
"""
_LAUNCHED = f"""
WITH {DEVICE_SPANS}, launches AS (
    SELECT span.process_idx AS process, span.correlation_id, min(span.start_ts) AS launch_ts
    FROM TraceSpan span JOIN TraceTrack track
        ON track.track_idx = span.track_idx AND track.process_idx = span.process_idx
    WHERE track.device_idx IS NULL AND span.correlation_id IS NOT NULL GROUP BY ALL
)
SELECT device.process, track, device_idx, start_ts, end_ts, kind,
    coalesce(launch_ts, {NOT_LAUNCHED}) AS launch_ts
FROM device JOIN kinds USING (name, category)
LEFT JOIN launches ON launches.process = device.process AND launches.correlation_id = device.correlation_id
ORDER BY device.process, track, start_ts
"""


@dataclass(frozen=True)
class DeviceSpans:
    """Spans by process, stream and start.

    Attributes:
        process, track: (spans,) int64: whose, and TraceTrack.track_idx of its stream.
        device: (spans,) int64, number of the device in its process.
        start_ns, end_ns: (spans,) int64.
        kind: (spans,) int64, a `Kind`.
        launch_ns: (spans,) int64, start of the host call that launched it, `NOT_LAUNCHED` = not known;
            None where it was not asked for.
    """

    process: Ints
    track: Ints
    device: Ints
    start_ns: Ints
    end_ns: Ints
    kind: Ints
    launch_ns: Ints | None = None

    def __len__(self) -> int:
        return len(self.start_ns)

    def chosen(self, mask: npt.NDArray[np.bool_]) -> DeviceSpans:
        """Some of the spans."""
        if mask.all():
            return self
        launch_ns = None if self.launch_ns is None else self.launch_ns[mask]
        return DeviceSpans(
            self.process[mask], self.track[mask], self.device[mask], self.start_ns[mask], self.end_ns[mask],
            self.kind[mask], launch_ns,
        )  # fmt: skip


def load_device_spans(profile: Profile, *, launches: bool = False) -> DeviceSpans:
    """The device spans of a profile; none where it was not imported from a trace.

    Args:
        launches: Tell when each was launched, too.
    """
    return _with_launches(profile) if launches else _without_launches(profile)


@remembered
def _with_launches(profile: Profile) -> DeviceSpans:
    rows = profile.query(_LAUNCHED)
    return _device_spans(rows, _ints(rows, "launch_ts"))


@remembered
def _without_launches(profile: Profile) -> DeviceSpans:
    return _device_spans(profile.query(_SPANS), None)


def _device_spans(rows: pa.Table, launch_ns: Ints | None) -> DeviceSpans:
    return DeviceSpans(
        _ints(rows, "process"), _ints(rows, "track"), _ints(rows, "device_idx"), _ints(rows, "start_ts"),
        _ints(rows, "end_ts"), _ints(rows, "kind"), launch_ns,
    )  # fmt: skip


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


def _ints(rows: pa.Table, name: str) -> Ints:
    values: Ints = rows[name].to_numpy().astype(np.int64, copy=False)
    return values
