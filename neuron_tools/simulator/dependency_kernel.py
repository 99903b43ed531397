# numba has no types:
# mypy: disable-error-code="untyped-decorator, no-any-return"
"""Compiled kernel that turns "row A after row B" into the fewest semaphore waits.

Imported only when a Program is finished, because importing numba costs more than small Programs do.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]


@numba.njit(cache=True)
def minimal_waits(
    engines: npt.NDArray[np.uint8],
    row_dma: Int32Array,
    dma_stream: Int32Array,
    edge_start: Int64Array,
    edge_producer: Int64Array,
    snapshot_of: Int64Array,
    snapshot_count: int,
    stream_count: int,
) -> tuple[int, Int64Array, Int64Array]:
    """Keep of every row's dependencies only those that nothing earlier on its engine implies.

    A *stream* completes in order: the engines are streams 0..4, DMA queue q is stream 5 + q. Each engine
    carries a vector clock: how far into every stream it knows completion to have come. A producer's clock
    is kept (a snapshot), because waiting for it teaches the waiter all that the producer knew. O(rows +
    edges x streams).

    Args:
        engines: (rows,) engine of each instruction.
        row_dma: (rows,) DMA started by the instruction or -1.
        dma_stream: (dmas,) stream of each DMA.
        edge_start: (rows + 1,) edges of row r are edge_start[r] .. edge_start[r + 1].
        edge_producer: (edges,) producers: instruction row, or rows + dma row.
        snapshot_of: (rows + dmas,) slot of each needed producer; -1 where nobody depends on it.
        snapshot_count: Number of slots.
        stream_count: 5 + number of queues.

    Returns:
        (count, waiting rows, producers): the kept waits. count = -1 - row if `row` depends on a producer
        that comes at or after it.
    """
    rows = engines.shape[0]
    wait_row = np.empty(edge_producer.shape[0], np.int64)
    wait_producer = np.empty(edge_producer.shape[0], np.int64)
    snapshots = np.zeros((snapshot_count, stream_count), np.int32)
    clocks = np.zeros((5, stream_count), np.int32)
    produced = np.zeros(stream_count, np.int32)
    position = np.zeros(snapshot_count, np.int32)
    needed = np.zeros(stream_count, np.int64)
    count = 0
    for row in range(rows):
        engine = engines[row]
        used = 0
        for edge in range(edge_start[row], edge_start[row + 1]):
            producer = edge_producer[edge]
            slot = snapshot_of[producer]
            if position[slot] == 0:
                return -1 - row, wait_row, wait_producer
            stream = np.int64(engines[producer]) if producer < rows else np.int64(dma_stream[producer - rows])
            if position[slot] <= clocks[engine, stream]:
                continue
            known = False
            for other in range(used):
                other_slot = snapshot_of[needed[other]]
                if snapshots[other_slot, stream] >= position[slot]:
                    known = True
                    break
            if known:
                continue
            kept = 0  # drop what this producer implies
            for other in range(used):
                other_producer = needed[other]
                other_slot = snapshot_of[other_producer]
                if other_producer < rows:
                    other_stream = np.int64(engines[other_producer])
                else:
                    other_stream = np.int64(dma_stream[other_producer - rows])
                if snapshots[slot, other_stream] < position[other_slot]:
                    needed[kept] = other_producer
                    kept += 1
            needed[kept] = producer
            used = kept + 1
        for index in range(used):
            wait_row[count] = row
            wait_producer[count] = needed[index]
            count += 1
            slot = snapshot_of[needed[index]]
            for stream in range(stream_count):
                if snapshots[slot, stream] > clocks[engine, stream]:
                    clocks[engine, stream] = snapshots[slot, stream]
        slot = snapshot_of[row]
        if slot >= 0:
            produced[engine] += 1
            position[slot] = produced[engine]
            snapshots[slot] = clocks[engine]
            snapshots[slot, engine] = produced[engine]
        dma = row_dma[row]
        if dma >= 0 and snapshot_of[rows + dma] >= 0:
            slot = snapshot_of[rows + dma]
            stream = np.int64(dma_stream[dma])
            produced[stream] += 1
            position[slot] = produced[stream]
            snapshots[slot] = clocks[engine]
            snapshots[slot, stream] = produced[stream]
    return count, wait_row, wait_producer


@numba.njit(cache=True)
def tile_uses(
    source: Int32Array,
    second_source: Int32Array,
    destination: Int32Array,
    row_dma: Int32Array,
    dma_tile: Int32Array,
    tile_count: int,
) -> tuple[Int32Array, Int32Array]:
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
