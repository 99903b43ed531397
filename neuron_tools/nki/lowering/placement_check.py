"""Tiles that the kernel placed itself: refused where one is read after another at its address was written.

A tile here is one block of a tensor: a tensor of many blocks may have some of them at one address, so that
they take turns. Tiles at the very same place form a slot; a read is lost where the slot, or one that overlaps
it, was written by somebody else since the tile itself was.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.errors import RaceError
from neuron_tools.nki.tracer import Tracer

Ints = npt.NDArray[np.int64]
_FIRST_READ = 5
"""Column of a row from which on its regions are read; those from 3 on before it are written."""


@dataclass(slots=True)
class Slot:
    """A place on chip and who uses it when.

    Attributes:
        start, end: Bytes of each partition.
        first, last: Partitions.
        writes, reads: (row, tile) of each access, in order.
    """

    start: int
    end: int
    first: int
    last: int
    writes: list[tuple[int, int]] = field(default_factory=list)
    reads: list[tuple[int, int]] = field(default_factory=list)
    tiles: set[int] = field(default_factory=set)

    def overlaps(self, other: Slot) -> bool:
        """Whether the two share bytes of a partition."""
        return (
            self.start < other.end
            and other.start < self.end
            and (self.first < other.last and other.first < self.last)
        )


def check_placed(
    trace: Tracer, members: list[Buffer], rows: npt.NDArray[np.int32], regions: npt.NDArray[np.int32]
) -> None:
    """Refuse reads of a placed tile after another one at the same address was written.

    Raises:
        RaceError: Names both tiles and the line that reads.
    """
    placed = [buffer for buffer in members if buffer.address is not None]
    if sum(buffer.blocks for buffer in placed) < 2:
        return
    slots, owners = _slots(placed)
    _note_accesses(rows, regions, slots, owners)
    ordered = sorted(slots, key=lambda slot: slot.start)
    for index, slot in enumerate(ordered):
        if len(slot.tiles) > 1:
            _check(trace, rows, slot, slot, owners)
        for other in ordered[index + 1 :]:
            if other.start >= slot.end:
                break
            if slot.overlaps(other):
                _check(trace, rows, slot, other, owners)
                _check(trace, rows, other, slot, owners)


@dataclass(frozen=True, slots=True)
class _Owners:
    """The tiles of all placed tensors.

    Attributes:
        buffers: Tensor of each tile.
        blocks: Block of that tensor.
        first_tile: Number of each tensor's first tile, by the tensor's number.
        slot_of: Slot of each tile.
    """

    buffers: list[Buffer]
    blocks: list[int]
    first_tile: dict[int, int]
    slot_of: list[Slot]

    def name(self, tile: int) -> str:
        """What to call a tile."""
        buffer, block = self.buffers[tile], self.blocks[tile]
        name = str(buffer.name or buffer.shape)
        return name if buffer.blocks == 1 else f"{name} (block {block})"


def _slots(placed: list[Buffer]) -> tuple[list[Slot], _Owners]:
    slots: dict[tuple[int, int, int, int], Slot] = {}
    owners = _Owners([], [], {}, [])
    for buffer in placed:
        owners.first_tile[buffer.number] = len(owners.buffers)
        for block in range(buffer.blocks):
            start = _address(buffer, block)
            key = (start, start + buffer.pitch_bytes, buffer.partition, buffer.partition + buffer.partitions)
            slot = slots.setdefault(key, Slot(*key))
            slot.tiles.add(len(owners.buffers))
            owners.buffers.append(buffer)
            owners.blocks.append(block)
            owners.slot_of.append(slot)
    return list(slots.values()), owners


def _address(buffer: Buffer, block: int) -> int:
    if buffer.block_addresses:
        return buffer.block_addresses[block]
    return (buffer.address or 0) + block * buffer.pitch_bytes


def _note_accesses(
    rows: npt.NDArray[np.int32], regions: npt.NDArray[np.int32], slots: list[Slot], owners: _Owners
) -> None:
    """Give every slot the rows that write and read its tiles."""
    tiles_of: dict[int, range] = {}
    for number, (buffer, first, last) in enumerate(regions[:, :3].tolist()):
        if buffer in owners.first_tile:
            tile = owners.first_tile[buffer]
            partitions = max(owners.buffers[tile].partitions, 1)
            tiles_of[number] = range(tile + first // partitions, tile + (last - 1) // partitions + 1)
    for column in range(3, rows.shape[1]):
        for row in np.flatnonzero(np.isin(rows[:, column], list(tiles_of))).tolist():
            for tile in tiles_of[int(rows[row, column])]:
                slot = owners.slot_of[tile]
                (slot.reads if column >= _FIRST_READ else slot.writes).append((row, tile))
    for slot in slots:
        slot.writes.sort()
        slot.reads.sort()


def _check(trace: Tracer, rows: npt.NDArray[np.int32], slot: Slot, other: Slot, owners: _Owners) -> None:
    """Reads of `slot` with a write of another tile of `other` since the tile's own last write."""
    if not slot.reads or not slot.writes or not other.writes:
        return
    reads, own = np.array(slot.reads, np.int64), np.array(slot.writes, np.int64)
    foreign = np.array(other.writes, np.int64)
    for tile in np.unique(reads[:, 1]).tolist():
        written = own[own[:, 1] == tile, 0]
        overwritten = foreign[foreign[:, 1] != tile]
        at = reads[reads[:, 1] == tile, 0]
        lost = _lost(at, written, overwritten[:, 0])
        if lost is not None:
            culprit = int(overwritten[np.searchsorted(overwritten[:, 0], lost) - 1, 1])
            place = f"{owners.buffers[tile].region} byte {max(slot.start, other.start)}"
            raise RaceError(
                f"the tile {owners.name(tile)} is read, but {owners.name(culprit)}, which the kernel placed "
                f"at the same address ({place}), was written in between and nothing keeps them apart; give "
                "them separate addresses",
                trace.describe_site(int(rows[lost, 1])),
            )


def _lost(reads: Ints, writes: Ints, overwrites: Ints) -> int | None:
    """The first read with an overwrite between it and the write that it wants."""
    if not len(writes) or not len(overwrites):
        return None
    last_write = np.searchsorted(writes, reads, side="left") - 1
    last_overwrite = np.searchsorted(overwrites, reads, side="left") - 1
    valid = (last_write >= 0) & (last_overwrite >= 0)
    lost = valid & (overwrites[np.maximum(last_overwrite, 0)] > writes[np.maximum(last_write, 0)])
    return int(reads[np.argmax(lost)]) if lost.any() else None
