"""What ran on the devices of an imported trace, how busy they were, and what the trace does not tell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.traces.breakdown import DeviceTime, Kernel, break_down
from neuron_profile.analysis.traces.device_spans import INSTRUCTION, DeviceSpans, Kind, load_device_spans
from neuron_profile.analysis.traces.idle import StreamTime, find_stream_times
from neuron_profile.analysis.traces.stored_spans import distinct
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_NAMES = """
SELECT process_idx AS process, device_idx AS device, name, memory_bytes FROM Device
"""
_LABELS = """
SELECT DISTINCT ON (process_idx, device_idx) process_idx AS process, device_idx AS device, name
FROM TraceTrack WHERE device_idx IS NOT NULL AND parent_track_idx IS NULL
ORDER BY process_idx, device_idx, track_idx
"""
_DETAILED = f"""
SELECT DISTINCT span.process_idx AS process, track.device_idx AS device
FROM TraceSpan span JOIN TraceTrack track
    ON track.track_idx = span.track_idx AND track.process_idx = span.process_idx
WHERE span.category = '{INSTRUCTION}' AND track.device_idx IS NOT NULL
"""
_RANKS = "SELECT process_idx AS process, rank FROM ProcessInfo"
_HOST = """
SELECT count(*) AS spans, count(DISTINCT (track.process_idx, track.track_idx)) AS threads,
    coalesce(max(end_ts) - min(start_ts), 0) AS window_ns,
    count(*) FILTER (category = 'cpu_op') AS operators,
    count(*) FILTER (category = 'python_function') AS functions
FROM TraceSpan span JOIN TraceTrack track
    ON track.track_idx = span.track_idx AND track.process_idx = span.process_idx
WHERE track.device_idx IS NULL AND track.kind != 'annotation'
"""
# Shapes are recorded with all operators or none.
_SHAPED = """
SELECT count(*) AS shaped FROM (
    SELECT arguments_json FROM TraceSpan WHERE category = 'cpu_op' LIMIT 10000
) WHERE contains(arguments_json, '"Input Dims"')
"""
_LONGEST = """
SELECT span.name, count(*) AS calls, CAST(sum(end_ts - start_ts) AS BIGINT) AS total_ns
FROM TraceSpan span JOIN TraceTrack track
    ON track.track_idx = span.track_idx AND track.process_idx = span.process_idx
WHERE track.device_idx IS NULL AND track.kind != 'annotation'
GROUP BY span.name ORDER BY total_ns DESC, span.name LIMIT 1
"""
_COUNTERS = """
SELECT track.name, track.unit, value AS highest, timestamp AS highest_ts
FROM TraceCounter sample JOIN TraceTrack track
    ON track.track_idx = sample.track_idx AND track.process_idx = sample.process_idx
WHERE value > 0
QUALIFY row_number() OVER (
    PARTITION BY track.process_idx, track.track_idx ORDER BY value DESC, timestamp
) = 1
ORDER BY highest DESC, track.name
"""
_MEMORY = "SELECT count(*) AS samples FROM TraceTrack WHERE kind = 'counter' AND name ILIKE '%allocated%'"
_TORCH = "torch.profiler"


@frozen
class DeviceUse:
    """One device of one process.

    Attributes:
        name: Its model, or the label that the trace gives it.
        is_named: Whether the trace tells the model.
        rank: Rank of the process; None where it has none.
        memory_bytes: Size of its memory; None where the trace does not tell.
        time: What it did from its first to its last span.
        computes: What `kernels` counts, in one word.
    """

    process: int
    device: int
    name: str
    is_named: bool
    rank: int | None
    memory_bytes: int | None
    streams: int
    kernels: int
    copies: int
    collectives: int
    time: DeviceTime
    computes: str = "kernel"


@frozen
class HostCalls:
    """Spans of one name on the host, and their time together with what they called."""

    name: str
    calls: int
    total_ns: int


@frozen
class TraceHost:
    """The host's part: spans, threads, from the first to the last, and what took longest in sum."""

    spans: int
    threads: int
    operators: int
    window_ns: int
    longest: HostCalls | None = None


@frozen
class CounterPeak:
    """A counter's highest value, and when it had it first."""

    name: str
    unit: str
    highest: float
    highest_ns: int


@frozen
class Lack:
    """Something that was not recorded, and how to record it."""

    what: str
    remedy: str


@frozen
class TraceOverview:
    """An imported trace at a glance.

    Attributes:
        formats: What its files were.
        streams: Streams with the reasons why they were idle.
        kernels: By falling time.
        counters: By falling peak; only of a trace without devices in which nothing lasts.
        lacks: What was not recorded.
    """

    formats: tuple[str, ...]
    devices: tuple[DeviceUse, ...]
    host: TraceHost
    streams: tuple[StreamTime, ...]
    kernels: tuple[Kernel, ...]
    lacks: tuple[Lack, ...]
    counters: tuple[CounterPeak, ...] = ()

    @property
    def window_ns(self) -> int:
        """Sum of the devices' times from the first to the last span."""
        return sum(device.time.window_ns for device in self.devices)

    @property
    def idle_ns(self) -> int:
        """Sum of the devices' idle times."""
        return sum(device.time.idle_ns for device in self.devices)

    @property
    def busy_share(self) -> float:
        """Part of the devices' time in which they were busy; 0 without devices."""
        return 1 - self.idle_ns / self.window_ns if self.window_ns else 0.0


