"""CcOp rows of torch.distributed's collectives: one for each rank that took part, and who waited for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Table
from neuron_tools.capture.attribution import Attribution, LoggedExecution, Origin
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.definitions import Collective, Definitions
from neuron_tools.capture.replicas import replicated
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.capture.tables.origin import NO_LAYER, layer_path
from neuron_tools.records.capture_log import COLLECTIVE_NUMBER_BITS, RecordKind

COLLECTIVE_ID_BIT = 1 << 46  # ids of these rows stand apart from those of executions and events
DEPENDENCY = "last_rank"
_NUMBER_MASK = (1 << COLLECTIVE_NUMBER_BITS) - 1


@dataclass
class Meetings:
    """Ends of the edges between ranks: every rank's row of every collective, by group and number.

    Attributes:
        rows: (group, ranks, number) -> [(rank, row id, whether this rank came last, start - ready in ns)].
    """

    rows: dict[tuple[str, str, int], list[tuple[int, int, bool, int]]] = field(default_factory=dict)

    def add(self, key: tuple[str, str, int], rank: int, row_id: int, is_last: bool, wait_ns: int) -> None:
        """One rank's row."""
        self.rows.setdefault(key, []).append((rank, row_id, is_last, wait_ns))

    def flow_rows(self) -> dict[str, list[Any]]:
        """Flow rows from the rank that came last to each of those that waited for it."""
        edges = [
            (last[1], other[1], other[3])
            for rows in self.rows.values()
            for last in [next((row for row in rows if row[2]), None)]
            if last is not None
            for other in rows
            if other is not last and other[3] > last[3]
        ]
        return {
            "in_id": [edge[0] for edge in edges],
            "out_id": [edge[1] for edge in edges],
            "in_table": ["CcOp"] * len(edges),
            "out_table": ["CcOp"] * len(edges),
            "dependency_type": [DEPENDENCY] * len(edges),
            "gap_time": [edge[2] for edge in edges],
        }


