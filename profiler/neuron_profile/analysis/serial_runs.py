"""Collectives that follow one another with nothing computed meanwhile, and what one of them would cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from neuron_profile.analysis.communication import computing_spans, overlap_ns
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
    coalesce(layer, '') AS layer, group_name, replica_group, dtype, start_ts AS start_ns, end_ts AS end_ns,
    greatest(coalesce(input_size, 0), coalesce(output_size, 0)) AS byte_count
FROM CcOp WHERE group_name IS NOT NULL AND coalesce(process_idx, 0) = ? ORDER BY start_ts
"""


@dataclass(frozen=True, slots=True)
class SerialRun:
    """Collectives of one line and group, one after the other.

    Attributes:
        count: How many.
        byte_count: Bytes of all.
        exposed_ns: Time of them in which nothing was computed.
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
    rows = profile.query(_ROWS, [process]).to_pylist()
    starts, ends = computing_spans(profile, process)
    first, before = 0, 0
    for row in range(1, len(rows) + 1):
        if row < len(rows) and _continues(rows[row - 1], rows[row], (starts, ends)):
            continue
        run = rows[first:row]
        if run and run[0]["operation"] in KINDS:
            yield _run(run, before, (starts, ends), device)
        if run:
            before = run[-1]["end_ns"]
        first = row


def _continues(one: dict[str, object], other: dict[str, object], computing: tuple[np.ndarray, np.ndarray]) -> bool:  # type: ignore[type-arg]
    same = all(one[name] == other[name] for name in ("operation", "file", "line", "replica_group", "dtype"))
    if not same:
        return False
    gap = (np.array([one["end_ns"]], np.int64), np.array([max(other["start_ns"], one["end_ns"])], np.int64))  # type: ignore[call-overload]
    length = int(gap[1][0] - gap[0][0])
    return overlap_ns(gap, computing) <= length // 2 if length else True


def _run(
    rows: list[dict[str, object]], before_ns: int, computing: tuple[np.ndarray, np.ndarray], device: Device | None  # type: ignore[type-arg]
) -> SerialRun:
    starts = np.array([row["start_ns"] for row in rows], np.int64)
    ends = np.array([row["end_ns"] for row in rows], np.int64)
    busy, hidden = int((ends - starts).sum()), overlap_ns((starts, ends), computing)
    total = sum(int(row["byte_count"]) for row in rows)  # type: ignore[call-overload]
    ranks = json.loads(str(rows[0]["replica_group"] or "[]"))
    kind = KINDS[str(rows[0]["operation"])]
    joined = busy if device is None else min(busy, round(cost(kind, total, ranks, device).duration_ns))
    since = (np.array([before_ns], np.int64), starts[:1])
    first = rows[0]
    return SerialRun(
        str(first["file"]), int(first["line"]), str(first["layer"]), str(first["operation"]), len(rows), total,  # type: ignore[call-overload]
        busy - hidden, joined, overlap_ns(since, computing),
    )  # fmt: skip


def _machine(profile: Profile) -> Device | None:
    """The machine that was simulated; None where the profile does not say."""
    target = profile.info.get("target") if isinstance(profile.info, dict) else None
    try:
        return hardware.device(str(target), lnc=1) if target else None
    except hardware.UnknownTargetError:
        return None
