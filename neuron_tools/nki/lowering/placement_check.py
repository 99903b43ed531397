"""Tiles that the kernel placed itself: refused where two at one address are used at the same time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.errors import RaceError
from neuron_tools.nki.tracer import Tracer


def check_placed(
    trace: Tracer, members: list[Buffer], rows: npt.NDArray[np.int32], regions: npt.NDArray[np.int32]
) -> None:
    """Refuse reads of a placed tile after another one at the same address was written.

    Raises:
        RaceError: Names both tiles and the line that reads.
    """
    placed = [buffer for buffer in members if buffer.address is not None and buffer.blocks == 1]
    if len(placed) < 2:
        return
    number_of = {buffer.number: index for index, buffer in enumerate(placed)}
    writes, reads = _accesses(rows, regions, number_of, len(trace.buffers))
    spans = sorted(placed, key=lambda buffer: buffer.address or 0)
    for index, buffer in enumerate(spans):
        end = (buffer.address or 0) + buffer.bytes_per_partition
        for other in spans[index + 1 :]:
            if (other.address or 0) >= end:
                break
            if _partitions_overlap(buffer, other):
                for first, second in ((buffer, other), (other, buffer)):
                    own, foreign = number_of[first.number], number_of[second.number]
                    _check_pair(trace, first, second, writes[own], reads[own], writes[foreign], rows)


Accesses = list[npt.NDArray[np.int64]]


def _accesses(
    rows: npt.NDArray[np.int32], regions: npt.NDArray[np.int32], number_of: dict[int, int], buffers: int
) -> tuple[Accesses, Accesses]:
    index_of = np.full(buffers, -1, np.int64)
    for number, index in number_of.items():
        index_of[number] = index
    found: list[list[list[int]]] = [[[] for _ in number_of] for _ in range(2)]
    for slot in range(3, rows.shape[1]):
        touched = np.flatnonzero(rows[:, slot] >= 0)
        owner = index_of[regions[rows[touched, slot], 0]]
        for row, index in zip(touched[owner >= 0], owner[owner >= 0]):
            found[0 if slot < 5 else 1][index].append(int(row))
    writes, reads = (
        [np.array(sorted(rows_of), np.int64) for rows_of in side] for side in found
    )  # fmt: skip
    return writes, reads


def _partitions_overlap(first: Buffer, second: Buffer) -> bool:
    return first.partition < second.partition + second.partitions and (
        second.partition < first.partition + first.partitions
    )


def _check_pair(
    trace: Tracer,
    tile: Buffer,
    other: Buffer,
    writes: npt.NDArray[np.int64],
    reads: npt.NDArray[np.int64],
    overwrites: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int32],
) -> None:
    """A read of `tile` with a write of `other` between it and the write of `tile` that it wants."""
    if not len(reads) or not len(overwrites) or not len(writes):
        return
    last_write = np.searchsorted(writes, reads, side="left") - 1
    last_overwrite = np.searchsorted(overwrites, reads, side="left") - 1
    valid = (last_write >= 0) & (last_overwrite >= 0)
    lost = valid & (overwrites[np.maximum(last_overwrite, 0)] > writes[np.maximum(last_write, 0)])
    if lost.any():
        row = int(reads[np.argmax(lost)])
        raise RaceError(
            f"the tile {tile.name or tile.shape} is read, but {other.name or other.shape}, which the kernel "
            f"placed at the same address ({tile.region} byte {max(tile.address or 0, other.address or 0)}), "
            "was written in between and nothing keeps them apart; give them separate addresses",
            trace.describe_site(int(rows[row, 1])),
        )
