"""Who holds device memory at its peak: tensors by name, category, module, operation and line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

HELD_BEFORE = "(held before)"
"""Operation of what was taken before the first event of a window of a capture."""

EVENTS_AT_ONCE = 1 << 18
"""Events that are looked at together: memory does not grow with a capture's length."""
_EVENTS = "SELECT *, coalesce(process_idx, 0) AS process, coalesce(pcore_idx, 0) AS core FROM MemoryEvent"
# The first event after which a core holds most; what was taken until then and not given back holds it.
_PEAKS = f"""
SELECT process, core, max(held_bytes) AS peak_bytes,
    arg_max(event_idx, (held_bytes, -event_idx)) AS last
FROM ({_EVENTS}) GROUP BY process, core HAVING max(held_bytes) > 0 ORDER BY process, core
"""
_EXTENT = f"""
SELECT min(event_idx) AS first, count(*) AS n FROM ({_EVENTS}) WHERE process = $process AND event_idx <= $last
"""
# Of events in a row: memory that is held after them and was not before, or that was and may not be after.
# What is known to be held is looked at in any case: that it was given back may have been lost.
_CHANGES = f"""
SELECT core, address, max(event_idx) FILTER (kind = 'allocate') AS taken,
    max(event_idx) FILTER (kind = 'free') AS given
FROM ({_EVENTS}) JOIN (SELECT unnest($cores) AS core, unnest($lasts) AS last) USING (core)
WHERE process = $process AND event_idx >= $begin AND event_idx < $end AND event_idx <= last
GROUP BY core, address
HAVING arg_min(kind, event_idx) != 'allocate' OR arg_max(kind, event_idx) != 'free'
    OR (core, address) IN (SELECT (unnest($held_cores), unnest($held)))
ORDER BY core, address
"""
_HELD = f"""
WITH held AS (
    SELECT * FROM ({_EVENTS})
    JOIN (SELECT unnest($cores) AS core, unnest($taken) AS event_idx) USING (core, event_idx)
    WHERE process = $process AND event_idx BETWEEN $least AND $greatest
), names AS (
    SELECT coalesce(process_idx, 0) AS process, address, any_value(name) AS name,
        any_value(category) AS category
    FROM TensorName GROUP BY ALL
)
SELECT core, coalesce(names.name, '') AS tensor,
    coalesce(names.category, held.category, 'other') AS category, coalesce(layer, '') AS layer,
    coalesce(framework_name, '') AS operation, coalesce(own.source_file, held.source_file, '') AS file,
    coalesce(own.source_line, held.source_line, 0) AS line, count(*) AS tensors,
    CAST(sum(size) AS BIGINT) AS byte_count
FROM held LEFT JOIN names USING (process, address)
LEFT JOIN Frontier own ON own.is_own AND own.stack_frame_id = held.stack_frame_ids
GROUP BY ALL ORDER BY core, byte_count DESC, tensor, category, layer, operation, file, line
"""


@frozen
class MemoryHolder:
    """Tensors of one place that held memory of a NeuronCore when most was held.

    Attributes:
        core: The NeuronCore.
        category: Parameter, buffer, optimizer (its state, and what its step computes), gradient (all that
            backward makes), activation (all that modules make) or other.
        tensor: Its path where it has a name, as parameters and buffers have.
        layer: Module that it belongs to, or that took its memory.
        operation, file, line: What took its memory, and where in the user's own code.
        tensors: How many.
    """

    process: int
    core: int
    category: str
    tensor: str
    layer: str
    operation: str
    file: str
    line: int
    tensors: int
    byte_count: int


@frozen
class CategoryBytes:
    """What tensors of one category held of a NeuronCore's memory when most was held."""

    process: int
    core: int
    category: str
    tensors: int
    byte_count: int
    of_peak: float


def find_memory_holders(profile: Profile) -> tuple[MemoryHolder, ...]:
    """Who holds each core's memory at its peak, the largest first; their bytes add up to the peak."""
    peaks = profile.query(_PEAKS).to_pylist() if "MemoryEvent" in profile.tables() else []
    found: list[MemoryHolder] = []
    for process, of_process in groupby(peaks, key=itemgetter("process")):
        cores = list(of_process)
        rows = _held_rows(profile.whole, process, cores)
        for peak in cores:
            found += _holders(peak, [row for row in rows if row["core"] == peak["core"]])
    return tuple(found)


def _held_rows(profile: Profile, process: int, peaks: Sequence[Mapping[str, int]]) -> list[dict[str, Any]]:
    """What each core of a process holds at its peak, in groups."""
    held = _held_events(profile, process, peaks)
    if not held:
        return []
    cores, taken = [core for core, _ in held], list(held.values())
    where = {"cores": cores, "taken": taken, "process": process, "least": min(taken), "greatest": max(taken)}
    rows: list[dict[str, Any]] = profile.query(_HELD, where).to_pylist()
    return rows


def _held_events(
    profile: Profile, process: int, peaks: Sequence[Mapping[str, int]]
) -> dict[tuple[int, int], int]:
    """The event that took each (core, address) which is held at the core's peak.

    Events are followed in turn, so that only what is held at a time is kept, however many addresses come.
    """
    last = max(peak["last"] for peak in peaks)
    first, count = profile.query(_EXTENT, {"process": process, "last": last}).to_pylist()[0].values()
    step = EVENTS_AT_ONCE * max(1, (last - first) // count)
    told = {"process": process, **{f"{name}s": [peak[name] for peak in peaks] for name in ("core", "last")}}
    held: dict[tuple[int, int], int] = {}
    for begin in range(first, last + 1, step):
        known = {"held_cores": [core for core, _ in held], "held": [address for _, address in held]}
        changes = profile.query(_CHANGES, {**told, **known, "begin": begin, "end": begin + step})
        for core, address, taken, given in zip(*(column.to_pylist() for column in changes.columns)):
            held.pop((core, address), None)
            if taken is not None and (given is None or given < taken):
                held[core, address] = taken
    return held


def _holders(peak: Mapping[str, int], rows: Sequence[Mapping[str, Any]]) -> Iterator[MemoryHolder]:
    place = peak["process"], peak["core"]
    for row in rows:
        layer = _module_of(row["tensor"]) if row["tensor"] else row["layer"]
        yield MemoryHolder(
            *place, row["category"], row["tensor"], layer, row["operation"], row["file"], row["line"],
            row["tensors"], row["byte_count"],
        )  # fmt: skip
    unknown = peak["peak_bytes"] - sum(row["byte_count"] for row in rows)
    if unknown > 0:
        yield MemoryHolder(*place, "other", "", "", HELD_BEFORE, "", 0, 0, unknown)


def _module_of(tensor: str) -> str:
    """The layer of a parameter: "GPT.blocks.0.fc.weight" is of "/GPT/blocks/0/fc"."""
    return "/" + tensor.rpartition(".")[0].replace(".", "/")


def by_category(holders: Iterable[MemoryHolder]) -> tuple[CategoryBytes, ...]:
    """What each category holds of each core's peak, the largest first."""
    found = []
    for (process, core), of_core in groupby(holders, key=attrgetter("process", "core")):
        totals: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        for holder in of_core:
            totals[holder.category][0] += holder.tensors
            totals[holder.category][1] += holder.byte_count
        peak = sum(held for _, held in totals.values())
        rows = [
            CategoryBytes(process, core, category, tensors, held, held / peak)
            for category, (tensors, held) in totals.items()
        ]
        found += sorted(rows, key=lambda row: (-row.byte_count, row.category))
    return tuple(found)
