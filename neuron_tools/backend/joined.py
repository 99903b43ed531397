"""Calls that become one: their tiles lie side by side in one buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import BUFFER, FIRST_BYTE, FIRST_READ, FIRST_WRITE, KIND, LAST_BYTE, Body
from neuron_tools.backend.kinds import Kind
from neuron_tools.backend.schedule import add_kind


class Joined:
    """Collects groups of calls that become one, then makes the body.

    Attributes:
        count: Groups so far.
    """

    def __init__(self, before: Body) -> None:
        self.before = before
        self.count = 0
        self._rows = before.rows.copy()
        self._kinds = list(before.kinds)
        self._made: dict[tuple[int, int], int] = {}
        self._tiles: dict[tuple[int, ...], int] = {}
        self._moved: dict[int, tuple[int, int]] = {}  # old buffer: new buffer, byte at which it begins
        self._regions: list[list[int]] = []
        self._dropped = np.zeros(len(before), bool)

    def may_join(self, members: Ints, first_column: int = FIRST_WRITE) -> bool:
        """Whether the tiles of each operand can lie side by side: all apart, and joined so before or not."""
        for tiles in self._tiles_of(members, first_column):
            if tiles is None or tiles in self._tiles:
                continue
            if len(set(tiles)) < len(tiles) or any(tile in self._moved for tile in tiles):
                return False
        return True

    def join(self, members: Ints, several: Callable[[Kind, int], Kind]) -> None:
        """Let the last of the members do what all did.

        Args:
            members: Calls of one kind, every operand all of a tile.
            several: The kind of the call that stands for a number of calls.
        """
        for slot, tiles in enumerate(self._tiles_of(members, FIRST_WRITE)):
            if tiles is not None:
                self._rows[members[-1], FIRST_WRITE + slot] = self._whole(tiles)
        self._replace(members, several)

    def join_copies(self, members: Ints, several: Callable[[Kind, int], Kind]) -> None:
        """The same for copies of tiles to places that are side by side already."""
        (tiles, *_) = self._tiles_of(members, FIRST_READ)
        assert tiles is not None
        self._rows[members[-1], FIRST_READ] = self._whole(tiles)
        first, last = (self.before.regions[self.before.rows[at, FIRST_WRITE]] for at in members[[0, -1]])
        box = [*first[:LAST_BYTE].tolist(), int(last[LAST_BYTE])]
        self._rows[members[-1], FIRST_WRITE] = self._region(box)
        self._replace(members, several)

    def _replace(self, members: Ints, several: Callable[[Kind, int], Kind]) -> None:
        lead = int(members[-1])
        self._dropped[members[:-1]] = True
        key = int(self._rows[lead, KIND]), len(members)
        if key not in self._made:
            self._made[key] = add_kind(self._kinds, several(self._kinds[key[0]], key[1]))
        self._rows[lead, KIND] = self._made[key]
        self.count += 1

    def side_by_side(self, tiles: tuple[int, ...]) -> int:
        """Number of the buffer that holds these, one after another."""
        if tiles not in self._tiles:
            number = self._tiles[tiles] = len(self.before.buffers) + len(self._tiles)
            at = 0
            for tile in tiles:
                self._moved[tile] = number, at
                at += int(self.before.buffers.pitch_bytes[tile])
        return self._tiles[tiles]

    def body(self, order: Ints) -> Body:
        """The result.

        Args:
            order: (calls,) how the calls stand, those that became one among them.
        """
        before = self.before
        added = before.buffers.take(np.array([tiles[0] for tiles in self._tiles], np.int64))
        pitch = before.buffers.pitch_bytes
        added.pitch_bytes[:] = [int(pitch[list(tiles)].sum()) for tiles in self._tiles]
        regions = before.regions.copy()
        moved, offset = np.arange(len(before.buffers)), np.zeros(len(before.buffers), np.int64)
        for tile, (number, at) in self._moved.items():
            moved[tile], offset[tile] = number, at
        for column in (FIRST_BYTE, LAST_BYTE):
            regions[:, column] += offset[regions[:, BUFFER]]
        regions[:, BUFFER] = moved[regions[:, BUFFER]]
        extra = np.array(self._regions, np.int32).reshape(-1, 5)
        result = replace(
            before, rows=self._rows, kinds=self._kinds, regions=np.concatenate([regions, extra]),
            buffers=before.buffers.joined(added),
        )  # fmt: skip
        return result.ordered_by(order[~self._dropped[order]])

    def _tiles_of(self, members: Ints, first_column: int) -> list[tuple[int, ...] | None]:
        """Buffers of each operand from a column on, in the order of the members; None where it is empty."""
        named = self.before.rows[members, first_column:]
        return [
            tuple(self.before.regions[column, BUFFER].tolist()) if column[0] >= 0 else None
            for column in named.T
        ]

    def _whole(self, tiles: tuple[int, ...]) -> int:
        """Region that is all of the buffer that holds these."""
        lines = int(self.before.buffers.lines[tiles[0]])
        width = int(self.before.buffers.pitch_bytes[list(tiles)].sum())
        return self._region([self.side_by_side(tiles), 0, lines, 0, width])

    def _region(self, box: list[int]) -> int:
        self._regions.append(box)
        return len(self.before.regions) + len(self._regions) - 1
