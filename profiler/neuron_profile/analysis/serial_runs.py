"""Collectives that follow one another with nothing computed meanwhile, and what they would leave to wait for.

Mended as DistributedDataParallel does it, small ones are joined into buckets and each begins when the
backward pass has made its input: what remains is what outlasts the backward pass, at least the last bucket.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neuron_profile.analysis.spans import Union, overlap_ns, union
from neuron_profile.analysis.time.logical_cores import physical_cores
from neuron_tools import hardware
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.hardware import Device
from neuron_tools.profile.reader import Profile
from neuron_tools.records.program import CollectiveKind
from neuron_tools.simulator.collectives import cost

KINDS = {
    "AllReduce": CollectiveKind.ALL_REDUCE,
    "AllGather": CollectiveKind.ALL_GATHER,
    "ReduceScatter": CollectiveKind.REDUCE_SCATTER,
    "AllToAll": CollectiveKind.ALL_TO_ALL,
    "Broadcast": CollectiveKind.BROADCAST,
}
BUCKET_BYTES = 25 << 20  # DistributedDataParallel's default
ISSUE_NS = 50_000  # longest time between two of a run that is taken for the host issuing the next
_ROWS = """
SELECT operation, coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line,
    coalesce(layer, '') AS layer, coalesce(replica_group, '') AS ranks, dtype,
    start_ts AS start_ns, end_ts AS end_ns,
    greatest(coalesce(input_size, 0), coalesce(output_size, 0)) AS byte_count
FROM CcOp WHERE group_name IS NOT NULL AND coalesce(process_idx, 0) = ? ORDER BY start_ts
"""


_COMPUTING = """
SELECT start_ts AS start_ns, end_ts AS end_ns FROM ActiveTime
WHERE coalesce(process_idx, 0) = ? AND engine IN ('tensor', 'vector', 'scalar', 'gpsimd') ORDER BY start_ts
"""
# The physical cores of a logical one write a part of each result.
_GRADIENTS = """
SELECT end_ts AS end_ns, CAST(sum(coalesce(hbm_write_bytes, 0)) AS BIGINT) AS byte_count,
    coalesce(layer, '') AS layer