class RankCollectives:
    """Builds the rows of one process.

    Args:
        process_idx: Number of the process.
        first_id: Of its rows.
        stacks: Where source stacks get their numbers.
        meetings: Shared by all processes of the capture.

    Attributes:
        replicas: How many times the job is simulated, as far as its collectives tell.
        running: Ranks of it that run.
    """

    def __init__(self, process_idx: int, first_id: int, stacks: StackRegistry, meetings: Meetings) -> None:
        self._process_idx = process_idx
        self._next_id = first_id | COLLECTIVE_ID_BIT
        self._stacks = stacks
        self._meetings = meetings
        self._pools = TextPools()
        self._groups: dict[str, int] = {}
        self.replicas, self.running = 1, 0

    def rows(
        self,
        records: Table,
        definitions: Definitions,
        attribution: Attribution,
        first_core: int,
        logical_core_size: int = 1,
    ) -> list[dict[str, Any]]:
        """CcOp columns of the COLLECTIVE records among `records`, and of the same in each replica."""
        chosen = records[records["kind"] == int(RecordKind.COLLECTIVE)]
        parts = [definitions.collectives.get(int(number)) for number in chosen["executable"]]
        chosen = chosen[np.array([part is not None for part in parts], bool)]
        known = [part for part in parts if part is not None]
        if not known:
            return []
        ids = self._next_id + np.arange(len(known), dtype=np.int64)
        self._next_id += len(known)
        self._remember(chosen, known, ids, definitions)
        origins = list(map(attribution.passive_origin, LoggedExecution.of(chosen)))
        numbers = {
            **self._numbers(chosen, known, ids, first_core, logical_core_size),
            **self._places(origins, definitions),
        }
        texts = self._texts(known, origins, definitions)
        own = self._pools.table(numbers, texts)
        self.replicas, self.running = known[0].replicas, known[0].running
        return [own, *(self._replica(own, known, replica) for replica in range(1, self.replicas))]

    def _replica(self, own: dict[str, Any], parts: Sequence[Collective], replica: int) -> dict[str, Any]:
        pool = self._pools["replica_group"]
        groups = pool.array(pool.codes([part.ranks_in(replica) for part in parts]))
        last = own["last_rank"] + replica * self.running
        over = np.array([part.over_replicas for part in parts], bool)
        moved = {
            "replica_group": groups,
            "last_rank": np.where(over, own["last_rank"], last).astype(np.int32),
        }
        return {**replicated(own, replica), **moved}

    def _remember(
        self,
        records: Table,
        parts: Sequence[Collective],
        ids: npt.NDArray[np.int64],
        definitions: Definitions,
    ) -> None:
        rank = definitions.process.rank
        if rank is None:
            return
        waits = records["device_start_ns"] - records["address"]
        for record, part, row_id, wait_ns in zip(records, parts, ids, waits, strict=True):
            number = int(record["sequence"])
            last = number >> COLLECTIVE_NUMBER_BITS
            key = (part.group, part.ranks_text, number & _NUMBER_MASK)
            self._meetings.add(key, rank, int(row_id), last == rank, int(wait_ns))

    def _numbers(
        self,
        records: Table,
        parts: Sequence[Collective],
        ids: npt.NDArray[np.int64],
        first_core: int,
        logical_core_size: int,
    ) -> dict[str, Any]:
        start, end = records["device_start_ns"], records["device_end_ns"]
        bandwidth = records["bytes"] / (np.maximum(end - start, 1) * 1e-9)
        groups = np.array([self._group(part) for part in parts], np.int64)
        return {
            "id": ids,
            "start_ts": start,
            "end_ts": end,
            "duration_ns": end - start,
            "num_elements": np.array([part.elements for part in parts], np.int64),
            "op_id": records["sequence"] & _NUMBER_MASK,
            "stream_id": groups,
            "stream_index": groups,
            "input_size": np.array([part.input_bytes for part in parts], np.int64),
            "output_size": np.array([part.output_bytes for part in parts], np.int64),
            "algorithm_bandwidth": bandwidth,
            "bus_bandwidth": bandwidth * np.array([part.bus_factor for part in parts], np.float64),
            "trigger_start_ts": records["address"],
            "cc_trigger_start_delay": start - records["address"],
            "replica_group_id": groups,
            "last_rank": (records["sequence"] >> COLLECTIVE_NUMBER_BITS).astype(np.int32),
            "pcore_idx": (records["device"].astype(np.int64) + first_core) * logical_core_size,
            "process_idx": np.full(len(parts), self._process_idx, np.int32),
        }

    def _places(self, origins: Sequence[Origin], definitions: Definitions) -> dict[str, Any]:
        stacks = [definitions.stacks.get(origin.stack, ()) for origin in origins]
        return {
            "source_line": np.array([stack[0].line if stack else 0 for stack in stacks], np.int32),
            "is_backward": np.array([origin.backward for origin in origins], bool),
        }

    def _texts(
        self, parts: Sequence[Collective], origins: Sequence[Origin], definitions: Definitions
    ) -> dict[str, Any]:
        stacks = [definitions.stacks.get(origin.stack, ()) for origin in origins]
        modules = [definitions.modules.get(origin.module) for origin in origins]
        layers = [layer_path(module.path) if module else NO_LAYER for module in modules]
        texts: dict[str, list[str | None]] = {
            "operation": [part.operation for part in parts],
            "algorithm": [part.algorithm for part in parts],
            "dtype": [part.dtype for part in parts],
            "trigger_engine": ["host"] * len(parts),
            "replica_group": [part.ranks_text for part in parts],
            "framework_name": [f"c10d::{part.title}" for part in parts],
            "group_name": [part.group for part in parts],
            "source_file": [stack[0].file if stack else None for stack in stacks],
            "stack_frame_ids": [self._stacks.leaf(stack) for stack in stacks],
            "layer": list(layers),
        }
        return {name: self._pools[name].codes(values) for name, values in texts.items()}

    def _group(self, part: Collective) -> int:
        """Its stream: collectives of one group queue behind each other."""
        key = part.group if not part.is_pair else f"{part.group} {part.ranks_text}"
        return self._groups.setdefault(key, len(self._groups))
