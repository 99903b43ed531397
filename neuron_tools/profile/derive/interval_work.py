"""Work of each interval of each FrameworkNode: matrix elements, FLOPs and HBM bytes.

A second pass over the device's rows. Each row falls into an interval of its own node; what an interval
holds is then added to the interval of the parent that it lies in, up to the root.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Floats, Ints
from neuron_tools.profile.derive.intervals import Islands
from neuron_tools.profile.derive.layers import LayerTree
from neuron_tools.profile.derive.peaks import Peaks
from neuron_tools.profile.store.recorded import RecordedTables, TextCodes, integers

ELEMENTS, TRANSPOSED, FLOPS, USEFUL_FLOPS, HBM_BYTES = range(5)
_INSTRUCTION_COLUMNS = ("tensor_elements", "tensor_elements_transpose", "raw_flops", "flops_transpose")
_DIGITS = 6


@dataclass(frozen=True)
class _IntervalTable:
    """The intervals of all nodes one after the other.

    Attributes:
        first: Row of each node's first interval; shape (nodes + 1,).
        start: Start of each interval.
        length: Length of each interval, ns.
        width: Greater than any time, so that node x width + time orders by node, then time.
        key: That number of each interval.
    """

    first: Ints
    start: Ints
    length: Ints
    width: int
    key: Ints

    def rows(self, node: Ints, time: Ints) -> Ints:
        """Row of the interval of each node that was the last to start by each time."""
        found: Ints = np.searchsorted(self.key, node * self.width + time, "right") - 1
        return found


def interval_work(
    recorded: RecordedTables, tree: LayerTree, shown: Mapping[int, Islands], peaks: Peaks
) -> dict[str, Any]:
    """The `*_per_interval` columns of FrameworkNode: one JSON list a node, one value an interval.

    Empty where node numbers and times do not fit into 63 bits together.
    """
    table = _interval_table(tree, shown)
    if table.width * len(tree) >= 1 << 62 or not len(table.start):
        return {}
    work = np.zeros((5, len(table.start)))
    _add_instructions(recorded, tree, table, work)
    _add_transfers(recorded, tree, table, work)
    _add_to_parents(tree, table, work)
    return _texts(table, work, peaks)


def _interval_table(tree: LayerTree, shown: Mapping[int, Islands]) -> _IntervalTable:
    parts = [shown[node] for node in range(len(tree))]
    start = np.concatenate([part.start for part in parts])
    end = np.concatenate([part.end for part in parts])
    first = np.append(0, np.cumsum([len(part) for part in parts]))
    width = int(end.max(initial=0)) + 1
    node = np.repeat(np.arange(len(tree)), np.diff(first))
    return _IntervalTable(first, start, end - start, width, node * width + start)


def _add_instructions(recorded: RecordedTables, tree: LayerTree, table: _IntervalTable, work: Floats) -> None:
    layers = TextCodes()
    for batch in recorded.scan("Instruction", ("start_ts", "layer", *_INSTRUCTION_COLUMNS)):
        elements, transposed, flops, flops_transposed = (
            integers(batch[name]) for name in _INSTRUCTION_COLUMNS
        )
        worked = np.flatnonzero((flops != 0) | (elements != 0))
        if not len(worked):
            continue
        node = _nodes(tree, layers, batch["layer"])[worked]
        rows = table.rows(node, integers(batch["start_ts"])[worked])
        for kind, values in (
            (ELEMENTS, elements),
            (TRANSPOSED, transposed),
            (FLOPS, flops),
            (USEFUL_FLOPS, flops - flops_transposed),
        ):
            work[kind] += np.bincount(rows, values[worked], work.shape[1])


def _add_transfers(recorded: RecordedTables, tree: LayerTree, table: _IntervalTable, work: Floats) -> None:
    layers = TextCodes()
    columns = ("start_ts", "layer", "source", "dest", "read_bytes", "write_bytes")
    for batch in recorded.scan("DmaPacketAggregated", columns):
        moved = np.where(_is_hbm(batch["source"]), integers(batch["read_bytes"]), 0)
        moved += np.where(_is_hbm(batch["dest"]), integers(batch["write_bytes"]), 0)
        rows = table.rows(_nodes(tree, layers, batch["layer"]), integers(batch["start_ts"]))
        work[HBM_BYTES] += np.bincount(rows, moved, work.shape[1])


def _nodes(tree: LayerTree, layers: TextCodes, column: pa.DictionaryArray) -> Ints:
    codes = layers.encode(column)
    return np.array([tree.number(layer) for layer in layers.texts], np.int64)[codes]


def _is_hbm(column: pa.DictionaryArray) -> npt.NDArray[np.bool_]:
    is_hbm: npt.NDArray[np.bool_] = np.asarray(
        pc.fill_null(pc.equal(pc.utf8_lower(column.cast(pa.string())), "hbm"), False)
    )
    return is_hbm


def _add_to_parents(tree: LayerTree, table: _IntervalTable, work: Floats) -> None:
    for node in range(len(tree) - 1, 0, -1):  # children have larger numbers than parents
        mine = slice(int(table.first[node]), int(table.first[node + 1]))
        start = table.start[mine]
        above = table.rows(np.full(len(start), tree.parents[node]), start)
        for kind in range(len(work)):
            np.add.at(work[kind], above, work[kind, mine])


def _texts(table: _IntervalTable, work: Floats, peaks: Peaks) -> dict[str, list[str]]:
    seconds: Floats = table.length.astype(np.float64) * 1e-9
    columns = {
        "element_count_per_interval": work[ELEMENTS].astype(np.int64),
        "transpose_element_count_per_interval": work[TRANSPOSED].astype(np.int64),
        "hbm_transfer_size_per_interval": work[HBM_BYTES].astype(np.int64),
        "hfu_per_interval": _share(work[FLOPS], seconds * peaks.flops_per_second),
        "mfu_per_interval": _share(work[USEFUL_FLOPS], seconds * peaks.flops_per_second),
        "mbu_per_interval": _share(work[HBM_BYTES], seconds * peaks.hbm_bytes_per_second),
    }
    cuts = table.first[1:-1]
    return {
        name: [json.dumps(part.tolist(), separators=(",", ":")) for part in np.split(values, cuts)]
        for name, values in columns.items()
    }


def _share(part: Floats, whole: Floats) -> Floats:
    share: Floats = np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
    return np.round(share, _DIGITS)