FROM FrameworkInstruction WHERE coalesce(process_idx, 0) = ? AND is_backward
GROUP BY start_ts, end_ts, framework_name, coalesce(layer, ''), coalesce(pcore_idx, 0) // ?
ORDER BY end_ts
"""


@frozen
class Row:
    """One collective of one rank; times in ns."""

    operation: str
    file: str
    line: int
    layer: str
    ranks: str
    dtype: str
    start_ns: int
    end_ns: int
    byte_count: int

    @property
    def key(self) -> tuple[str, str, int, str, str]:
        """What the collectives of a run have in common."""
        return self.operation, self.file, self.line, self.ranks, self.dtype


@frozen
class SerialRun:
    """Collectives of one line and group, one after the other.

    Attributes:
        count: How many.
        byte_count: Bytes of all.
        exposed_ns: Time from the first's start to the last's end in which nothing was computed.
        early_ns: How long before its start the first of its inputs was made; 0 = that is not known.
        remaining_ns: What would still be waited for if each bucket began when its input was made.
    """

    file: str
    line: int
    layer: str
    operation: str
    count: int
    byte_count: int
    exposed_ns: int
    early_ns: int
    remaining_ns: int

    @property
    def gain_ns(self) -> int:
        """Time saved by buckets that begin early."""
        return max(0, self.exposed_ns - self.remaining_ns)


def serial_runs(profile: Profile, process: int) -> Iterator[SerialRun]:
    """The runs of one process."""
    device = _machine(profile)
    rows = [Row(**row) for row in profile.query(_ROWS, [process]).to_pylist()]
    busy = profile.query(_COMPUTING, [process])
    computing = union(*(busy[name].to_numpy().astype(np.int64) for name in ("start_ns", "end_ns")))
    gradients = _Gradients.of(profile, process)
    before_ns = 0
    for run in _runs(rows, computing):
        if run[0].operation in KINDS:
            yield _run(run, gradients.ready_ns(run, before_ns), computing, device)
        before_ns = run[-1].end_ns


@dataclass(frozen=True)
class _Gradients:
    """Operations of the backward pass, by their end; (operations,) each.

    Attributes:
        handed_over_ns: End of the last operation of the same module in a row: autograd hands a gradient over
            when all that the module's backward does is issued.
    """

    end_ns: Ints
    byte_count: Ints
    handed_over_ns: Ints

    @classmethod
    def of(cls, profile: Profile, process: int) -> _Gradients:
        rows = profile.query(_GRADIENTS, [process, physical_cores(profile)])
        end_ns, byte_count = (rows[name].to_numpy().astype(np.int64) for name in ("end_ns", "byte_count"))
        module = rows["layer"].combine_chunks().dictionary_encode().indices.to_numpy()
        last = np.flatnonzero(np.append(module[1:] != module[:-1], True)) if len(module) else module
        return cls(end_ns, byte_count, end_ns[last[np.searchsorted(last, np.arange(len(end_ns)))]])

    def ready_ns(self, run: list[Row], after_ns: int) -> list[int]:
        """When the inputs of a run were made, from its start: by the last operations that wrote as much.

        Those for which no operation is found were made when the run starts.

        Args:
            after_ns: The end of the run before.
        """
        start_ns = run[0].start_ns
        low, high = np.searchsorted(self.end_ns, [after_ns, start_ns], side="right")
        found: dict[int, list[int]] = {}
        for row in run:
            if row.byte_count not in found:
                count = sum(each.byte_count == row.byte_count for each in run)
                same = self.handed_over_ns[low:high][self.byte_count[low:high] == row.byte_count]
                found[row.byte_count] = same[-count:].tolist()
        return [min(0, (found[row.byte_count] or [start_ns]).pop(0) - start_ns) for row in run]


def _runs(rows: list[Row], computing: Union) -> Iterator[list[Row]]:
    run: list[Row] = []
    for row in rows:
        if run and not _continues(run[-1], row, computing):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _continues(one: Row, other: Row, computing: Union) -> bool:
    """Whether two collectives of one line follow one another, and less is computed between than they take."""
    lengths = one.end_ns - one.start_ns, other.end_ns - other.start_ns
    if one.key != other.key or other.start_ns - one.end_ns > max(*lengths, ISSUE_NS):
        return False
    return overlap_ns(_span(one.end_ns, other.start_ns), computing) <= min(lengths)


def _run(rows: list[Row], ready_ns: list[int], computing: Union, device: Device | None) -> SerialRun:
    first = rows[0]
    whole = _span(first.start_ns, rows[-1].end_ns)
    return SerialRun(
        first.file, first.line, first.layer, first.operation, len(rows), sum(row.byte_count for row in rows),
        rows[-1].end_ns - first.start_ns - overlap_ns(whole, computing), -min(ready_ns),
        _remaining_ns(rows, ready_ns, device),
    )  # fmt: skip


def _remaining_ns(rows: list[Row], ready_ns: list[int], device: Device | None) -> int:
    """How long after the run's start the last bucket ends, where each begins when its inputs are made."""
    free_ns = min(ready_ns)
    for bucket, made_ns in _buckets(rows, ready_ns):
        free_ns = max(free_ns, made_ns) + _bucket_ns(bucket, device)
    return max(0, free_ns)


def _buckets(rows: list[Row], ready_ns: list[int]) -> Iterator[tuple[list[Row], int]]:
    """Collectives joined in the order in which their inputs are made, and when the last of each bucket is."""
    order = sorted(range(len(rows)), key=lambda place: ready_ns[place])
    bucket: list[Row] = []
    for place in order:
        bucket.append(rows[place])
        if sum(each.byte_count for each in bucket) >= BUCKET_BYTES or place == order[-1]:
            yield bucket, ready_ns[place]
            bucket = []


def _bucket_ns(bucket: list[Row], device: Device | None) -> int:
    """What one collective of a bucket's bytes takes; never more than the single ones took."""
    first = bucket[0]
    moving = union(np.array([row.start_ns for row in bucket]), np.array([row.end_ns for row in bucket]))
    busy_ns = int((moving[1] - moving[0]).sum())
    if device is None:
        return busy_ns
    ranks = json.loads(first.ranks or "[]")
    byte_count = sum(row.byte_count for row in bucket)
    return min(busy_ns, round(cost(KINDS[first.operation], byte_count, ranks, device).duration_ns))


def _span(start_ns: int, end_ns: int) -> Union:
    return np.array([start_ns], np.int64), np.array([max(start_ns, end_ns)], np.int64)


def _machine(profile: Profile) -> Device | None:
    """The machine that was simulated; None where the profile does not say."""
    target = profile.metadata.get("target")
    try:
        return hardware.device(str(target), lnc=physical_cores(profile)) if target else None
    except hardware.UnknownTargetError:
        return None
