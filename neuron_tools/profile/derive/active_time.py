"""ActiveTime: the busy intervals of each engine of each core."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from neuron_tools.profile.derive.busy import BusyTime, EngineKey
from neuron_tools.profile.derive.intervals import Islands


def active_time(busy: BusyTime) -> Iterator[pa.Table]:
    """ActiveTime rows, in blocks; intervals that touch are one, intervals of no length are left out."""
    for key, islands in busy.by_engine().items():
        for block in islands:
            yield _rows(key, block.without_empty())


def _rows(key: EngineKey, islands: Islands) -> pa.Table:
    rows = len(islands)
    return pa.table(
        {
            "start_ts": islands.start,
            "end_ts": islands.end,
            "engine": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([key.engine])),
            "pcore_idx": np.full(rows, key.pcore_idx, np.int64),
            "duration_ns": islands.end - islands.start,
            "process_idx": np.full(rows, key.process_idx, np.int32),
        }
    )
