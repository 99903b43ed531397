"""SBUF and PSUM occupancy: which tiles live when, and how full the memories get."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuron_tools.simulator.program import Memory, Program

Int64Array = npt.NDArray[np.int64]


class OccupancySamples(NamedTuple):
    """Occupancy after each change.

    Attributes:
        time_ps: (samples,) int64, ascending.
        bytes_used: (samples, groups) int64: bytes per partition in use in each group. Groups are partitions
            0, 32, 64 and 96 for SBUF, the banks for PSUM.
    """

    time_ps: Int64Array
    bytes_used: Int64Array


def peak_bytes_per_partition(program: Program, memory: Memory) -> tuple[int, int]:
    """(most bytes that live tiles need in any partition, instruction row at which), in table order.

    Tiles whose address ranges overlap while both live share those bytes.
    """
    rows = np.flatnonzero((program.tiles["memory"] == memory) & (program.tiles["first_use"] >= 0))
    if not len(rows):
        return 0, -1
    ends = program.tiles["address"][rows].astype(np.int64) + program.tiles["bytes_per_partition"][rows]
    most = int(np.argmax(ends))
    return int(ends[most]), int(program.tiles["first_use"][rows[most]])
