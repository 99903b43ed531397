"""Bytes that crossed between host and device, and the most device memory that tensors held."""

from __future__ import annotations

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

TO_DEVICE_EVENT, TO_HOST_EVENT = "dmem_buf_copyin", "dmem_buf_copyout"

_COPIES = """
SELECT name, count(*) AS copies,
    coalesce(sum(TRY_CAST(json_extract_string(extra_attributes_json, '$.bytes') AS BIGINT)), 0) AS bytes
FROM SystemProfileEvents WHERE name IN (?, ?) GROUP BY name
"""
_PEAKS = """
SELECT device_idx, max(total_bytes) AS peak_bytes, arg_max(timestamp, total_bytes) AS time_ns
FROM SystemProfileHbmUsage GROUP BY device_idx ORDER BY device_idx
"""


@frozen
class HostTransfers:
    """Copies between host and device."""

    to_device_bytes: int
    to_device_count: int
    to_host_bytes: int
    to_host_count: int


@frozen
class MemoryPeak:
    """The most bytes that tensors held at once on one NeuronCore, and when."""

    device_idx: int
    peak_bytes: int
    time_ns: int


def measure_host_transfers(profile: Profile) -> HostTransfers:
    """Sum up the copies between host and device."""
    events = (TO_DEVICE_EVENT, TO_HOST_EVENT)
    rows = profile.query(_COPIES, events).to_pylist()
    found = {row["name"]: (int(row["bytes"]), int(row["copies"])) for row in rows}
    to_device, to_host = (found.get(event, (0, 0)) for event in events)
    return HostTransfers(*to_device, *to_host)


def find_memory_peaks(profile: Profile) -> tuple[MemoryPeak, ...]:
    """The peak of each NeuronCore that held anything, in order."""
    peaks = (MemoryPeak(**row) for row in profile.query(_PEAKS).to_pylist())
    return tuple(peak for peak in peaks if peak.peak_bytes)
