"""Memory in a rocpd database: each allocation and release, and the bytes allocated on each device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.distinct import distinct_rows
from neuron_tools.profile.importers.json_columns import objects_of_columns
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import Recording

CATEGORY = "memory"
_ALLOCATED, _FREED, _NEITHER = 1, -1, 0
_KINDS = {"ALLOC": _ALLOCATED, "FREE": _FREED}
_SCRATCH = "SCRATCH"
_LARGEST = 1 << 50


class RocpdMemory:
    """Gathers what was allocated and released, for the bytes held over time.

    A release does not tell how much it releases: that is what was allocated last at its address. Scratch
    memory has no address and is not counted.

    Args:
        lanes: Gives the counters.
        recording: Receives the samples.
    """

    def __init__(self, lanes: Lanes, recording: Recording) -> None:
        self._lanes = lanes
        self._recording = recording
        self._parts: list[tuple[Ints, ...]] = []

    def columns(self, rows: pa.RecordBatch, processes: Ints, devices: Ints, times: Ints) -> dict[str, Any]:
        """Columns of the spans of allocations and releases, which are kept in mind.

        Args:
            rows: With `type`, `level`, `address` and `size`.
            processes: int64, shape (rows,).
            devices: int64, shape (rows,); `NO_NUMBER` is the host.
            times: int64, shape (rows,): when they are done.
        """
        kinds, levels = rows["type"].fill_null(""), rows["level"].fill_null("")
        self._remember(rows, kinds, levels, (processes, devices, times))
        told = pc.utf8_lower(pc.binary_join_element_wise(kinds, levels, " "))
        members = {
            "bytes": rows["size"],
            "address": rows["address"],
            "device": pa.array(devices, mask=devices == NO_NUMBER),
        }
        found = {
            "name": pc.utf8_trim_whitespace(told).dictionary_encode(),
            "category": pa.repeat(CATEGORY, rows.num_rows).dictionary_encode(),
        }
        if self._recording.with_arguments:
            found["arguments_json"] = objects_of_columns(members)
        return found

    def finish(self) -> None:
        """Stages the bytes held on each device of each process."""
        if not self._parts:
            return
        columns = [np.concatenate(column) for column in zip(*self._parts)]
        process, device, time, address, kind, size = columns
        order = np.lexsort((time, address, process))
        process, device, time, address, kind, size = (column[order] for column in columns)
        is_same = np.concatenate([[False], (address[1:] == address[:-1]) & (process[1:] == process[:-1])])
        before = np.arange(len(order)) - 1
        is_freed = (kind == _FREED) & is_same & (kind[before] == _ALLOCATED)
        device = np.where(is_freed, device[before], device)
        change = np.where(kind == _ALLOCATED, size, np.where(is_freed, -size[before], 0))
        unknown = int(np.count_nonzero((kind == _FREED) & ~is_freed & (address != 0)))
        self._recording.warn(
            "Releases of memory that was allocated before the trace were not counted.", count=unknown
        )
        self._stage(process, device, time, change)

    def _remember(
        self, rows: pa.RecordBatch, kinds: pa.Array, levels: pa.Array, places: tuple[Ints, ...]
    ) -> None:
        is_counted = pc.not_equal(levels, _SCRATCH).to_numpy(zero_copy_only=False)
        signs = np.array([_KINDS.get(kind, _NEITHER) for kind in kinds.to_pylist()], np.int64)
        address, size = (
            rows[name].fill_null(0).to_numpy(zero_copy_only=False) for name in ("address", "size")
        )
        chosen = is_counted & (signs != _NEITHER)
        parts = (*places, address, signs, np.clip(size, 0, _LARGEST))
        self._parts.append(tuple(part[chosen] for part in parts))

    def _stage(self, process: Ints, device: Ints, time: Ints, change: Ints) -> None:
        different, places = distinct_rows(process, device)
        for place, (number, of_device) in enumerate(different.tolist()):
            own = np.flatnonzero((places == place) & (change != 0))
            own = own[np.argsort(time[own], kind="stable")]
            if not len(own):
                continue
            owner = "host" if of_device == NO_NUMBER else f"GPU {of_device}"
            lane = self._lanes.counter(number, owner, "memory allocated", "bytes")
            held = np.cumsum(change[own].astype(np.float64))
            self._recording.append_samples(lane, time[own], held)
