"""FrameworkNode: device time, bytes and work of every module, with everything under it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.profile.derive.busy import BusyTime
from neuron_tools.profile.derive.interval_work import interval_work
from neuron_tools.profile.derive.intervals import Islands
from neuron_tools.profile.derive.island_store import IslandStream
from neuron_tools.profile.derive.layers import LayerTree, layer_tree
from neuron_tools.profile.derive.peaks import Peaks
from neuron_tools.profile.store.recorded import RecordedTables

MAX_INTERVALS = 500
ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync")

_INSTRUCTIONS = """
    SELECT coalesce(layer, '') AS layer, lower(engine) AS engine,
           count(*) AS instruction_count,
           sum(duration_ns) AS time_ns,
           sum(duration_ns) FILTER (coalesce(is_backward, false)) AS backward_time_ns,
           sum(evt_wait_time_ns) AS wait_time_ns,
           sum(raw_flops) AS raw_flops,
           sum(flops_transpose) AS flops_transpose,
           sum(sbuf_read_bytes) FILTER (NOT contains(opcode, 'DMA')) AS sbuf_read_bytes,
           sum(sbuf_write_bytes) FILTER (NOT contains(opcode, 'DMA')) AS sbuf_write_bytes
    FROM Instruction GROUP BY 1, 2
"""
_TRANSFERS = """
    SELECT coalesce(layer, '') AS layer,
           count(*) AS dma_transfer_count,
           sum(duration_ns) AS dma_time_ns,
           sum(read_bytes) FILTER (lower(source) = 'hbm') AS hbm_read_bytes,
           sum(write_bytes) FILTER (lower(dest) = 'hbm') AS hbm_write_bytes,
           sum(read_bytes) FILTER (lower(source) = 'sbuf') AS sbuf_read_bytes,
           sum(write_bytes) FILTER (lower(dest) = 'sbuf') AS sbuf_write_bytes,
           sum(read_bytes) FILTER (lower(op) = 'weight') AS load_weight_bytes
    FROM DmaPacketAggregated GROUP BY 1
"""
_SUMS = (
    "instruction_count", "time_ns", "backward_time_ns", "wait_time_ns", "raw_flops", "flops_transpose",
    "sbuf_read_bytes", "sbuf_write_bytes", "hbm_read_bytes", "hbm_write_bytes", "load_weight_bytes",
    "dma_time_ns", "dma_transfer_count", *(f"{engine}_time_ns" for engine in ENGINES),
    *(f"{engine}_count" for engine in ENGINES),
)  # fmt: skip


@dataclass(frozen=True)
class NodeSums:
    """Sums per node: what belongs to the node itself, and with everything under it; int64, shape (nodes,)."""

    own: dict[str, Ints]
    all: dict[str, Ints]


def framework_nodes(recorded: RecordedTables, busy: BusyTime, peaks: Peaks) -> dict[str, Any]:
    """FrameworkNode rows: the root first, every parent before its children."""
    instructions, transfers = recorded.rows(_INSTRUCTIONS), recorded.rows(_TRANSFERS)
    tree = layer_tree({row["layer"] for row in [*instructions, *transfers]})
    sums = _node_sums(tree, instructions, transfers)
    leaves = _of_nodes(busy, tree)
    active_ns = _active_time(tree, leaves)
    shown = node_intervals(tree, leaves)
    return {
        **_names(tree),
        **_spans(tree, shown),
        **_work(sums),
        **_rates(sums, active_ns, peaks),
        **interval_work(recorded, tree, shown, peaks),
        "active_time_ns": active_ns,
        "self_time_ns": sums.own["time_ns"],
    }


def _of_nodes(busy: BusyTime, tree: LayerTree) -> dict[int, IslandStream]:
    """The islands of what belongs to each node itself."""
    own: dict[int, list[IslandStream]] = defaultdict(list)
    for code, islands in busy.layers.by_group().items():
        own[tree.number(busy.layer_names.texts[code])].append(islands)
    return {node: IslandStream.joined(parts) for node, parts in own.items()}


def _node_sums(
    tree: LayerTree, instructions: list[dict[str, Any]], transfers: list[dict[str, Any]]
) -> NodeSums:
    own = {name: np.zeros(len(tree), np.int64) for name in _SUMS}
    for row in [*instructions, *transfers]:
        node = tree.number(row["layer"])
        for name, value in row.items():
            if name in own:
                own[name][node] += int(value or 0)
        if "engine" in row and row["engine"] in ENGINES:
            own[f"{row['engine']}_time_ns"][node] += int(row["time_ns"] or 0)
            own[f"{row['engine']}_count"][node] += int(row["instruction_count"])
    return NodeSums(own, {name: _with_children(tree, values) for name, values in own.items()})


def _with_children(tree: LayerTree, own: Ints) -> Ints:
    total: Ints = own.copy()
    for node in range(len(tree) - 1, 0, -1):  # children have larger numbers than parents
        total[tree.parents[node]] += total[node]
    return total


def _active_time(tree: LayerTree, leaves: Mapping[int, IslandStream]) -> Ints:
    """Union of each node's islands with those of everything under it."""
    active = np.zeros(len(tree), np.int64)
    for node, islands in _upwards(tree, leaves, limit=None):
        active[node] = islands.total
    return active


