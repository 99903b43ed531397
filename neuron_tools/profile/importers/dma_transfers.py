"""DMA transfers from their packets, for profiles that list only packets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.json_decode import LARGEST_INTEGER, LARGEST_TIME
from neuron_tools.profile.importers.json_rows import JsonRows
from neuron_tools.profile.importers.sections import core_numbers, is_one_of

NANOSECONDS_PER_SECOND = 1_000_000_000
SPREAD = 0x1E3779B97F4A7C15
"""An odd number whose multiples differ in many bits."""


class TransferSums:
    """Adds packets up by transfer, chunk by chunk: memory grows with the transfers, not with the packets."""

    def __init__(self) -> None:
        self._sums: pa.Table | None = None

    def add(self, rows: JsonRows) -> None:
        """Adds the packets among some rows of the list `dma`."""
        packets = rows.take(is_one_of(rows.texts("aggregated"), frozenset({"no", "false"})))
        start, known = packets.scaled("timestamp", 0)
        packets, start = packets.take(known), start[known]
        if not len(packets):
            return
        duration, _ = packets.scaled("duration", 0)
        end = np.minimum(start + np.maximum(duration, 0), LARGEST_TIME)
        table = pa.table(
            {
                "pcore_idx": core_numbers(packets),
                "transfer": pc.coalesce(packets.integers("packet_aggregation_id"), packets.integers("id")),
                **{name: packets.texts(key).cast(pa.string()) for name, key in _TEXTS.items()},
                "queue_idx": packets.integers("dma_queue").fill_null(0),
                "start_ts": start,
                "end_ts": end,
                "packet_time_ns": end - start,
                **{name: packets.integers(key).fill_null(0) for name, key in _SIZES.items()},
                "packet_count": np.ones(len(packets), np.int64),
            }
        )
        parts = [_summed(table)] if self._sums is None else [self._sums, _summed(table)]
        self._sums = parts[0] if len(parts) == 1 else _summed(pa.concat_tables(parts))

    def transfers(self) -> dict[str, Any] | None:
        """Columns of DmaPacketAggregated; None without packets."""
        if self._sums is None:
            return None
        sums = self._sums.combine_chunks()
        rows = sums.num_rows
        duration = np.maximum(sums["end_ts"].to_numpy() - sums["start_ts"].to_numpy(), 1)
        columns: dict[str, Any] = {
            name: sums[name].combine_chunks()
            for name in sums.column_names
            if name not in ("transfer", *_TEXTS)
        }
        columns |= {name: sums[name].combine_chunks().fill_null("") for name in _TEXTS}
        columns["id"] = pa.array(_unique(sums["transfer"].combine_chunks().fill_null(0).to_numpy()))
        columns["throughput"] = pa.array(
            sums["transfer_bytes"].to_numpy() * float(NANOSECONDS_PER_SECOND) / duration
        )
        columns |= {name: pa.array([""] * rows) for name in _UNKNOWN_TEXTS}
        columns |= {name: pa.array(np.zeros(rows, np.int32)) for name in _UNKNOWN_NUMBERS}
        return columns


_TEXTS = {"queue_name": "subgroup", "queue_type": "queue_type", "variable": "variable"}
_SIZES = {"read_bytes": "read_size", "write_bytes": "write_size", "transfer_bytes": "transfer_size"}
_KEYS = ["pcore_idx", "transfer", *_TEXTS, "queue_idx"]
_AGGREGATES = {
    "start_ts": "min",
    "end_ts": "max",
    **dict.fromkeys(("packet_time_ns", *_SIZES, "packet_count"), "sum"),
}
_UNKNOWN_TEXTS = (
    "op", "source", "dest", "semaphore_id", "read_sbuf_partitions", "read_shape", "read_offset", "read_steps",
    "write_sbuf_partitions", "write_shape", "write_offset", "write_steps",
)  # fmt: skip
_UNKNOWN_NUMBERS = ("block_id", "read_num_sbuf_partitions", "write_num_sbuf_partitions")


def _unique(ids: Ints) -> Ints:
    """The ids, each different: a transfer that is spread over several queues is a row on each."""
    order = np.argsort(ids, kind="stable")
    is_first = np.append(True, ids[order][1:] != ids[order][:-1])
    position = np.arange(len(ids))
    repeat = np.empty(len(ids), np.int64)
    repeat[order] = position - np.maximum.accumulate(np.where(is_first, position, 0))
    spread = (repeat * SPREAD) & LARGEST_INTEGER
    return np.where(repeat > 0, (ids ^ spread) & LARGEST_INTEGER, ids)


def _summed(table: pa.Table) -> pa.Table:
    grouped = table.group_by(_KEYS).aggregate(list(_AGGREGATES.items()))
    renamed = {f"{name}_{how}": name for name, how in _AGGREGATES.items()}
    return grouped.rename_columns([renamed.get(name, name) for name in grouped.column_names]).select(
        table.column_names
    )
