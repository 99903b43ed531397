"""How a tensor lies in parts over NeuronCores: tiles of its dimensions, and which core has which."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from neuron_tools.frozen import frozen

_TEXT = re.compile(r"\{devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))(.*)\}$", re.DOTALL)
_REPEATED = ("last_tile_dim_replicate", "last_tile_dims={replicated}")


@frozen
class Sharding:
    """A tensor's tiles; without any, each core has all of it.

    Attributes:
        tiles: Into how many tiles each dimension is cut; where cores have equal ones, one extent more, for
            how many.
        cores: The core of each tile, in the order of a row-major array of `tiles`.
        repeats: Whether the last extent counts the cores that have equal tiles.
    """

    tiles: tuple[int, ...] = ()
    cores: tuple[int, ...] = ()
    repeats: bool = False

    @classmethod
    def of(cls, counts: Sequence[int], cores: Sequence[int]) -> Sharding:
        """The sharding with `counts` tiles of each dimension; cores that have the same are neighbours."""
        copies = len(cores) // math.prod(counts)
        if math.prod(counts) == 1:
            return cls()
        return cls((*counts, copies) if copies > 1 else tuple(counts), tuple(cores), copies > 1)

    @classmethod
    def parse(cls, text: str) -> Sharding:
        """Read XLA's form: "{devices=[2,1]0,1}", "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}".

        What lies on one core, or is replicated, is whole.
        """
        match = _TEXT.match(text.strip())
        if match is None:
            return cls()
        tiles = _numbers(match[1])
        cores = _numbers(match[4]) if match[4] else _iota(_numbers(match[2]), _numbers(match[3] or ""))
        repeats = any(mark in match[5] for mark in _REPEATED)
        return cls.of(tiles[:-1] if repeats else tiles, cores)

    @property
    def text(self) -> str:
        """XLA's form."""
        if not self.tiles:
            return "{replicated}"
        mark = " last_tile_dim_replicate" if self.repeats else ""
        return f"{{devices=[{_joined(self.tiles)}]{_joined(self.cores)}{mark}}}"

    @property
    def counts(self) -> tuple[int, ...]:
        """Tiles of each dimension of the tensor; () where it is whole."""
        return self.tiles[:-1] if self.repeats else self.tiles

    def tile(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Extents of a tensor's largest parts."""
        counts = self.counts or [1] * len(shape)
        return tuple(-(-extent // count) for extent, count in zip(shape, counts))

    def part(self, shape: Sequence[int], core: int) -> tuple[slice, ...]:
        """What a core has of a tensor of this shape; the last tiles are smaller where it does not divide."""
        if not self.tiles:
            return tuple(slice(0, extent) for extent in shape)
        place = np.unravel_index(self.cores.index(core), self.tiles)
        extents = self.tile(shape)
        starts = [min(int(at) * part, extent) for at, part, extent in zip(place, extents, shape)]
        return tuple(
            slice(start, min(start + part, extent)) for start, part, extent in zip(starts, extents, shape)
        )


WHOLE = Sharding()


def _iota(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    cores = np.arange(math.prod(shape)).reshape(shape)
    return tuple(int(core) for core in (cores.transpose(order) if order else cores).ravel())


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number)


def _joined(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
