"""A kernel as it would run if it spilled nothing: its work in tiles of which two fit SBUF.

A tile that is too large for SBUF is cut. Each part is made, waits for what all of it gives (a sum, say), and
is then used. Tiles get their places as the back end gives them; what remains waits for its own loads, its
values and its places.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.whatif.kernel_lines import kernel_lines
from neuron_profile.analysis.whatif.own_buffers import Edges, value_dependencies
from neuron_profile.analysis.whatif.reordered import Uses, in_order, in_turn, moved_tiles, reuses, triggers
from neuron_profile.analysis.whatif.rescheduled import rescheduled
from neuron_profile.analysis.whatif.spills import spills
from neuron_tools.arrays import Floats, Ints
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import TILE_COLUMNS, Memory, Program
from neuron_tools.simulator.cost_scale import CostScale
from neuron_tools.simulator.errors import ProgramError

MOST_ROWS = 200_000
"""Rows of a program above which nothing is cut: the walk over its dependencies is not compiled."""
RESIDENT = 2
"""Parts in SBUF at a time: one that is made, one that is used."""
LEAST = 1e-6
"""What puts a row before others of its time."""


@frozen
class _Pieces:
    """What is saved and loaded back, piece by piece, in the order in which it is saved.

    Attributes:
        saves, reloads: (pieces,) rows that start the transfers.
        part: (pieces,) the part that each belongs to.
        place: (pieces,) its place in the part.
        length: (pieces,) pieces of the part.
        size_bytes: (pieces,) bytes per partition.
    """

    saves: Ints
    reloads: Ints
    part: Ints
    place: Ints
    length: Ints
    size_bytes: Ints


@frozen
class _Roles:
    """What each row is for; (rows,) arrays.

    Attributes:
        makes: The last piece that the row is made from, or makes; -1 = none.
        uses: The last piece that the row takes from where it was kept; -1 = none.
    """

    makes: Ints
    uses: Ints


def with_fitting_tiles(program: Program, core: NeuronCore, scale: CostScale) -> tuple[Program, CostScale]:
    """The program without its kernel's spills, and the factors on the costs of its rows.

    Where nothing can be cut, as in what a compiler made, spills cost nothing instead.
    """
    chosen = spills(program)
    if not chosen.any():
        return program, scale
    for_nothing = CostScale(np.ones(len(program.instructions)), np.where(chosen, 0.0, 1.0))
    if kernel_lines(program) is not None and len(program.instructions) <= MOST_ROWS:
        pieces = _pieces(program, chosen, core.sbuf_bytes_per_partition)
        if pieces is not None:
            try:
                return _cut(program, core, scale, pieces)
            except ProgramError:
                pass  # its rows depend on each other in another way
    return program, scale.times(for_nothing)


def _pieces(program: Program, chosen: npt.NDArray[np.bool_], sbuf_bytes: int) -> _Pieces | None:
    """The pieces of all tensors; None where they are not loaded back as they were saved."""
    table, dmas = program.instructions, program.dmas
    rows = np.flatnonzero(table["dma"] >= 0)
    rows = rows[chosen[table["dma"][rows]]]
    moved = dmas[table["dma"][rows]]
    is_save = moved["destination_memory"] == int(Memory.HBM)
    size = (moved["bytes"] // np.maximum(moved["partitions"], 1)).astype(np.int64)
    found: list[tuple[Ints, ...]] = []
    parts = 0
    for tensor in dict.fromkeys(moved["tensor"][is_save].tolist()):
        saved, loaded = (np.flatnonzero((moved["tensor"] == tensor) & side) for side in (is_save, ~is_save))
        if not np.array_equal(size[saved], size[loaded]):
            return None
        cuts = 1
        while RESIDENT * int(size[saved].sum()) > cuts * sbuf_bytes and cuts < len(saved):
            cuts *= 2
        lengths = np.array([len(each) for each in np.array_split(saved, cuts)])
        place = np.concatenate([np.arange(length) for length in lengths])
        part = np.repeat(np.arange(parts, parts + cuts), lengths)
        found.append((rows[saved], rows[loaded], part, place, np.repeat(lengths, lengths), size[saved]))
        parts += cuts
    return _Pieces(*map(np.concatenate, zip(*found))) if found else None


def _cut(program: Program, core: NeuronCore, scale: CostScale, pieces: _Pieces) -> tuple[Program, CostScale]:
    """The program with its rows in the order of the parts, without what saves and loads back.

    Raises:
        ProgramError: The rows have no such order, or their tiles no room.
    """
    producers = _by_row(program, value_dependencies(program))
    roles = _roles(program, producers, pieces)
    gone = np.zeros(len(program.instructions), bool)
    gone[pieces.saves] = gone[pieces.reloads] = True
    values = np.array(list(_kept(program, producers, roles, pieces)), np.int64).reshape(-1, 2)
    times = _times(program, producers, roles, pieces)
    is_use = roles.uses >= 0
    said = in_turn(program, values, np.where(is_use, np.floor(times) - LEAST, times), gone)
    uses = _buffers(program, producers, roles, pieces)
    places = np.array(list(reuses(program, core, uses, said)), np.int64).reshape(-1, 2)
    edges = np.concatenate([values, places])
    placed, order = rescheduled(program, core, edges, said)
    return in_order(placed, scale, order, edges)


Producers = list[list[int]]
"""Of each row what it waits for: a row, or rows + a DMA."""


def _by_row(program: Program, edges: list[Edges]) -> Producers:
    found: Producers = [[] for _ in range(len(program.instructions))]
    for rows, producers in edges:
        for row, producer in zip(rows.tolist(), producers.tolist()):
            found[row].append(producer)
    return found


def _roles(program: Program, producers: Producers, pieces: _Pieces) -> _Roles:
    count, by = len(producers), triggers(program).tolist()
    none = len(pieces.saves)
    first, uses = np.full(count, none, np.int64), np.full(count, -1, np.int64)
    first[pieces.saves], uses[pieces.reloads] = np.arange(none), np.arange(none)
    for row in range(count - 1, -1, -1):
        for producer in producers[row]:
            first[by[producer]] = min(first[by[producer]], first[row])
    makes = np.where(first < none, first, -1)
    for row in range(count):
        for producer in producers[row]:
            makes[row] = max(makes[row], makes[by[producer]])
            uses[row] = max(uses[row], uses[by[producer]])
    return _Roles(makes, uses)


def _times(program: Program, producers: Producers, roles: _Roles, pieces: _Pieces) -> Floats:
    """(rows,) when a row has its turn, in parts: a part is used while the next one is made."""
    when = pieces.part + pieces.place / pieces.length
    made = np.where(roles.makes >= 0, when[np.maximum(roles.makes, 0)], np.inf)
    times = np.where(roles.uses >= 0, 1 + when[np.maximum(roles.uses, 0)], made)
    by = triggers(program).tolist()
    for row in range(len(producers) - 1, -1, -1):
        for producer in producers[row]:
            if not np.isfinite(made[by[producer]]) and roles.uses[by[producer]] < 0:
                times[by[producer]] = min(times[by[producer]], times[row])
    return times


def _kept(
    program: Program, producers: Producers, roles: _Roles, pieces: _Pieces
) -> Iterator[tuple[int, int]]:
    """What rows wait for: a piece where it was made, and of what all pieces give, that of their own part."""
    by, count = triggers(program).tolist(), len(producers)
    save_of = dict(zip(pieces.reloads.tolist(), pieces.saves.tolist()))
    gone = {*pieces.saves.tolist(), *pieces.reloads.tolist()}
    part = np.append(pieces.part, -1)

    @cache
    def of_part(producer: int, own: int) -> list[int]:
        found, seen, open_ones = [], set(), [producer]
        while open_ones:
            each = open_ones.pop()
            row = by[each]
            if row in seen:
                continue
            seen.add(row)
            if roles.uses[row] >= 0 or part[roles.makes[row]] <= own:
                found.append(each)
            else:
                open_ones += producers[row]
        return found

    for row in range(count):
        if row in gone:
            continue
        for producer in producers[row]:
            if by[producer] in save_of:
                yield from ((row, made) for made in producers[save_of[by[producer]]])
            elif roles.uses[row] >= 0:
                yield from ((row, each) for each in of_part(producer, int(part[roles.uses[row]])))
            else:
                yield row, producer


def _buffers(program: Program, producers: Producers, roles: _Roles, pieces: _Pieces) -> Uses:
    """The parts, which come first, and all tiles but those that pieces were loaded back to.

    A piece is written where it is kept; who reads it after that reads it there.
    """
    table, tiles = program.instructions, program.tiles
    moved = moved_tiles(program)
    parts = int(pieces.part.max()) + 1
    reloaded = set(moved[pieces.reloads].tolist())
    gone = {*pieces.saves.tolist(), *pieces.reloads.tolist()}
    saved: dict[int, tuple[int, int]] = {}
    uses: set[tuple[int, int]] = set()
    for save, part in zip(pieces.saves.tolist(), pieces.part.tolist()):
        made = [each for each in producers[save] if each < len(producers)]
        saved[int(moved[save])] = max(made, default=save), part
        uses.update((each, part) for each in made)
    for column in (*(table[name] for name in TILE_COLUMNS), moved):
        for row in np.flatnonzero(column >= 0).tolist():
            tile = int(column[row])
            if row in gone or tiles["memory"][tile] != int(Memory.SBUF):
                continue
            since, part = saved.get(tile, (row, 0))
            if tile in reloaded:
                uses.add((row, int(pieces.part[roles.uses[row]])))
            else:
                uses.add((row, part if row > since else parts + tile))
    sizes = np.zeros(parts + len(tiles), np.int64)
    np.add.at(sizes, pieces.part, pieces.size_bytes)
    sizes[parts:] = tiles["bytes_per_partition"]
    rows, buffers = np.array(sorted(uses), np.int64).T
    return Uses(rows, buffers, sizes)
