"""A program as it would run if every tile had a buffer of its own: nothing waits for memory to be free.

A wait is taken out where a row only waits to overwrite what another one still reads (or has written), as
register renaming does in a processor. What reads a value waits for its writer as before. That is what double
buffering gives where there is room for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Ints, Mask
from neuron_tools.backend.allocate import ALIGNMENT
from neuron_tools.frozen import frozen
from neuron_tools.records.program import READ_COLUMNS, Flag, Memory, Program
from neuron_tools.simulator.builder import ENGINE_COUNT, ProgramBuilder
from neuron_tools.simulator.errors import ProgramError

Edges = tuple[Ints, Ints]  # rows, and the producers that they wait for: a row, or rows + a DMA

CELL_BYTES, GROUP_PARTITIONS = ALIGNMENT[Memory.SBUF], 32
MOST_CELLS = 1 << 16
_ON_CHIP = (int(Memory.SBUF), int(Memory.PSUM))


@frozen
class _Accesses:
    """Tiles that each row reads and writes; a trigger's are those of its DMA. -1 = none, or not known.

    Attributes:
        reads: (rows, READ_COLUMNS).
        writes: (rows,).
        known: (rows,) whether `reads` has all that is read on chip.
        tensor_read, tensor_written: (rows,) tensor in HBM of a load, of a store; -1 = none.
    """

    reads: Ints
    writes: Ints
    known: Mask
    tensor_read: Ints
    tensor_written: Ints


def with_own_buffers(program: Program) -> Program:
    """The program without waits for memory to be free; itself where its waits cannot be told apart."""
    edges = recorded_edges(program)
    if edges is None or not len(program.tiles):
        return program
    accesses = _accesses(program)
    false = _only_reuses(program, accesses, *edges)
    if not false.any():
        return program
    kept = edges[0][~false], edges[1][~false]
    try:
        return ordered_by(program, [kept, *value_dependencies(program)])
    except ProgramError:
        return program  # its rows are not in an order of execution


def reused_places(program: Program, edges: Edges, memory: Memory) -> Mask:
    """Which recorded waits are only for a place in a memory that another row's value held."""
    written = _accesses(program).writes[edges[0]]
    here = (written >= 0) & (program.tiles["memory"][np.maximum(written, 0)] == int(memory))
    reused: Mask = here & _only_reuses(program, _accesses(program), *edges)
    return reused


def recorded_edges(program: Program) -> Edges | None:
    """What each row waits for; None where a semaphore counts several streams."""
    table, dmas = program.instructions, program.dmas
    count = len(table)
    signals = np.flatnonzero(table["signal"] >= 0)
    triggers = np.flatnonzero(table["dma"] >= 0)
    done = triggers[dmas["semaphore"][table["dma"][triggers]] >= 0]
    moved = table["dma"][done]
    if len(done) and np.any(dmas["increment"][moved] != 1):
        return None
    semaphore = np.concatenate([table["signal"][signals], dmas["semaphore"][moved]]).astype(np.int64)
    producer = np.concatenate([signals, count + moved.astype(np.int64)])
    at = np.concatenate([signals, done])
    stream = np.concatenate(
        [table["engine"][signals].astype(np.int64), ENGINE_COUNT + dmas["queue"][moved].astype(np.int64)]
    )
    order = np.lexsort((at, semaphore))
    semaphore, producer, stream = semaphore[order], producer[order], stream[order]
    if np.any((semaphore[1:] == semaphore[:-1]) & (stream[1:] != stream[:-1])):
        return None
    waiting = table["wait_count"].astype(np.int64)
    rows = np.repeat(np.arange(count), waiting)
    first = np.repeat(table["first_wait"] - (np.cumsum(waiting) - waiting), waiting)
    waits = program.waits[first + np.arange(len(rows))]
    place = np.searchsorted(semaphore, waits["semaphore"]) + waits["value"] - 1
    inside = np.clip(place, 0, max(0, len(semaphore) - 1))
    if len(rows) and (
        not len(semaphore) or np.any(semaphore[inside] != waits["semaphore"]) or np.any(inside != place)
    ):
        return None
    return rows, producer[inside] if len(rows) else np.zeros(0, np.int64)


def _accesses(program: Program) -> _Accesses:
    table, dmas = program.instructions, program.dmas
    reads = np.stack([table[column] for column in READ_COLUMNS], axis=1).astype(np.int64)
    writes = table["destination"].astype(np.int64)
    known = (table["source"] >= 0) | ~np.isin(table["source_memory"], _ON_CHIP)
    adds = (table["flags"] & int(Flag.ACCUMULATE)) != 0
    reads[:, 1] = np.where(adds & (reads[:, 1] < 0), writes, reads[:, 1])
    tensor_read, tensor_written = np.full(len(table), -1, np.int64), np.full(len(table), -1, np.int64)
    triggers = np.flatnonzero(table["dma"] >= 0)
    moved = dmas[table["dma"][triggers]]
    loads = np.isin(moved["destination_memory"], _ON_CHIP)
    stores = np.isin(moved["source_memory"], _ON_CHIP)
    reads[triggers] = -1
    reads[triggers, 0] = np.where(stores, moved["tile"], -1)
    writes[triggers] = np.where(loads & ~stores, moved["tile"], -1)
    known[triggers] = ~stores | (moved["tile"] >= 0)
    tensor_read[triggers] = np.where(~stores, moved["tensor"], -1)
    tensor_written[triggers] = np.where(~loads, moved["tensor"], -1)
    return _Accesses(reads, writes, known, tensor_read, tensor_written)


