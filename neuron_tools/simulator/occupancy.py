"""SBUF and PSUM occupancy over time: which tiles live when, and how full the memories get."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Memory, Program
from neuron_tools.records.simulation import Simulation

SBUF_SAMPLED_PARTITIONS = (0, 32, 64, 96)
"""Partitions whose use the `SbufUsage` table of the profile schema shows."""


class OccupancySamples(NamedTuple):
    """Share of a memory in use after each change.

    Attributes:
        time_ps: (samples,) int64, ascending; each sample holds until the next.
        used: (samples, groups) float64 in [0, 1]. Groups are the partitions 0, 32, 64 and 96 of SBUF, or
            the banks of PSUM (over all partitions).
    """

    time_ps: Ints
    used: npt.NDArray[np.float64]


def tile_lifetimes(program: Program, simulation: Simulation) -> tuple[Ints, Ints]:
    """(begin_ps, end_ps) of every tile: start of its first use to completion of its last.

    The use by a DMA lasts from its trigger to its completion. Tiles never used get (0, 0). Shapes (tiles,).
    """
    tiles, dma = program.tiles, program.instructions["dma"]
    used = (tiles["first_use"] >= 0) & (tiles["last_use"] >= 0)
    finish = simulation.end_ps.copy()
    triggers = np.flatnonzero(dma >= 0)
    finish[triggers] = np.maximum(finish[triggers], simulation.dma_end_ps[dma[triggers]])
    begin = np.zeros(len(tiles), np.int64)
    end = np.zeros(len(tiles), np.int64)
    begin[used] = simulation.start_ps[tiles["first_use"][used]]
    end[used] = np.maximum(finish[tiles["last_use"][used]], begin[used])
    loads = program.dmas["tile"]
    by_dma = loads >= 0
    np.maximum.at(end, loads[by_dma], simulation.dma_end_ps[by_dma])
    return begin, end


def sbuf_occupancy(program: Program, simulation: Simulation, core: NeuronCore) -> OccupancySamples:
    """Use of SBUF at the sampled partitions."""
    tiles = program.tiles
    at = np.array(SBUF_SAMPLED_PARTITIONS)
    first = tiles["start_partition"].astype(np.int64)[:, None]
    last = first + tiles["partitions"].astype(np.int64)[:, None]
    covered = (first <= at) & (at < last)
    sizes = covered * tiles["bytes_per_partition"].astype(np.int64)[:, None]
    return _samples(program, simulation, Memory.SBUF, sizes, core.sbuf_bytes_per_partition)


def psum_occupancy(program: Program, simulation: Simulation, core: NeuronCore) -> OccupancySamples:
    """Use of each bank of PSUM, over all partitions."""
    tiles = program.tiles
    bank = core.psum_bank_bytes
    low = np.arange(core.psum_banks, dtype=np.int64) * bank
    begin = tiles["address"].astype(np.int64)[:, None]
    end = begin + tiles["bytes_per_partition"][:, None]
    inside = np.clip(np.minimum(end, low + bank) - np.maximum(begin, low), 0, None)
    sizes = inside * tiles["partitions"].astype(np.int64)[:, None]
    return _samples(program, simulation, Memory.PSUM, sizes, bank * core.sbuf_partitions)


def _samples(
    program: Program, simulation: Simulation, memory: Memory, sizes: Ints, capacity: int
) -> OccupancySamples:
    """Running sums of tile sizes at the times they come and go; sharing an address is not counted twice
    beyond the capacity."""
    begin, end = tile_lifetimes(program, simulation)
    rows = np.flatnonzero((program.tiles["memory"] == memory) & (end > begin))
    time = np.concatenate([begin[rows], end[rows]])
    change = np.concatenate([sizes[rows], -sizes[rows]])
    order = np.argsort(time, kind="stable")
    time, running = time[order], np.cumsum(change[order], axis=0)
    last = np.append(np.diff(time) > 0, True)[: len(time)]
    return OccupancySamples(time[last], np.clip(running[last] / capacity, 0.0, 1.0))
