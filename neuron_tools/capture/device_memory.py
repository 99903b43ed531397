"""Device memory: how much tensors hold over time, and what each piece of it was taken for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Bools, Ints, Table
from neuron_tools.capture.columns import TextPools
from neuron_tools.capture.definitions import Definitions, TensorName
from neuron_tools.capture.host_rows import IN_OPTIMIZER, INSTANCE_ID
from neuron_tools.capture.table_template import ExecutionOrigin
from neuron_tools.profile.schema import TABLES
from neuron_tools.records.capture_log import RecordKind

ALLOCATE = int(RecordKind.ALLOCATE)
CATEGORIES = (None, "optimizer", "gradient", "activation", "other")
EVENT_KINDS = {int(RecordKind.ALLOCATE): "allocate", int(RecordKind.FREE): "free"}
_PLACE = ("layer", "stack_frame_ids", "source_file")
_HBM_COLUMNS = [name for name in TABLES["SystemProfileHbmUsage"].column_names if name.endswith("_bytes")]


class DeviceMemory:
    """Bytes that each core's tensors hold, followed through the ALLOCATE and FREE records.

    Args:
        process_idx: Number of the process.
        first_core: NeuronCore that its device 0 is.
        held_bytes: What its tensors held before the first record, by device.
        logical_core_size: Physical cores of a NeuronCore; rows name the first of them.
    """

    def __init__(
        self, process_idx: int, first_core: int, held_bytes: Sequence[int] = (), logical_core_size: int = 1
    ) -> None:
        self._logical_core_size = logical_core_size
        self._process_idx = process_idx
        self._first_core = first_core
        self._held: dict[int, int] = dict(enumerate(held_bytes))
        self._events = 0
        self._pools = TextPools()

    def tables(
        self, records: Table, origins: Sequence[ExecutionOrigin], definitions: Definitions
    ) -> dict[str, dict[str, Any]]:
        """Rows of SystemProfileHbmUsage and MemoryEvent, one of each per change.

        Args:
            records: A block of the log.
            origins: Where each of its ALLOCATE records comes from.
        """
        chosen = records[np.isin(records["kind"], list(EVENT_KINDS))]
        held = self._held_after(chosen)
        return {
            "SystemProfileHbmUsage": self._usage(chosen, held),
            "MemoryEvent": self._event_rows(chosen, held, origins, definitions),
        }

    def name_rows(self, names: Sequence[TensorName]) -> dict[str, Any]:
        """Rows of TensorName."""
        return {
            "address": [each.address for each in names],
            "name": [each.name for each in names],
            "category": [each.category for each in names],
            "process_idx": [self._process_idx] * len(names),
        }

    def _held_after(self, chosen: Table) -> Ints:
        signed = np.where(chosen["kind"] == ALLOCATE, chosen["bytes"], -chosen["bytes"])
        held = np.zeros(len(chosen), np.int64)
        for device in np.unique(chosen["device"]):
            rows = chosen["device"] == device
            held[rows] = self._held.get(int(device), 0) + np.cumsum(signed[rows])
            self._held[int(device)] = int(held[rows][-1])
        return held

    def _usage(self, chosen: Table, held: Ints) -> dict[str, Any]:
        table: dict[str, Any] = {name: np.zeros(len(chosen), np.int64) for name in _HBM_COLUMNS}
        table["total_bytes"] = table["tensors_bytes"] = held
        table["timestamp"] = chosen["host_start_ns"]
        table["device_idx"] = self._cores(chosen)
        table["hbm_idx"] = np.zeros(len(chosen), np.int64)
        table["instance_id"] = (
            pa.array([INSTANCE_ID]).dictionary_encode().take(pa.array(np.zeros(len(chosen), np.int32)))
        )
        table["process_idx"] = np.full(len(chosen), self._process_idx, np.int32)
        return table

    def _event_rows(
        self, chosen: Table, held: Ints, origins: Sequence[ExecutionOrigin], definitions: Definitions
    ) -> dict[str, Any]:
        allocates = chosen["kind"] == ALLOCATE
        places: dict[ExecutionOrigin | None, int] = {None: 0}
        place = np.zeros(len(chosen), np.int64)
        place[allocates] = [places.setdefault(origin, len(places)) for origin in origins]
        is_backward = np.array([bool(each and each.numbers["is_backward"]) for each in places], bool)[place]
        lines = np.array([each.numbers["source_line"] if each else 0 for each in places], np.int32)
        numbers = {
            "event_idx": self._events + np.arange(len(chosen), dtype=np.int64),
            "timestamp": chosen["host_start_ns"],
            "address": chosen["address"],
            "size": chosen["bytes"],
            "held_bytes": held,
            "source_line": lines[place],
            "is_backward": is_backward,
            "process_idx": np.full(len(chosen), self._process_idx, np.int32),
            "pcore_idx": self._cores(chosen),
        }
        self._events += len(chosen)
        texts = {
            name: self._pools[name].codes(each.texts[name] if each else None for each in places)[place]
            for name in _PLACE
        }
        texts["kind"] = self._pools["kind"].codes_by(chosen["kind"], EVENT_KINDS.get)
        texts["framework_name"] = self._pools["framework_name"].codes_by(
            chosen["name"], lambda number: definitions.names.get(number) or None
        )
        texts["category"] = self._pools["category"].codes(CATEGORIES)[_category(chosen, is_backward)]
        return self._pools.table(numbers, texts)

    def _cores(self, chosen: Table) -> Ints:
        cores: Ints = (chosen["device"].astype(np.int64) + self._first_core) * self._logical_core_size
        return cores


def _category(chosen: Table, is_backward: Bools) -> Ints:
    """What each tensor is by the place where its memory was taken, as a place in `CATEGORIES`."""
    conditions = [
        chosen["kind"] != ALLOCATE,
        (chosen["flags"] & IN_OPTIMIZER) != 0,
        is_backward,
        chosen["module"] != 0,
    ]
    return np.select(conditions, range(len(conditions)), len(conditions))
