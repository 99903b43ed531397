"""A kernel as it would run if it kept in SBUF what it loads again and again: later loads of it are gone.

Who read what was loaded again reads what was loaded first. All tiles get their places as the back end gives
them, the transfers that remain take turns at the queues, and nothing waits for what is gone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.whatif.own_buffers import (
    Edges,
    recorded_edges,
    reused_places,
    value_dependencies,
)
from neuron_profile.analysis.whatif.reordered import Uses, in_order, in_turn, moved_tiles, reuses, triggers
from neuron_tools.arrays import Ints, Mask
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import TILE_COLUMNS, Memory, Program
from neuron_tools.simulator import simulate
from neuron_tools.simulator.cost_scale import CostScale
from neuron_tools.simulator.errors import ProgramError

MOST_ROWS = 200_000
"""Rows of a program above which nothing is left out: the walk over its rows is not compiled."""
TOLERANCE = 0.02
"""By how much a program with its own rows in new places may take another time than it took."""


@frozen
class _Kept:
    """What is loaded once.

    Attributes:
        gone: (rows,) whether the row starts a load that falls away.
        dma: (DMAs,) the first load of the same; itself for all others.
        tile: (tiles,) the tile of that load; itself for all others.
    """

    gone: Mask
    dma: Ints
    tile: Ints


def with_resident_tensors(
    program: Program, core: NeuronCore, scale: CostScale, tensors: Mask
) -> tuple[Program, CostScale] | None:
    """The program with each of these tensors loaded once, and the factors on the costs of its rows.

    Args:
        tensors: (tensors,) which.

    Returns:
        None where they cannot be kept: loaded in other pieces each time, changed where they lie, too large;
        or where places as the back end gives them do not explain the time that the program takes.
    """
    if len(program.instructions) > MOST_ROWS or (edges := recorded_edges(program)) is None:
        return None
    kept = _kept(program, tensors)
    if not kept.gone.any():
        return None
    try:
        if not _explains(program, core, edges):
            return None
        return _without(program, core, scale, edges, kept)
    except ProgramError:
        return None


def _explains(program: Program, core: NeuronCore, edges: Edges) -> bool:
    """Whether the program as it is, in such places, takes the time that it takes."""
    nothing = np.zeros(len(program.instructions), bool)
    as_they_are = _Kept(nothing, np.arange(len(program.dmas)), np.arange(len(program.tiles)))
    again, _ = _without(program, core, CostScale.unchanged(program), edges, as_they_are)
    before_ps, after_ps = (simulate(each, core).duration_ps for each in (program, again))
    return bool(abs(after_ps - before_ps) <= TOLERANCE * before_ps)


def _kept(program: Program, tensors: Mask) -> _Kept:
    """What the loads of these tensors come down to; those that do not match the first ones stay."""
    table, dmas = program.instructions, program.dmas
    dma, tile = np.arange(len(dmas)), np.arange(len(program.tiles))
    gone = np.zeros(len(table), bool)
    writers = _writers(program)
    rows = np.flatnonzero(table["dma"] >= 0)
    moved = table["dma"][rows]
    is_load = dmas["destination_memory"][moved] == int(Memory.SBUF)
    for tensor in np.flatnonzero(tensors).tolist():
        here = rows[is_load & (dmas["tensor"][moved] == tensor)]
        loads = table["dma"][here].astype(np.int64)
        first = _first_of(dmas["bytes"][loads].astype(np.int64), program.tensors[tensor].byte_count)
        if first is None or not _same_tiles(dmas["tile"][loads], first, writers):
            continue
        dma[loads] = loads[first]
        tile[dmas["tile"][loads]] = dmas["tile"][loads[first]]
        gone[here[first < np.arange(len(here))]] = True
    return _Kept(gone, dma, tile)


def _first_of(sizes: Ints, whole: int) -> Ints | None:
    """(loads,) which of the first ones each load repeats; None where it is other pieces each time."""
    pieces = int(np.searchsorted(np.cumsum(sizes), whole)) + 1
    if pieces >= len(sizes) or int(sizes[:pieces].sum()) != whole:
        return None
    first = np.arange(len(sizes)) % pieces
    return first if np.array_equal(sizes, sizes[first]) else None


def _same_tiles(tiles: Ints, first: Ints, writers: Ints) -> bool:
    """Whether each tile always holds the same, and nothing but these loads writes it."""
    if np.any(tiles < 0):
        return False
    pairs = np.unique(np.stack([tiles.astype(np.int64), tiles[first].astype(np.int64)], axis=1), axis=0)
    loads = np.bincount(tiles, minlength=len(writers))
    return len(np.unique(pairs[:, 0])) == len(pairs) and bool(np.all(writers[tiles] == loads[tiles]))


def _writers(program: Program) -> Ints:
    """(tiles,) rows that write each."""
    table, dmas = program.instructions, program.dmas
    loaded = dmas["tile"][(dmas["destination_memory"] == int(Memory.SBUF)) & (dmas["tile"] >= 0)]
    written = table["destination"][table["destination"] >= 0]
    return np.bincount(np.concatenate([loaded, written]), minlength=len(program.tiles))


def _without(
    program: Program, core: NeuronCore, scale: CostScale, edges: Edges, kept: _Kept
) -> tuple[Program, CostScale]:
    """The program without the loads that are gone.

    Raises:
        ProgramError: Its tiles do not fit, or its rows wait for each other.
    """
    values = np.array(sorted(set(_waits(program, edges, kept))), np.int64).reshape(-1, 2)
    said = in_turn(program, values, _said(program, values), kept.gone)
    places = np.array(list(reuses(program, core, _uses(program, kept), said)), np.int64).reshape(-1, 2)
    waits = np.concatenate([values, places])
    turns = np.arange(len(program.instructions), dtype=np.float64)
    return in_order(program, scale, in_turn(program, waits, turns, kept.gone), waits)


def _waits(program: Program, edges: Edges, kept: _Kept) -> Iterator[tuple[int, int]]:
    """What the remaining rows wait for, but for a place in SBUF."""
    count = len(program.instructions)
    of_place = reused_places(program, edges, Memory.SBUF)
    for rows, producers in ((edges[0][~of_place], edges[1][~of_place]), *value_dependencies(program)):
        is_dma = producers >= count
        first = np.where(is_dma, count + kept.dma[np.where(is_dma, producers - count, 0)], producers)
        for row, producer in zip(rows.tolist(), first.tolist()):
            if not kept.gone[row]:
                yield row, producer


def _said(program: Program, waits: Ints) -> npt.NDArray[np.float64]:
    """(rows,) when the kernel says a row: a load just before the first row that waits for it."""
    times = np.arange(len(program.instructions), dtype=np.float64)
    by, is_load = triggers(program), program.instructions["dma"] >= 0
    is_load[is_load] = program.dmas["destination_memory"][program.instructions["dma"][is_load]] == int(
        Memory.SBUF
    )
    first = np.full(len(times), np.inf)
    np.minimum.at(first, by[waits[:, 1]], times[waits[:, 0]])
    return np.where(is_load & np.isfinite(first), first - 0.5, times)


def _uses(program: Program, kept: _Kept) -> Uses:
    """Which of the remaining rows touch which tiles in SBUF."""
    table, tiles = program.instructions, program.tiles
    moved = moved_tiles(program)
    uses = []
    for column in (*(table[name] for name in TILE_COLUMNS), moved):
        tile = np.where(column >= 0, kept.tile[np.maximum(column, 0)], -1)
        rows = np.flatnonzero((tile >= 0) & ~kept.gone)
        rows = rows[tiles["memory"][tile[rows]] == int(Memory.SBUF)]
        uses.append(np.stack([rows, tile[rows]], axis=1))
    found = np.unique(np.concatenate(uses), axis=0)
    return Uses(found[:, 0], found[:, 1], tiles["bytes_per_partition"].astype(np.int64))
