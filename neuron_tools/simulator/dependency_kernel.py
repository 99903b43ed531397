"""Compiled kernel that turns "row A after row B" into the fewest semaphore waits.

Imported only when a Program is finished, because importing numba costs more than small Programs do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.compiled import compiled, compiled_part
from neuron_tools.records.program import Engine

ENGINES = len(Engine)


class Producers(NamedTuple):
    """What rows may wait for. A producer is an instruction row, or rows + dma row.

    Attributes:
        stream: (rows + dmas,) stream in which it completes.
        slot: (rows + dmas,) its place among the producers that somebody waits for; -1 for the others.
        position: (slots,) its place in its stream, from 1; 0 until it has been passed.
        snapshot: (slots, streams) how far each stream is known to be complete once it is.
    """

    stream: Int32s
    slot: Ints
    position: Int32s
    snapshot: npt.NDArray[np.int32]


@compiled_part
def _add_wait(producer: int, needed: Ints, used: int, producers: Producers) -> int:
    """Add a producer to the `used` first entries of `needed` unless one implies it; drop what it implies."""
    slot = producers.slot[producer]
    stream, position = producers.stream[producer], producers.position[slot]
    for index in range(used):
        if producers.snapshot[producers.slot[needed[index]], stream] >= position:
            return used
    kept = 0
    for index in range(used):
        other = needed[index]
        if producers.snapshot[slot, producers.stream[other]] < producers.position[producers.slot[other]]:
            needed[kept] = other
            kept += 1
    needed[kept] = producer
    return kept + 1


@compiled_part
def _pass_producer(producer: int, clock: Int32s, produced: Int32s, producers: Producers) -> None:
    """Note that a producer has been passed in order, with what its engine knows then."""
    slot = producers.slot[producer]
    if slot >= 0:
        stream = producers.stream[producer]
        produced[stream] += 1
        producers.position[slot] = produced[stream]
        for other in range(clock.shape[0]):  # assigning a row takes numba two seconds more to compile
            producers.snapshot[slot, other] = clock[other]
        producers.snapshot[slot, stream] = produced[stream]


@compiled
def minimal_waits(
    engines: npt.NDArray[np.uint8],
    row_dma: Int32s,
    edge_start: Ints,
    edge_producer: Ints,
    producers: Producers,
) -> tuple[int, Ints, Ints]:
    """Keep of every row's dependencies only those that nothing earlier on its engine implies.

    A *stream* completes in order: the engines are streams 0..4, DMA queue q is stream 5 + q. Each engine
    carries a vector clock: how far into every stream it knows completion to have come. A producer's clock
    is kept (a snapshot), because waiting for it teaches the waiter all that the producer knew. O(rows +
    edges x streams).

    Args:
        engines: (rows,) engine of each instruction.
        row_dma: (rows,) DMA started by the instruction or -1.
        edge_start: (rows + 1,) edges of row r are edge_start[r] .. edge_start[r + 1].
        edge_producer: (edges,) producers.
        producers: What may be waited for, nothing passed yet; filled on the way.

    Returns:
        (count, waiting rows, producers): the kept waits. count = -1 - row if `row` depends on a producer
        that comes at or after it.
    """
    rows, streams = engines.shape[0], producers.snapshot.shape[1]
    wait_row = np.empty(edge_producer.shape[0], np.int64)
    wait_producer = np.empty(edge_producer.shape[0], np.int64)
    clocks = np.zeros((ENGINES, streams), np.int32)
    produced = np.zeros(streams, np.int32)
    needed = np.zeros(streams, np.int64)
    count = 0
    for row in range(rows):
        clock = clocks[engines[row]]
        used = 0
        for edge in range(edge_start[row], edge_start[row + 1]):
            producer = edge_producer[edge]
            position = producers.position[producers.slot[producer]]
            if position == 0:
                return -1 - row, wait_row, wait_producer
            if position > clock[producers.stream[producer]]:
                used = _add_wait(producer, needed, used, producers)
        for index in range(used):
            wait_row[count], wait_producer[count] = row, needed[index]
            count += 1
            slot = producers.slot[needed[index]]
            for stream in range(streams):
                clock[stream] = max(clock[stream], producers.snapshot[slot, stream])
        _pass_producer(row, clock, produced, producers)
        if row_dma[row] >= 0:
            _pass_producer(rows + row_dma[row], clock, produced, producers)
    return count, wait_row, wait_producer


@compiled
def tile_uses(
    source: Int32s,
    second_source: Int32s,
    destination: Int32s,
    row_dma: Int32s,
    dma_tile: Int32s,
    tile_count: int,
) -> tuple[Int32s, Int32s]:
    """First and last instruction row that touches each tile (-1 = never). Shapes (tile_count,)."""
    first = np.full(tile_count, -1, np.int32)
    last = np.full(tile_count, -1, np.int32)
    for row in range(source.shape[0]):
        for operand in range(4):
            if operand == 0:
                tile = source[row]
            elif operand == 1:
                tile = second_source[row]
            elif operand == 2:
                tile = destination[row]
            else:
                tile = dma_tile[row_dma[row]] if row_dma[row] >= 0 else np.int32(-1)
            if 0 <= tile < tile_count:
                if first[tile] < 0:
                    first[tile] = row
                last[tile] = row
    return first, last