def node_intervals(tree: LayerTree, leaves: Mapping[int, IslandStream]) -> dict[int, Islands]:
    """At most MAX_INTERVALS intervals for each node; a child's lie within its parent's."""
    found = _upwards(tree, leaves, limit=MAX_INTERVALS)
    return {node: islands.at_most(MAX_INTERVALS) for node, islands in found}


def _upwards(
    tree: LayerTree, leaves: Mapping[int, IslandStream], limit: int | None
) -> Iterator[tuple[int, IslandStream]]:
    """Each node's islands with those of everything under it, children before parents."""
    below: dict[int, list[IslandStream]] = defaultdict(list)
    for node in range(len(tree) - 1, -1, -1):  # children have larger numbers than parents
        islands = IslandStream.joined([leaves.get(node, IslandStream()), *below.pop(node, [])])
        islands = islands if limit is None else IslandStream.of(islands.at_most(limit))
        below[tree.parents[node]].append(islands)
        yield node, islands


def _names(tree: LayerTree) -> dict[str, Any]:
    children = tree.children()
    return {
        "node_name": tree.paths,
        "children_names": [json.dumps([tree.paths[child] for child in below]) for below in children],
        "parent_name": [tree.paths[parent] if parent >= 0 else "" for parent in tree.parents],
        "children_ids": [json.dumps(below) for below in children],
        "id": list(range(len(tree))),
        "parent_id": pa.array([parent if parent >= 0 else None for parent in tree.parents], pa.int64()),
        "depth": np.array(tree.depths, np.int32),
    }


def _spans(tree: LayerTree, shown: Mapping[int, Islands]) -> dict[str, Any]:
    start, end = np.zeros(len(tree), np.int64), np.zeros(len(tree), np.int64)
    texts = ["[]"] * len(tree)
    for node, islands in shown.items():
        if len(islands):
            start[node], end[node] = islands.start[0], islands.end[-1]
            pairs = np.column_stack([islands.start, islands.end]).tolist()
            texts[node] = json.dumps(pairs, separators=(",", ":"))
    return {"start_ts": start, "end_ts": end, "time_intervals": texts}


def _work(sums: NodeSums) -> dict[str, Any]:
    total = sums.all
    same = (
        "hbm_read_bytes", "hbm_write_bytes", "sbuf_read_bytes", "sbuf_write_bytes", "load_weight_bytes",
        "backward_time_ns", "wait_time_ns", "dma_time_ns", "dma_transfer_count", "instruction_count",
        "raw_flops",
    )  # fmt: skip
    return {
        **{name: total[name] for name in same},
        "forward_time_ns": total["time_ns"] - total["backward_time_ns"],
        **{f"{engine}_engine_instruction_count": total[f"{engine}_count"] for engine in ENGINES},
        **{f"{engine}_engine_time_ns": total[f"{engine}_time_ns"] for engine in ENGINES},
        **{
            f"total_time_{engine}": [str(ns) for ns in total[f"{engine}_time_ns"].tolist()]
            for engine in ENGINES
        },
    }


def _rates(sums: NodeSums, active_ns: Ints, peaks: Peaks) -> dict[str, npt.NDArray[np.float64]]:
    """FLOPs over what the Tensor engines could do in the node's active time."""
    possible = active_ns * 1e-9 * peaks.flops_per_second
    flops = sums.all["raw_flops"]
    useful = flops - sums.all["flops_transpose"]
    zero = np.zeros(len(flops))
    return {
        "hfu": np.divide(flops, possible, out=zero.copy(), where=possible > 0),
        "mfu": np.divide(useful, possible, out=zero.copy(), where=possible > 0),
    }
