"""Who holds device memory at its peak: tensors by name, category, module, operation and line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

HELD_BEFORE = "(held before)"
"""Operation of what was taken before the first event of a window of a capture, or a range of a profile."""

# The first event after which a core holds most; what was taken until then and not given back holds it. Few
# addresses have many events: each keeps the last of them, and only those that hold are read whole.
_HELD = """
WITH events AS (
    SELECT *, coalesce(process_idx, 0) AS process, coalesce(pcore_idx, 0) AS core FROM MemoryEvent
), peaks AS (
    SELECT process, core, max(held_bytes) AS peak_bytes,
        arg_max(event_idx, (held_bytes, -event_idx)) AS last,
        arg_max(timestamp, (held_bytes, -event_idx)) AS time_ns
    FROM events GROUP BY process, core
), taken AS (
    SELECT process, core, peak_bytes, time_ns,
        max(event_idx) FILTER (kind = 'allocate') AS event_idx, max(event_idx) FILTER (kind = 'free') AS given
    FROM events JOIN peaks USING (process, core) WHERE event_idx <= last
    GROUP BY process, core, peak_bytes, time_ns, address
), held AS (
    SELECT events.* FROM events JOIN taken USING (process, core, event_idx)
    WHERE given IS NULL OR given < event_idx
), names AS (
    SELECT coalesce(process_idx, 0) AS process, address, any_value(name) AS name,
        any_value(category) AS category
    FROM TensorName GROUP BY ALL
), named AS (
    SELECT process, core, coalesce(names.name, '') AS tensor,
        coalesce(names.category, held.category, 'other') AS category, coalesce(layer, '') AS layer,
        coalesce(framework_name, '') AS operation, coalesce(source_file, '') AS file,
        coalesce(source_line, 0) AS line, size
    FROM held LEFT JOIN names USING (process, address)
)
SELECT process, core, peak_bytes, time_ns, coalesce(tensor, '') AS tensor, coalesce(category, '') AS category,
    coalesce(layer, '') AS layer, coalesce(operation, '') AS operation, coalesce(file, '') AS file,
    coalesce(line, 0) AS line, count(size) AS tensors, CAST(coalesce(sum(size), 0) AS BIGINT) AS byte_count
FROM peaks LEFT JOIN named USING (process, core)
WHERE peak_bytes > 0
GROUP BY ALL
ORDER BY process, core, byte_count DESC, tensor, category, layer, operation, file, line
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
        operation, file, line: What took its memory, and where.
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
    rows = profile.query(_HELD).to_pylist() if "MemoryEvent" in profile.tables() else []
    of_cores = groupby(rows, key=lambda row: (row["process"], row["core"]))
    return tuple(holder for _, of_core in of_cores for holder in _holders(list(of_core)))


def _holders(rows: list[Mapping[str, Any]]) -> Iterator[MemoryHolder]:
    first = rows[0]
    for row in rows:
        if row["tensors"]:
            layer = _module_of(row["tensor"]) if row["tensor"] else row["layer"]
            yield MemoryHolder(
                row["process"], row["core"], row["category"], row["tensor"], layer, row["operation"],
                row["file"], row["line"], row["tensors"], row["byte_count"],
            )  # fmt: skip
    unknown = first["peak_bytes"] - sum(row["byte_count"] for row in rows)
    if unknown > 0:
        yield MemoryHolder(first["process"], first["core"], "other", "", "", HELD_BEFORE, "", 0, 0, unknown)


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
