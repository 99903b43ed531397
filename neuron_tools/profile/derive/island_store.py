"""Islands of activity that are kept in a temporary file, and read and joined a block at a time.

A profile of many short executions has as many islands as spans: memory must not grow with either.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.profile.derive.intervals import NO_ISLANDS, Islands, at_most, merged, union_by_group
from neuron_tools.profile.store.recorded import NoSpaceError
from neuron_tools.profile.timeline.blob import fitting_type

BLOCK_ISLANDS = 1 << 16
BYTES_IN_MEMORY = 8 << 20


class Piece(NamedTuple):
    """Some islands in order of time: when the first begins, and how to read them."""

    first_ns: int
    read: Callable[[], Islands]


class IslandStream:
    """The union of pieces that may overlap: islands in order of time, a block at a time."""

    def __init__(self, pieces: Iterable[Piece] = ()) -> None:
        self._pieces = sorted(pieces, key=lambda piece: piece.first_ns)

    @classmethod
    def of(cls, islands: Islands) -> IslandStream:
        """Those of islands in memory."""
        return cls([Piece(int(islands.start[0]), lambda: islands)] if len(islands) else [])

    @classmethod
    def joined(cls, streams: Iterable[IslandStream]) -> IslandStream:
        """The union of several."""
        present = [stream for stream in streams if stream._pieces]
        return present[0] if len(present) == 1 else cls(piece for each in present for piece in each._pieces)

    def __iter__(self) -> Iterator[Islands]:
        """Blocks of islands; those of one neither overlap nor touch those of another."""
        held: list[Islands] = []
        wanted = BLOCK_ISLANDS
        for piece, following in zip(self._pieces, [*self._pieces[1:], None]):
            held.append(piece.read())
            if following is None:
                yield merged(held)
            elif sum(map(len, held)) >= wanted:
                ready, rest = merged(held).before(following.first_ns)
                held, wanted = [rest], max(BLOCK_ISLANDS, 2 * len(rest))
                if len(ready):
                    yield ready

    @cached_property
    def total(self) -> int:
        """Sum of the lengths."""
        return sum(islands.total for islands in self)

    def at_most(self, limit: int) -> Islands:
        """At most `limit` islands, as `intervals.at_most` makes them of all."""
        kept = NO_ISLANDS
        for islands in self:
            kept = at_most(merged([kept, islands]), limit)
        return kept


class IslandStore:
    """Keeps islands in a temporary file until it is closed.

    Args:
        folder: Where the file is made: one of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = tempfile.SpooledTemporaryFile(BYTES_IN_MEMORY, dir=str(folder))  # noqa: SIM115  # closed with the store
        self._length = 0

    def close(self) -> None:
        """Remove the file: what was kept can no longer be read."""
        self._file.close()

    def add(self, islands: Islands) -> Piece:
        """Keep islands, at least one.

        Raises:
            NoSpaceError: The disk is full.
        """
        first_ns = int(islands.start[0])
        columns: list[npt.NDArray[Any]] = [islands.start - first_ns, islands.end - islands.start]
        content = [column.astype(fitting_type(column)) for column in columns]
        read = partial(self._read, first_ns, self._length, len(islands), *(each.dtype for each in content))
        try:
            self._file.seek(self._length)
            for column in content:
                self._length += self._file.write(column.tobytes())
        except OSError as error:
            raise NoSpaceError(self._folder.parent, error.strerror) from error
        return Piece(first_ns, read)

    def _read(
        self, first_ns: int, offset: int, count: int, start: np.dtype[Any], length: np.dtype[Any]
    ) -> Islands:
        self._file.seek(offset)
        held = self._file.read(count * (start.itemsize + length.itemsize))
        begin = np.frombuffer(held, start, count).astype(np.int64) + first_ns
        return Islands(begin, begin + np.frombuffer(held, length, count, count * start.itemsize))


class IntervalUnion:
    """The union of a stream of batches, by group.

    Args:
        store: Where the islands are kept.
    """

    def __init__(self, store: IslandStore) -> None:
        self._store = store
        self._pieces: dict[int, list[Piece]] = {}

    def add(self, group: Ints, start: Ints, end: Ints) -> None:
        """Take in a batch of spans; see `union_by_group`.

        Raises:
            NoSpaceError: The disk is full.
        """
        for number, islands in union_by_group(group, start, end).items():
            self._pieces.setdefault(number, []).append(self._store.add(islands))

    def of(self, group: int) -> IslandStream:
        """The islands of one group so far."""
        return IslandStream(self._pieces.get(group, ()))

    def by_group(self) -> Mapping[int, IslandStream]:
        """The islands of every group so far, groups in ascending order."""
        return {number: self.of(number) for number in sorted(self._pieces)}