def look_at_trace(profile: Profile) -> TraceOverview | None:
    """The trace at a glance; None for a profile that holds nothing of another tool's trace."""
    held = profile.tables()
    if not held.get("TraceSpan"):
        return _counters_alone(profile) if held.get("TraceCounter") else None
    whole = break_down(profile)
    formats = tuple(str(name) for name in profile.metadata.get("formats", ()))
    host, longest = profile.query(_HOST).to_pylist()[0], _longest(profile)
    devices = _devices(profile, whole.devices)
    lasts = bool(devices or (longest and longest.total_ns))
    return TraceOverview(
        formats,
        devices,
        TraceHost(host["spans"], host["threads"], host["operators"], host["window_ns"], longest),
        find_stream_times(profile),
        whole.kernels,
        tuple(_lacks(profile, formats, devices, host)) if lasts else (),
        () if lasts else _peaks(profile),
    )


def _counters_alone(profile: Profile) -> TraceOverview:
    formats = tuple(str(name) for name in profile.metadata.get("formats", ()))
    return TraceOverview(formats, (), TraceHost(0, 0, 0, 0), (), (), (), _peaks(profile))


def _peaks(profile: Profile) -> tuple[CounterPeak, ...]:
    return tuple(
        CounterPeak(row["name"], row["unit"] or "", row["highest"], row["highest_ts"])
        for row in profile.query(_COUNTERS).to_pylist()
    )


def _longest(profile: Profile) -> HostCalls | None:
    rows = profile.query(_LONGEST).to_pylist()
    return HostCalls(rows[0]["name"] or "", rows[0]["calls"], rows[0]["total_ns"]) if rows else None


def _devices(profile: Profile, times: tuple[DeviceTime, ...]) -> tuple[DeviceUse, ...]:
    time_of = {(time.process, time.device_idx): time for time in times}
    named = {(row["process"], row["device"]): row for row in profile.query(_NAMES).to_pylist()}
    labels = {(row["process"], row["device"]): row["name"] for row in profile.query(_LABELS).to_pylist()}
    ranks = {row["process"]: row["rank"] for row in profile.query(_RANKS).to_pylist()}
    detailed = {(row["process"], row["device"]) for row in profile.query(_DETAILED).to_pylist()}
    found = []
    for key, streams, kinds in _works(load_device_spans(profile)):
        about = named.get(key, {})
        label = about.get("name") or labels.get(key) or f"device {key[1]}"
        found.append(
            DeviceUse(
                *key, label, bool(about.get("name")), ranks.get(key[0]), about.get("memory_bytes"), streams,
                kinds[Kind.COMPUTE], kinds[Kind.MEMORY], kinds[Kind.COMMUNICATION], time_of[key],
                "instruction" if key in detailed else "kernel",
            )
        )  # fmt: skip
    return tuple(found)


def _works(spans: DeviceSpans) -> Iterator[tuple[tuple[int, int], int, list[int]]]:
    """Process and number of each device that did something, its streams, and its spans by `Kind`."""
    spans = spans.chosen(spans.kind != int(Kind.OTHER))
    keys, place = distinct(spans.process << 32 | spans.device)
    for key, number in sorted((key, number) for number, key in enumerate(keys.tolist())):
        mine = spans.chosen(place == number)
        kinds = np.bincount(mine.kind, minlength=len(Kind))
        yield (key >> 32, key & 0xFFFFFFFF), len(distinct(mine.track)[0]), kinds.tolist()


def _lacks(
    profile: Profile, formats: tuple[str, ...], devices: tuple[DeviceUse, ...], host: dict[str, int]
) -> list[Lack]:
    """What torch.profiler could have recorded and did not; of other tools only what is missing altogether."""
    if _TORCH not in formats:
        return [] if devices else [Lack("work on a device", "profile a program that uses one")]
    found = []
    if not devices:
        found.append(Lack("kernels", "pass activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"))
    elif not any(device.is_named for device in devices):
        found.append(Lack("device names", "keep the header deviceProperties when you filter the trace"))
    if not host["operators"]:
        found.append(Lack("operators", "add ProfilerActivity.CPU to activities"))
    elif not profile.query(_SHAPED).to_pylist()[0]["shaped"]:
        found.append(Lack("shapes of operators", "pass record_shapes=True"))
    if not host["functions"]:
        found.append(Lack("source lines and modules", "pass with_stack=True"))
    if not profile.query(_MEMORY).to_pylist()[0]["samples"]:
        found.append(Lack("memory", "pass profile_memory=True"))
    return found
