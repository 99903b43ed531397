"""A program with fewer rows: what remains takes its places, queues and turns as the back end gives them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.whatif.kernel_lines import KernelLines, ProgramWithLines
from neuron_profile.analysis.whatif.own_buffers import ordered_by
from neuron_tools.arrays import Floats, Ints
from neuron_tools.backend.allocate import ALIGNMENT
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Memory, Program
from neuron_tools.simulator.cost_scale import CostScale
from neuron_tools.simulator.errors import ProgramError


def triggers(program: Program) -> Ints:
    """(rows + DMAs,) the row that does, or starts, each."""
    count = len(program.instructions)
    done = np.arange(count + len(program.dmas))
    rows = np.flatnonzero(program.instructions["dma"] >= 0)
    done[count + program.instructions["dma"][rows]] = rows
    return done


def moved_tiles(program: Program) -> Ints:
    """(rows,) the tile that the transfer which each row starts moves; -1 of rows that start none."""
    started = program.instructions["dma"]
    tiles: Ints = np.where(started >= 0, program.dmas["tile"][np.maximum(started, 0)], -1)
    return tiles


@frozen
class Uses:
    """Which rows touch which buffers in SBUF.

    Attributes:
        row, buffer: (uses,) a row, and a buffer that it reads or writes.
        size_bytes: (buffers,) bytes per partition.
    """

    row: Ints
    buffer: Ints
    size_bytes: Ints


def reuses(program: Program, core: NeuronCore, uses: Uses, order: Ints) -> Iterator[tuple[int, int]]:
    """What rows wait for because their tile takes the place of another, as the back end gives places.

    Args:
        order: The rows as the kernel would say them.

    Raises:
        ProgramError: The tiles do not fit.
    """
    from neuron_tools.backend.allocation_kernel import NEXT, allocate

    turn = np.full(len(program.instructions), -1, np.int64)
    turn[order] = np.arange(len(order))
    count = len(uses.size_bytes)
    first, last = np.full(count, len(order), np.int64), np.full(count, -1, np.int64)
    np.minimum.at(first, uses.buffer, turn[uses.row])
    np.maximum.at(last, uses.buffer, turn[uses.row])
    members = np.flatnonzero(last >= 0)
    none = np.full(count, -1, np.int64)
    _, pairs, failed, _ = allocate(
        members[np.argsort(first[members], kind="stable")], first, last, uses.size_bytes, none,
        core.sbuf_bytes_per_partition, 0, ALIGNMENT[Memory.SBUF], NEXT, none,
    )  # fmt: skip
    if failed[0] >= 0:
        raise ProgramError("The tiles do not fit SBUF.")
    users: defaultdict[int, list[int]] = defaultdict(list)
    for row, buffer in zip(uses.row.tolist(), uses.buffer.tolist()):
        users[buffer].append(row)
    done = _completions(program)
    for tile, before in pairs.tolist():
        begins = order[first[tile]]
        yield from ((int(begins), int(done[user])) for user in users[before])


def _completions(program: Program) -> Ints:
    """(rows,) what says that a row is done: rows + a DMA for one that starts a transfer."""
    dma = program.instructions["dma"].astype(np.int64)
    return np.where(dma >= 0, len(dma) + dma, np.arange(len(dma)))


def in_turn(program: Program, edges: Ints, times: Floats, gone: npt.NDArray[np.bool_]) -> Ints:
    """The rows in an order in which each comes behind what it waits for, the earliest first.

    Raises:
        ProgramError: There is none.
    """
    by = triggers(program)
    waiting = np.bincount(edges[:, 0], minlength=len(times))
    behind: defaultdict[int, list[int]] = defaultdict(list)
    for row, producer in zip(edges[:, 0].tolist(), by[edges[:, 1]].tolist()):
        behind[producer].append(row)
    ready = [(times[row], row) for row in np.flatnonzero((waiting == 0) & ~gone).tolist()]
    heapify(ready)
    order = []
    while ready:
        _, row = heappop(ready)
        order.append(row)
        for each in behind[row]:
            waiting[each] -= 1
            if waiting[each] == 0:
                heappush(ready, (times[each], each))
    if len(order) < len(times) - int(gone.sum()):
        raise ProgramError("The rows wait for each other.")
    return np.array(order, np.int64)


def in_order(program: Program, scale: CostScale, order: Ints, edges: Ints) -> tuple[Program, CostScale]:
    """The rows that remain, in their order, with these dependencies.

    Raises:
        ProgramError: A row would wait for one that comes after it.
    """
    count = len(program.instructions)
    table = program.instructions[order]
    kept = np.unique(table["dma"][table["dma"] >= 0])
    row, dma = np.full(count, -1, np.int64), np.full(len(program.dmas), -1, np.int64)
    row[order], dma[kept] = np.arange(len(order)), np.arange(len(kept))
    table["dma"] = np.where(table["dma"] >= 0, dma[np.maximum(table["dma"], 0)], -1)
    by = edges[:, 1]
    after = np.where(by < count, row[np.minimum(by, count - 1)], len(order) + dma[np.maximum(by - count, 0)])
    dmas = program.dmas[kept]
    dmas["queue"] = _dealt(program, program.instructions["dma"], table["dma"], kept)
    smaller = replace(program, instructions=table, dmas=dmas)
    if isinstance(smaller, ProgramWithLines) and smaller.lines is not None:
        lines = smaller.lines
        own = KernelLines(lines.places, lines.instruction[order], lines.dma[kept])
        smaller = replace(smaller, lines=own)
    remaining = CostScale(scale.instructions[order], scale.dmas[kept])
    return ordered_by(smaller, [(row[edges[:, 0]], after)]), remaining


def _dealt(program: Program, before: Ints, after: Ints, kept: Ints) -> Ints:
    """(kept,) the queue of each transfer that remains: those of one engine and kind take the same turns.

    Args:
        before, after: (rows,) the transfer that each row starts, in the program and in what remains of it.
    """
    group_of = {(queue.engine, queue.kind): number for number, queue in enumerate(program.queues)}
    groups = np.array([group_of[queue.engine, queue.kind] for queue in program.queues], np.int64)
    queues = program.dmas["queue"].astype(np.int64)
    dealt = queues[kept]
    said, left = before[before >= 0], after[after >= 0]
    for group in np.unique(groups[dealt]):
        turns = queues[said[groups[queues[said]] == group]]
        mine = left[groups[queues[kept[left]]] == group]
        dealt[mine] = turns[: len(mine)]
    return dealt


def places_among_alike(*keys: npt.NDArray[Any]) -> tuple[Ints, Ints]:
    """Of rows with equal keys: (rows,) the how manieth each is, from 0, and how many there are."""
    _, group = np.unique(np.stack(keys), axis=1, return_inverse=True)
    group = group.ravel()
    counts = np.bincount(group)
    order = np.argsort(group, kind="stable")
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
    return place, counts[group]
