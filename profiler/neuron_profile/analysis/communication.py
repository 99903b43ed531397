"""Collectives: how much they move, how fast, how long ranks wait in them, what computing hides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuron_tools.profile.reader import Profile

Ints = npt.NDArray[np.int64]

_KINDS = """
SELECT operation, coalesce(algorithm, '') AS algorithm, coalesce(input_size, 0) AS input_bytes,
    coalesce(output_size, 0) AS output_bytes, count(*) AS calls,
    CAST(sum(duration_ns) AS BIGINT) AS duration_ns,
    min(duration_ns) AS shortest_ns, coalesce(avg(algorithm_bandwidth), 0) AS algorithm_bandwidth,
    coalesce(avg(bus_bandwidth), 0) AS bus_bandwidth,
    CAST(sum(greatest(0, coalesce(cc_trigger_start_delay, 0))) AS BIGINT) AS wait_ns
FROM CcOp GROUP BY ALL ORDER BY duration_ns DESC, operation, algorithm, input_bytes
"""
_PROCESSES = "SELECT DISTINCT coalesce(process_idx, 0) AS process FROM CcOp ORDER BY process"
_COLLECTIVES = """
SELECT start_ts AS start_ns, end_ts AS end_ns FROM CcOp WHERE coalesce(process_idx, 0) = ? ORDER BY start_ts
"""
_COMPUTING = """
SELECT start_ts AS start_ns, end_ts AS end_ns FROM ActiveTime
WHERE coalesce(process_idx, 0) = ? AND engine IN ('tensor', 'vector', 'scalar', 'gpsimd') ORDER BY start_ts
"""


@dataclass(frozen=True, slots=True)
class CollectiveKind:
    """All calls of one operation with one algorithm and size.

    Attributes:
        input_bytes, output_bytes: Of one rank, in one call.
        duration_ns: Sum over the calls and ranks.
        shortest_ns: The quickest call: one that waited for nobody.
        algorithm_bandwidth, bus_bandwidth: Bytes per second, mean of the calls.
        wait_ns: From the trigger to the start: waiting for the last rank, or for the stream.
    """

    operation: str
    algorithm: str
    input_bytes: int
    output_bytes: int
    calls: int
    duration_ns: int
    shortest_ns: int
    algorithm_bandwidth: float
    bus_bandwidth: float
    wait_ns: int


@dataclass(frozen=True, slots=True)
class Communication:
    """The collectives of a profile.

    Attributes:
        busy_ns: Time in which a collective moved, by process and summed up.
        hidden_ns: The part of it in which an engine computed.
    """

    kinds: tuple[CollectiveKind, ...]
    busy_ns: int
    hidden_ns: int

    @property
    def exposed_ns(self) -> int:
        """Time in which nothing but a collective went on."""
        return self.busy_ns - self.hidden_ns


def measure_communication(profile: Profile) -> Communication:
    """Collectives by kind and size, and what of them overlaps with computing."""
    kinds = tuple(CollectiveKind(**row) for row in profile.query(_KINDS).to_pylist())
    busy = hidden = 0
    for row in profile.query(_PROCESSES).to_pylist():
        collectives = _union(profile, _COLLECTIVES, row["process"])
        computing = _union(profile, _COMPUTING, row["process"])
        busy += int((collectives[1] - collectives[0]).sum())
        hidden += overlap_ns(collectives, computing)
    return Communication(kinds, busy, hidden)


def _union(profile: Profile, query: str, process: int) -> tuple[Ints, Ints]:
    """Spans joined where they overlap: starts and ends."""
    rows = profile.query(query, [process])
    starts = rows["start_ns"].to_numpy().astype(np.int64)
    ends = rows["end_ns"].to_numpy().astype(np.int64)
    if not len(starts):
        return starts, ends
    reached = np.maximum.accumulate(ends)
    first = np.concatenate([[True], starts[1:] > reached[:-1]])
    last = np.concatenate([np.flatnonzero(first)[1:] - 1, [len(starts) - 1]])
    return starts[first], reached[last]


def overlap_ns(one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> int:
    """Length of the common part of two unions of spans."""
    return _covered_before(other, one[1]) - _covered_before(other, one[0]) if len(other[0]) else 0


def _covered_before(spans: tuple[Ints, Ints], times: Ints) -> int:
    """Sum over `times` of the length of the spans before each."""
    starts, ends = spans
    until = np.concatenate([[0], np.cumsum(ends - starts)])
    index = np.searchsorted(starts, times, side="right")
    inside = np.where(
        index > 0, np.minimum(times, ends[np.maximum(index - 1, 0)]) - starts[np.maximum(index - 1, 0)], 0
    )
    return int((until[np.maximum(index - 1, 0)] * (index > 0) + inside).sum())
