"""Two nests, one after the other, that loop alike and load the same become one.

NKIBench's swiglu on Trn1 has two nests over the same tiles of an input; each loads and turns them. Its
counters balance if the two run as one: the first one's result, 50 MB, never goes to HBM, where it would not
fit on chip, and the input is read once. Nests of unequal shape (lora) stay apart, and so do equal ones that
load nothing in common (plain attention on Trn2). No other kernel with published counters needs the rule.

Alike are loops with the same numbers of turns down to the first that holds instructions of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import FIRST_READ, ITERATION, KIND, Body
from neuron_tools.backend.order import data_edges, written_buffers
from neuron_tools.records.program import Memory


def fuse_nests(body: Body) -> Body:
    """The body with nests that loop alike and load the same run as one."""
    if not len(body) or body.ties or body.ordered or not len(body.iterations):
        return body
    nests = _Nests(body)
    for first, second in pairwise(nests.tops):
        order = nests.as_one(first, second)
        if order is not None:
            return fuse_nests(body.ordered_by(order))
    return body


@dataclass(slots=True)
class _Loop:
    """A loop of the kernel's source.

    Attributes:
        turns: How often it runs, at most.
        inside: The loops in it, in order.
        has_calls: Whether it holds instructions that are in none of those.
        rows: All calls in it, for a loop that is in no other.
    """

    turns: int = 0
    inside: list[int] = field(default_factory=list)
    has_calls: bool = False
    rows: list[int] = field(default_factory=list)


class _Nests:
    """The loops of a body."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._enclosing, self._loop = body.iterations[:, 0].tolist(), body.iterations[:, 1].tolist()
        self._turn: list[int] = []
        self._loops: dict[int, _Loop] = {}
        self._read_loops()
        self.tops = self._read_tops()

    def as_one(self, first: int, second: int) -> Ints | None:
        """The order of all calls in which two loops run as one; None where they stay apart."""
        split: set[int] = set()
        rows = [np.array(self._loops[number].rows) for number in (first, second)]
        both = np.concatenate(rows)
        alike = self._match(first, second, split) and split
        if not alike or rows[0][-1] > rows[1][0] or not self._load_the_same(rows):
            return None
        order = np.arange(len(self._body))
        span = order[both[0] : both[-1] + 1]
        span[:] = np.concatenate([np.setdiff1d(span, both), both[self._order(rows, split)]])
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        before, after = data_edges(self._body)
        return None if (place[before] > place[after]).any() else order

    def _read_loops(self) -> None:
        seen: dict[tuple[int, int], int] = {}
        for enclosing, number in zip(self._enclosing, self._loop):
            turn = seen[enclosing, number] = seen.get((enclosing, number), -1) + 1
            self._turn.append(turn)
            loop = self._loops.setdefault(number, _Loop())
            loop.turns = max(loop.turns, turn + 1)
            around = self._loops[self._loop[enclosing]].inside if enclosing >= 0 else []
            if number not in around:
                around.append(number)

    def _read_tops(self) -> list[int]:
        """Loops that are in no other, in the order of their calls."""
        top: list[int] = []
        for enclosing, number in zip(self._enclosing, self._loop):
            top.append(top[enclosing] if enclosing >= 0 else number)
        found: dict[int, None] = {}
        for row, at in enumerate(self._body.rows[:, ITERATION].tolist()):
            if at >= 0:
                self._loops[self._loop[at]].has_calls = True
                self._loops[top[at]].rows.append(row)
                found[top[at]] = None
        return list(found)

    def _match(self, one: int, other: int, split: set[int]) -> bool:
        """Whether two loops have as many turns, and which loops in them can run turn by turn as well."""
        first, second = self._loops[one], self._loops[other]
        if first.turns != second.turns or one == other:
            return False
        inside = list(zip(first.inside, second.inside))
        only_loops = len(first.inside) == len(second.inside) > 0 and not (first.has_calls or second.has_calls)
        if only_loops and all(self._loops[a].turns == self._loops[b].turns for a, b in inside):
            split.update((one, other))
            for pair in inside:
                self._match(*pair, split)
        return True

    def _load_the_same(self, rows: list[Ints]) -> bool:
        """Whether the second loads in some turns what the first loads in the same ones."""
        return not self._loads(rows[0]).isdisjoint(self._loads(rows[1]))

    def _loads(self, rows: Ints) -> set[tuple[tuple[int, ...], ...]]:
        """Turns and region of each load of a tensor that nobody writes."""
        body = self._body
        fixed = ~body.buffers.on_chip & ~written_buffers(body)
        brings = [k.transfer is not None and k.transfer.source_memory is Memory.HBM for k in body.kinds]
        chosen = rows[np.array(brings)[body.rows[rows, KIND]]]
        region = body.regions[body.rows[chosen, FIRST_READ]]
        kept = fixed[region[:, 0]]
        where = body.rows[chosen[kept], ITERATION].tolist()
        return {(self._turns_of(at), tuple(box)) for at, box in zip(where, region[kept].tolist())}

    def _turns_of(self, iteration: int) -> tuple[int, ...]:
        found = []
        while iteration >= 0:
            found.append(self._turn[iteration])
            iteration = self._enclosing[iteration]
        return tuple(reversed(found))

    def _order(self, rows: list[Ints], split: set[int]) -> Ints:
        """The calls of both nests, turn by turn as far as both loop alike."""
        keys: dict[int, tuple[int, ...]] = {}
        sorted_by = [
            (self._key(int(at), split, keys), nest, row)
            for nest, part in enumerate(rows)
            for row, at in zip(part.tolist(), self._body.rows[part, ITERATION].tolist())
        ]
        return np.array(sorted(range(len(sorted_by)), key=sorted_by.__getitem__), np.int64)

    def _key(self, iteration: int, split: set[int], keys: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
        """Turn of the outermost loop, which loop in it, its turn, and so on, down to the first not split."""
        if iteration in keys:
            return keys[iteration]
        enclosing = self._enclosing[iteration]
        if enclosing < 0:
            key: tuple[int, ...] = (self._turn[iteration],)
        elif self._loop[enclosing] in split:
            slot = self._loops[self._loop[enclosing]].inside.index(self._loop[iteration])
            key = *self._key(enclosing, split, keys), slot, self._turn[iteration]
        else:
            key = self._key(enclosing, split, keys)
        keys[iteration] = key
        return key
