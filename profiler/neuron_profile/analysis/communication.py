"""Collectives: how much they move, how fast, how long ranks wait in them, what computing hides."""

from __future__ import annotations

from neuron_profile.analysis.spans import length_ns, overlap_ns, process_union
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_KINDS = """
SELECT operation, coalesce(algorithm, '') AS algorithm, coalesce(input_size, 0) AS input_bytes,
    coalesce(output_size, 0) AS output_bytes, count(*) AS calls,
    CAST(sum(duration_ns) AS BIGINT) AS duration_ns,
    min(duration_ns) AS shortest_ns, coalesce(avg(algorithm_bandwidth), 0) AS algorithm_bandwidth,
    coalesce(avg(bus_bandwidth), 0) AS bus_bandwidth,
    CAST(sum(greatest(0, coalesce(cc_trigger_start_delay, 0))) AS BIGINT) AS wait_ns
FROM CcOp GROUP BY ALL ORDER BY duration_ns DESC, operation, algorithm, input_bytes
"""
_PROCESSES = """
SELECT process, process IN (SELECT coalesce(process_idx, 0) FROM Instruction) AS computed
FROM (SELECT DISTINCT coalesce(process_idx, 0) AS process FROM CcOp) ORDER BY process
"""
_COLLECTIVES = """
SELECT start_ts AS start_ns, end_ts AS end_ns FROM CcOp WHERE coalesce(process_idx, 0) = ? ORDER BY start_ts
"""
_COMPUTING = """
SELECT start_ts AS start_ns, end_ts AS end_ns FROM ActiveTime
WHERE coalesce(process_idx, 0) = ? AND engine IN ('tensor', 'vector', 'scalar', 'gpsimd') ORDER BY start_ts
"""


@frozen
class CollectiveKind:
    """All calls of one operation with one algorithm and size.

    Attributes:
        input_bytes, output_bytes: Of one rank, in one call; these and what follows None where not known.
        duration_ns: Sum over the calls and ranks.
        shortest_ns: The quickest call: one that waited for nobody.
        algorithm_bandwidth, bus_bandwidth: Bytes per second, mean of the calls.
        wait_ns: From the trigger to the start: waiting for the last rank, or for the stream.
    """

    operation: str
    algorithm: str
    input_bytes: int | None
    output_bytes: int | None
    calls: int
    duration_ns: int
    shortest_ns: int
    algorithm_bandwidth: float | None
    bus_bandwidth: float | None
    wait_ns: int | None


@frozen
class Communication:
    """The collectives of a profile.

    Attributes:
        busy_ns: Time in which a collective moved, by process and summed up; of a job of which only some
        ranks ran,
            theirs: what the others computed is not known.
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
    rows = profile.query(_PROCESSES).to_pylist()
    computed = [row for row in rows if row["computed"]]
    for row in computed or rows:
        collectives = process_union(profile, _COLLECTIVES, row["process"])
        computing = process_union(profile, _COMPUTING, row["process"])
        busy += length_ns(collectives)
        hidden += overlap_ns(collectives, computing)
    return Communication(kinds, busy, hidden)
