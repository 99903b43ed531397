"""Where kernels put tiles themselves: byte addresses of SBUF and banks of PSUM (direct allocation)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.memory_region import MemoryRegion

PSUM_BANK_BYTES = 2048
"""Bytes of a partition in one PSUM bank, as `ncc.psum` counts them (NKI direct allocation guide)."""


@frozen
class Placement:
    """A `buffer=` value that says where a tensor goes.

    Attributes:
        region: SBUF or PSUM.
        positions: Function (index of a block, partitions, bytes per partition) -> (partition, byte).
    """

    region: MemoryRegion
    positions: Callable[[tuple[int, ...], int, int], tuple[int, int]] | None

    def place(self, storage: Buffer) -> None:
        """Give a buffer its address: that of its first block (blocks follow one another)."""
        if self.positions is None:
            return
        first = (0,) * max(len(storage.shape) - 2, 1)
        partition, byte = self.positions(first, storage.partitions, storage.pitch_bytes)
        storage.partition, storage.address = int(partition), int(byte)
        storage.block_addresses = tuple(
            int(self.positions(index, storage.partitions, storage.pitch_bytes)[1])
            for index in block_indices(storage)
        )


def block_indices(storage: Buffer) -> list[tuple[int, ...]]:
    """Index tuples of a buffer's blocks, in order."""
    extents: list[int] = []
    count = 1
    for extent in storage.shape:
        if count >= storage.blocks:
            break
        extents.append(extent)
        count *= extent
    return list(product(*(range(extent) for extent in extents)))


@frozen
class OnChip:
    """`nki.compiler.sbuf` or `nki.compiler.psum`: ways to place tiles there."""

    region: MemoryRegion

    def alloc(self, func: Callable[..., Any]) -> Placement:
        """Place by a function of (block index, partitions, bytes per partition)."""

        def positions(index: tuple[int, ...], partitions: int, size: int) -> tuple[int, int]:
            found = func(idx=index, pdim_size=partitions, fdim_size=size)
            if len(found) == 3:
                bank, partition, byte = found
                return int(partition), int(bank) * PSUM_BANK_BYTES + int(byte)
            return int(found[0]), int(found[1])

        return Placement(self.region, positions)

    def mod_alloc(
        self,
        *,
        base_addr: int = 0,
        base_bank: int = 0,
        base_partition: int = 0,
        num_par_tiles: Sequence[int] = (),
        num_free_tiles: Sequence[int] = (),
        num_bank_tiles: Sequence[int] = (),
    ) -> Placement:
        """Place blocks one after another, each index taken modulo the number of tiles that exist."""
        tiles = tuple(num_bank_tiles) if self.region is MemoryRegion.psum else tuple(num_free_tiles)

        def positions(index: tuple[int, ...], partitions: int, size: int) -> tuple[int, int]:
            place = 0
            for at, extent in zip(index, tiles):
                place = place * int(extent) + at % int(extent)
            if self.region is MemoryRegion.psum:
                return base_partition, (base_bank + place) * PSUM_BANK_BYTES + base_addr
            return base_partition, base_addr + place * size

        return Placement(self.region, positions)

    def auto_alloc(self) -> Placement:
        """Leave the place open."""
        return Placement(self.region, None)

    def __call__(self, *_arguments: Any, **_options: Any) -> OnChip:
        """Itself: `ncc.sbuf()` leaves the place open."""
        return self

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.region

    def __hash__(self) -> int:
        return hash(self.region)

    def __repr__(self) -> str:
        return f"nki.compiler.{self.region}"


sbuf = OnChip(MemoryRegion.sbuf)
psum = OnChip(MemoryRegion.psum)
