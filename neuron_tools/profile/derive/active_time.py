"""ActiveTime: the busy intervals of each engine of each core."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neuron_tools.profile.derive.busy import CODE_MASK, CORE_MASK, CORE_SHIFT, PROCESS_SHIFT, BusyTime
from neuron_tools.profile.recorded import Ints


def active_time(busy: BusyTime) -> pa.Table:
    """ActiveTime rows; intervals that touch are one, intervals of no length are left out."""
    islands = busy.engines.islands().without_empty()
    process, core, code = split_core_group(islands.group)
    return pa.table(
        {
            "start_ts": islands.start,
            "end_ts": islands.end,
            "engine": pa.DictionaryArray.from_arrays(
                pa.array(code.astype(np.int32)), pa.array(busy.engine_names.texts, pa.string())
            ),
            "pcore_idx": core,
            "duration_ns": islands.end - islands.start,
            "process_idx": process.astype(np.int32),
        }
    )


def split_core_group(group: Ints) -> tuple[Ints, Ints, Ints]:
    """Process, core and text code of group numbers made by `core_group`."""
    return group >> PROCESS_SHIFT, (group >> CORE_SHIFT) & CORE_MASK, group & CODE_MASK
