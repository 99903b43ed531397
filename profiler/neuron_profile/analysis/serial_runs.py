"""Collectives that follow one another with nothing computed meanwhile, and what one of them would cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neuron_profile.analysis.spans import Union, overlap_ns, union
from neuron_tools import hardware
from neuron_tools.hardware import Device
from neuron_tools.profile.reader import Profile
from neuron_tools.simulator.collectives import cost
from neuron_tools.simulator.program import CollectiveKind

KINDS = {
    "AllReduce": CollectiveKind.ALL_REDUCE,
    "AllGather": CollectiveKind.ALL_GATHER,
    "ReduceScatter": CollectiveKind.REDUCE_SCATTER,
    "AllToAll": CollectiveKind.ALL_TO_ALL,
    "Broadcast": CollectiveKind.BROADCAST,
}
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class SerialRun:
    """Collectives of one line and group, one after the other.

    Attributes:
        count: How many.
        byte_count: Bytes of all.
        exposed_ns: Time from the first's start to the last's end in which nothing was computed.
        joined_ns: What one collective of all their bytes takes by the link model.
        computed_ns: Time that was computed since the run before: what it could hide behind.
    """

    file: str
    line: int
    layer: str
    operation: str
    count: int
    byte_count: int
    exposed_ns: int
    joined_ns: int
    computed_ns: int

    @property
    def gain_ns(self) -> int:
        """Time saved by issuing one joined collective that computing hides as far as there is some."""
        return max(0, self.exposed_ns - max(0, self.joined_ns - self.computed_ns))


def serial_runs(profile: Profile, process: int) -> Iterator[SerialRun]:
    """The runs of one process."""
    device = _machine(profile)
    rows = [Row(**row) for row in profile.query(_ROWS, [process]).to_pylist()]
    busy = profile.query(_COMPUTING, [process])
    computing = union(*(busy[name].to_numpy().astype(np.int64) for name in ("start_ns", "end_ns")))
    before_ns = 0
    for run in _runs(rows, computing):
        if run[0].operation in KINDS:
            yield _run(run, before_ns, computing, device)
        before_ns = run[-1].end_ns


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
    """Whether less is computed between two collectives of one line than they take themselves."""
    if one.key != other.key:
        return False
    computed_ns = overlap_ns(_span(one.end_ns, other.start_ns), computing)
    return computed_ns <= min(one.end_ns - one.start_ns, other.end_ns - other.start_ns)


def _run(rows: list[Row], before_ns: int, computing: Union, device: Device | None) -> SerialRun:
    first = rows[0]
    moving = union(np.array([row.start_ns for row in rows]), np.array([row.end_ns for row in rows]))
    whole = _span(first.start_ns, rows[-1].end_ns)
    exposed_ns = rows[-1].end_ns - first.start_ns - overlap_ns(whole, computing)
    total = sum(row.byte_count for row in rows)
    busy_ns = int((moving[1] - moving[0]).sum())
    return SerialRun(
        first.file, first.line, first.layer, first.operation, len(rows), total, exposed_ns,
        _joined_ns(first, total, busy_ns, device), overlap_ns(_span(before_ns, first.start_ns), computing),
    )  # fmt: skip


def _joined_ns(first: Row, byte_count: int, busy_ns: int, device: Device | None) -> int:
    """What one collective of so many bytes takes; never more than the single ones took."""
    if device is None:
        return busy_ns
    ranks = json.loads(first.ranks or "[]")
    return min(busy_ns, round(cost(KINDS[first.operation], byte_count, ranks, device).duration_ns))


def _span(start_ns: int, end_ns: int) -> Union:
    return np.array([start_ns], np.int64), np.array([max(start_ns, end_ns)], np.int64)


def _machine(profile: Profile) -> Device | None:
    """The machine that was simulated; None where the profile does not say."""
    target = profile.metadata.get("target")
    try:
        return hardware.device(str(target), lnc=1) if target else None
    except hardware.UnknownTargetError:
        return None
