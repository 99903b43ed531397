"""Loops are split into their nests, and small operations of several turns become one.

In traces of fused and plain attention on Trn2 a loop over tiles of queries has become several, one after
another: products with their maxima, exponentials with their sums, transposes, products, results. The names in
the debug table show it, and on each engine all turns of one run before those of the next, save what has
nothing else to do. A loop that holds tiles in PSUM is split four turns at a time, half as many as there are
banks; one that does not is split for all its turns (the plain kernel's softmax: eight at a sequence of
1,024). Maxima, sums and reciprocals of a row, one or a few elements a partition, then run once for all of
these turns. Reductions of 512 columns are never joined.

Split is the innermost loop that has loops inside: each of these is a part, and so are the statements between
two of them. Fewer turns are taken where their tiles do not fit in SBUF or PSUM; a loop whose turns need each
other stays as written, and so does every loop of a generation of which there are no traces.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import BUFFER, FIRST_WRITE, ITERATION, KIND, SCRATCH, SITE, Body
from neuron_tools.backend.joined import Joined
from neuron_tools.backend.kinds import Kind
from neuron_tools.backend.order import data_edges
from neuron_tools.backend.queues import TRACED_GENERATION
from neuron_tools.backend.spill import live_banks, live_bytes, usable_bytes
from neuron_tools.frozen import frozen
from neuron_tools.records.program import Memory, Opcode

MOST_ELEMENTS = 16
"""Elements of a partition that a small operation reads and writes at most."""
_MOST_TURNS = 512
_JOINED = (Opcode.TENSOR_REDUCE, Opcode.RECIPROCAL, Opcode.TENSOR_SCALAR, Opcode.ACTIVATE)
_OUTSIDE = -1


def split_loops(body: Body) -> Body:
    """The body with its loops split."""
    if body.core.generation != TRACED_GENERATION or not body.is_open:
        return body
    turns = _turns(body)
    if turns is None:
        return body
    bytes_before, banks_before = live_bytes(body), live_banks(body)
    edges = data_edges(body)
    for most in (_MOST_TURNS, body.core.psum_banks // 2, 2):
        split = _split(body, turns, edges, most)
        fits = live_bytes(split) <= max(usable_bytes(body), bytes_before)
        if fits and live_banks(split) <= max(body.core.psum_banks, banks_before):
            return split
    return body


@frozen
class _Turns:
    """Where each call stands in the loops that may be split; arrays of shape (calls,).

    Attributes:
        turn: The turn of such a loop that it belongs to; -1: none.
        inner: The loop inside that it belongs to; -1: it is a statement of the loop itself.
    """

    turn: Ints
    inner: Ints


def _turns(body: Body) -> _Turns | None:
    """None where no loop has loops inside."""
    from neuron_tools.backend.fission_kernel import turns_of

    iterations = body.iterations
    if not len(iterations) or (body.rows[:, ITERATION] >= len(iterations)).any():
        return None
    enclosing, loop = iterations[:, 0], iterations[:, 1]
    nested = np.flatnonzero(enclosing >= 0)
    outer = np.unique(loop[enclosing[nested]])
    holds_outer = np.unique(loop[enclosing[nested[np.isin(loop[nested], outer)]]])
    innermost = np.setdiff1d(outer, holds_outer)
    if not len(innermost):
        return None
    turn, inner = turns_of(iterations, np.isin(np.arange(int(loop.max()) + 1), innermost))
    at = body.rows[:, ITERATION]
    inside = at >= 0
    return _Turns(np.where(inside, turn[at], _OUTSIDE), np.where(inside, inner[at], _OUTSIDE))


def _split(body: Body, turns: _Turns, edges: tuple[Ints, Ints], most: int) -> Body:
    """The body with every `most` turns, or fewer, of a loop split."""
    block = _blocks(body, turns, most)
    part = _parts(body, turns)
    before, after = edges
    order = np.lexsort((np.arange(len(body)), part, block))
    place = np.empty(len(body), np.int64)
    place[order] = np.arange(len(body))
    wrong = place[before] > place[after]
    kept = np.isin(block, block[before[wrong]]) | (turns.turn < 0)
    order = np.lexsort((np.arange(len(body)), np.where(kept, 0, part), block))
    joined = Joined(body)
    for members in _groups(body, turns, np.where(kept, _OUTSIDE, block), edges):
        if joined.may_join(members):
            joined.join(members, _kind_of_several)
    return joined.body(order) if joined.count else body.ordered_by(order)


def _blocks(body: Body, turns: _Turns, most: int) -> Ints:
    """Number of the turns that are split together, ascending over the calls. Shape (calls,)."""
    starts = np.flatnonzero(np.diff(turns.turn, prepend=-2))
    turn = turns.turn[starts]
    loop = np.where(turn[:, None] >= 0, body.iterations[np.maximum(turn, 0), :2], -2 - starts[:, None])
    first_of_loop = (np.diff(loop, axis=0, prepend=-1 - len(body)) != 0).any(axis=1)
    number = np.cumsum(first_of_loop) - 1
    first = np.flatnonzero(first_of_loop)
    holds = np.logical_or.reduceat(np.logical_or.reduceat(_touches_psum(body), starts), first)
    ordinal = np.arange(len(starts)) - first[number]
    size = np.where(holds, min(most, body.core.psum_banks // 2), most)
    size = np.minimum(size, np.diff(np.append(first, len(starts))))
    taken = np.maximum.reduceat(_bytes_of_turns(body, turns)[np.maximum(turn, 0)], first)
    while (large := (size > 1) & (size * taken > usable_bytes(body))).any():
        size = np.where(large, -(-size // 2), size)
    begins = first_of_loop | (ordinal % size[number] == 0)
    return np.repeat(np.cumsum(begins), np.diff(np.append(starts, len(body))))


def _bytes_of_turns(body: Body, turns: _Turns) -> Ints:
    """Bytes of each SBUF partition of the tiles that only one turn uses. Shape (iterations,)."""
    named = body.rows[:, FIRST_WRITE:]
    call, slot = np.nonzero(named >= 0)
    buffer, turn = body.regions[named[call, slot], BUFFER], turns.turn[call]
    first, last = np.full(len(body.buffers), len(body.iterations)), np.full(len(body.buffers), _OUTSIDE)
    np.minimum.at(first, buffer, turn)
    np.maximum.at(last, buffer, turn)
    own = (first == last) & (first >= 0) & (body.buffers.memory == int(Memory.SBUF))
    size = body.buffers.bytes_per_partition[own]
    return np.bincount(first[own], weights=size, minlength=len(body.iterations)).astype(np.int64)


def _touches_psum(body: Body) -> np.ndarray:
    named = body.rows[:, FIRST_WRITE:]
    memory = body.buffers.memory[body.regions[np.maximum(named, 0), BUFFER]]
    return np.asarray(((named >= 0) & (memory == int(Memory.PSUM))).any(axis=1))


def _parts(body: Body, turns: _Turns) -> Ints:
    """Part of its loop that each call belongs to, by the order in which parts begin. Shape (calls,)."""
    small = _small(body)
    inside = turns.turn >= 0
    loop = np.where(inside, body.iterations[np.maximum(turns.turn, 0), 1], -1).astype(np.int64)
    statement = inside & (turns.inner < 0)
    sites = int(body.rows[:, SITE].max()) + 1
    number = np.where(statement, body.rows[:, SITE], sites + turns.inner)
    key = loop * (2 * sites + int(turns.inner.max()) + 2) + number
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    by_start = np.argsort(first, kind="stable")
    plain = statement[first] & ~small[first]
    together = np.zeros(len(first), bool)  # with the part that begins before
    together[1:] = plain[by_start][1:] & plain[by_start][:-1] & (np.diff(loop[first[by_start]]) == 0)
    part = np.empty(len(first), np.int64)
    part[by_start] = np.cumsum(~together)
    return part[which.reshape(-1)]


def _groups(body: Body, turns: _Turns, block: Ints, edges: tuple[Ints, Ints]) -> list[Ints]:
    """Small statements of one line in the turns of a block, where none needs another."""
    rows = np.flatnonzero(_small(body) & _joinable(body) & (turns.inner < 0) & (block >= 0))
    if not len(rows):
        return []
    key = np.stack([block[rows], body.rows[rows, SITE], body.rows[rows, KIND]], 1)
    _, number = np.unique(key, axis=0, return_inverse=True)
    group = np.full(len(body), -1, np.int64)
    group[rows] = number.reshape(-1)
    before, after = edges
    bound = np.unique(group[before[(group[before] == group[after]) & (group[before] >= 0)]])
    by_group = rows[np.argsort(group[rows], kind="stable")]
    found = np.split(by_group, np.flatnonzero(np.diff(group[by_group])) + 1)
    found = [members for members in found if len(members) > 1 and group[members[0]] not in bound]
    return sorted(found, key=lambda members: int(members[0]))


def _small(body: Body) -> np.ndarray:
    return np.asarray(body.kind_column([_is_small(kind) for kind in body.kinds]) != 0)


def _is_small(kind: Kind) -> bool:
    if len(kind.steps) != 1 or kind.steps[0].opcode not in _JOINED:
        return False
    step = kind.steps[0]
    return step.elements <= MOST_ELEMENTS and step.source_memory is Memory.SBUF


def _joinable(body: Body) -> np.ndarray:
    """Whether every operand of each call is all of a tile in SBUF of one block."""
    buffers, regions = body.buffers, body.regions
    own = (buffers.memory == int(Memory.SBUF)) & (buffers.role == SCRATCH)
    whole = own[regions[:, BUFFER]] & body.covers_tile
    named = body.rows[:, FIRST_WRITE:]
    return np.asarray((whole[np.maximum(named, 0)] | (named < 0)).all(axis=1))


def _kind_of_several(kind: Kind, count: int) -> Kind:
    """The call that works on the tiles of `count` calls side by side."""
    step = replace(kind.steps[0], elements=kind.steps[0].elements * count)
    return replace(kind, steps=(step,), flops=kind.flops * count, tiles=kind.tiles * count)