def _only_reuses(program: Program, accesses: _Accesses, rows: Ints, producers: Ints) -> Mask:
    """Edges of which the row overwrites what the producer reads or writes, and reads nothing of it."""
    table, count = program.instructions, len(program.instructions)
    trigger = np.zeros(max(1, len(program.dmas)), np.int64)
    trigger[table["dma"][table["dma"] >= 0]] = np.flatnonzero(table["dma"] >= 0)
    by = np.where(producers < count, producers, trigger[np.maximum(producers - count, 0)])
    reuses = _overlap(program, accesses.writes[rows], accesses.writes[by])
    takes = (accesses.tensor_read[rows] >= 0) & (accesses.tensor_read[rows] == accesses.tensor_written[by])
    for operand in range(accesses.reads.shape[1]):
        reuses |= _overlap(program, accesses.writes[rows], accesses.reads[by, operand])
        takes |= _overlap(program, accesses.reads[rows, operand], accesses.writes[by])
    false: Mask = reuses & ~takes & accesses.known[rows]
    return false


def _overlap(program: Program, one: Ints, other: Ints) -> Mask:
    """Whether pairs of tiles share memory; never where one is -1."""
    tiles = program.tiles
    first, second = tiles[np.maximum(one, 0)], tiles[np.maximum(other, 0)]
    shared: Mask = (one >= 0) & (other >= 0) & (first["memory"] == second["memory"])
    for start, length in (("address", "bytes_per_partition"), ("start_partition", "partitions")):
        low, high = first[start].astype(np.int64), second[start].astype(np.int64)
        shared &= (low < high + second[length]) & (high < low + first[length])
    return shared


def value_dependencies(program: Program) -> list[Edges]:
    """What each row waits for because of values alone: on chip, and through tensors in HBM."""
    accesses = _accesses(program)
    return [_value_edges(program, accesses), _tensor_edges(program, accesses)]


def _value_edges(program: Program, accesses: _Accesses) -> Edges:
    """Reads of on-chip memory and the writes that they take their values from."""
    from neuron_profile.analysis.whatif.buffer_kernel import NOTHING, true_dependencies

    table, tiles = program.instructions, program.tiles
    cells = np.zeros((len(tiles), 4), np.int64)
    end = tiles["address"].astype(np.int64) + tiles["bytes_per_partition"]
    of_psum = np.where(tiles["memory"] == int(Memory.PSUM), MOST_CELLS // 2, 0)
    cells[:, 0] = tiles["address"] // CELL_BYTES + of_psum
    cells[:, 1] = -(-end // CELL_BYTES) + of_psum
    cells[:, 2] = tiles["start_partition"] // GROUP_PARTITIONS
    cells[:, 3] = -(-(tiles["start_partition"].astype(np.int64) + tiles["partitions"]) // GROUP_PARTITIONS)
    producers = np.where(table["dma"] >= 0, len(table) + table["dma"].astype(np.int64), np.arange(len(table)))
    most = 4 * len(table)
    while True:
        found = np.zeros((most, 2), np.int64)
        writer = np.full((int(cells[:, 3].max()), int(cells[:, 1].max())), NOTHING, np.int64)
        count = int(true_dependencies(accesses.reads, accesses.writes, producers, cells, writer, found))
        if count <= most:
            return found[:count, 0], found[:count, 1]
        most = count


def _tensor_edges(program: Program, accesses: _Accesses) -> Edges:
    """Loads of tensors that the program itself stores, and the last store of each queue before them."""
    table, count = program.instructions, len(program.instructions)
    stored = np.unique(accesses.tensor_written[accesses.tensor_written >= 0])
    loads = np.flatnonzero(np.isin(accesses.tensor_read, stored) & (accesses.tensor_read >= 0))
    rows, producers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for tensor in np.unique(accesses.tensor_read[loads]):
        stores = np.flatnonzero(accesses.tensor_written == tensor)
        here = loads[accesses.tensor_read[loads] == tensor]
        queues = program.dmas["queue"][table["dma"][stores]]
        for queue in np.unique(queues):
            on_queue = stores[queues == queue]
            place = np.searchsorted(on_queue, here) - 1
            rows.append(here[place >= 0])
            producers.append(count + table["dma"][on_queue[place[place >= 0]]].astype(np.int64))
    return np.concatenate(rows), np.concatenate(producers)


def ordered_by(program: Program, edges: list[Edges]) -> Program:
    """The program with these dependencies alone.

    Raises:
        ProgramError: A row would wait for one that comes after it.
    """
    builder = ProgramBuilder(program.name, program.target)
    for queue in program.queues:
        builder.queue(queue.name, queue.engine, queue.kind)
    table, dmas = program.instructions.copy(), program.dmas.copy()
    table["signal"], dmas["semaphore"], dmas["increment"] = -1, -1, 0
    builder.instructions(table, dmas)
    count = len(table)
    for rows, producers in edges:
        builder.depend(rows, np.where(producers < count, producers, count - 2 - producers))
    ordered = builder.finish()
    return replace(
        program, instructions=ordered.instructions, dmas=ordered.dmas, waits=ordered.waits,
        semaphore_count=ordered.semaphore_count,
    )  # fmt: skip
